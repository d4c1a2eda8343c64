/** What pip says, in words for somebody who does not know pip. */

const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/No space left on device|Errno 28\b|ENOSPC|Disk quota exceeded|Errno 122\b/, "The disk is full."],
  [
    /name resolution|Name or service not known|getaddrinfo|NewConnectionError|ConnectTimeout|Network is unreachable|Connection (refused|reset)|Read timed out|ProxyError|SSLError|CERTIFICATE_VERIFY/i,
    "The Python package index (pypi.org) cannot be reached. Look at the network, or at the setting http.proxy.",
  ],
  [/Permission denied|EACCES|EPERM|Read-only file system|EROFS/, "The extension's folder cannot be written to."],
];

/** Why an installation failed, in a sentence or two. */
export function explain(output: string): string {
  const cause = CAUSES.find(([sign]) => sign.test(output));
  if (cause) {
    return cause[1];
  }
  const missing = /No matching distribution found for (\S+)/.exec(output);
  if (missing) {
    return `There is no ${missing[1] ?? "package"} for this platform and this Python.`;
  }
  const lines = output.trim().split("\n");
  return lines.findLast((line) => line.startsWith("ERROR")) ?? lines.at(-1) ?? "";
}

/** What a line of pip's output tells of the progress, if it does. */
export function progressOf(line: string): string | undefined {
  const collecting = /^Collecting ([A-Za-z0-9._-]+)/.exec(line);
  if (collecting) {
    return collecting[1];
  }
  return line.startsWith("Installing collected packages") ? "unpacking" : undefined;
}
