/** What the workbench finds on the machine: code to search, and a server on the PATH. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { HERE } from "./workbench";

/** The interpreter that has the server's dependencies. */
export const PYTHON = process.env["PYTHON"] ?? "python3";
export const SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin";

function python(code: string): string {
  return execFileSync(PYTHON, ["-c", code], { encoding: "utf8" }).trim();
}

/** A fresh folder with real code that every machine has: packages of Python's own library. */
export function repository(): string {
  const folder = path.join(mkdtempSync(path.join(tmpdir(), "meaning-code-")), "my code");
  for (const name of ["json", "urllib", "http"]) {
    const source = path.dirname(python(`import ${name}; print(${name}.__file__)`));
    cpSync(source, path.join(folder, name), { recursive: true, filter: (file) => !file.includes("__pycache__") });
  }
  return folder;
}

/** A PATH with `meaning-lsp` on it, installed from the wheel in the extension; its dependencies are PYTHON's own. */
export function pathWithServer(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "meaning-venv-"));
  const wheels = path.join(HERE, "wheel");
  const wheel = readdirSync(wheels).find((name) => name.endsWith(".whl")) ?? "none";
  execFileSync(PYTHON, ["-m", "venv", "--without-pip", folder]);
  const binaries = path.join(folder, "bin");
  const target = ["--python", path.join(binaries, "python"), "--disable-pip-version-check"];
  execFileSync(PYTHON, ["-m", "pip", ...target, "install", "-qq", "--no-deps", "--no-index", path.join(wheels, wheel)]);
  const packages = execFileSync(path.join(binaries, "python"), ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], { encoding: "utf8" });
  writeFileSync(path.join(packages.trim(), "of-the-tests.pth"), python("import site; print('\\n'.join(site.getsitepackages()))"));
  return `${binaries}:${SYSTEM_PATH}`;
}

/** An extension that has the name of Python's own, and the part of its interface that is asked: the interpreter that is
 * named in a file, and the news of another. */
export function pythonExtension(selection: string): string {
  const file = JSON.stringify(selection);
  const environments = `{
    getActiveEnvironmentPath: () => ({ path: fs.readFileSync(${file}, "utf8") }),
    resolveEnvironment: async ({ path }) => ({ executable: { uri: vscode.Uri.file(path) } }),
    onDidChangeActiveEnvironmentPath: (heard) => {
      fs.watchFile(${file}, { interval: 100 }, heard);
      return { dispose: () => fs.unwatchFile(${file}, heard) };
    },
  }`;
  const folder = folderWith({
    "package.json": JSON.stringify({ name: "python", publisher: "ms-python", version: "1.0.0", main: "main.js", activationEvents: ["onStartupFinished"], engines: { vscode: "^1.91.0" } }),
    "main.js": `const [fs, vscode] = [require("fs"), require("vscode")]; exports.activate = () => ({ environments: ${environments} });`,
    "README.md": "Python",
    LICENSE: "none",
  });
  const vsix = path.join(folder, "python.vsix");
  const vsce = path.join(HERE, "node_modules", "@vscode", "vsce", "vsce");
  execFileSync(process.execPath, [vsce, "package", "--allow-missing-repository", "--out", vsix], { cwd: folder, stdio: "pipe" });
  return vsix;
}

/** A folder with the default model under another id; and the id that it has itself. */
export function modelWithId(id: string): [folder: string, before: string] {
  const folder = path.join(mkdtempSync(path.join(tmpdir(), "meaning-model-")), "another one");
  cpSync(path.join(HERE, "..", "server", "embed", "default"), folder, { recursive: true });
  const file = path.join(folder, "bundle.json");
  const bundle = JSON.parse(readFileSync(file, "utf8")) as { id: string };
  writeFileSync(file, JSON.stringify({ ...bundle, id }));
  return [folder, bundle.id];
}

/** A made-up tree of so many functions, as the benchmarks of the server have it. */
export function madeUp(functions: number): string {
  const folder = mkdtempSync(path.join(tmpdir(), "meaning-made-up-"));
  const code = `from pathlib import Path; from tests.bench.made_up import write_tree; write_tree(Path("${folder}"), ${functions})`;
  execFileSync(PYTHON, ["-c", code], { cwd: path.dirname(HERE) });
  return folder;
}

/** The line, from 1, in which a text begins in a file. */
export function lineWith(file: string, text: string): number {
  return readFileSync(file, "utf8").split("\n").findIndex((line) => line.includes(text)) + 1;
}

export function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(path.join(tmpdir(), "meaning-code-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}
