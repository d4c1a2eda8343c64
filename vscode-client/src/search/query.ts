/** What somebody types into the search box: words, and filters such as `lang:go`. The server has the last word. */

import { KINDS, LANGUAGES } from "./vocabulary";

export const FILTERS = ["lang", "path", "kind"] as const;
export type Filter = (typeof FILTERS)[number];

/** The filter that the text ends in: somebody may be at its value now. */
export interface Unfinished {
  filter: Filter;
  /** The part of the value that is being typed: after the last comma. */
  value: string;
  /** All of the text before that part. */
  before: string;
}

const FILTER = /(?<=^|\s)(lang|path|kind):("[^"]*"|\S*)(?=\s|$)/g;
const LAST = /(?<=^|\s)(lang|path|kind):("[^"]*|[^\s"]*)$/;

export function unfinished(text: string): Unfinished | undefined {
  const found = LAST.exec(text);
  if (!found) {
    return undefined;
  }
  const typed = found[2] ?? "";
  const value = typed.slice(typed.lastIndexOf(",") + 1).replace(/^"/, "");
  return { filter: found[1] as Filter, value, before: text.slice(0, text.length - value.length) };
}

/** Words and finished filters: what can be asked while the text is being typed; undefined where that is nothing. */
export function askable(text: string): string | undefined {
  const asked = isHalf(unfinished(text)) ? text.replace(LAST, "") : text;
  return hasWords(asked) ? asked.trim() : undefined;
}

/** Half a path narrows the hits as a whole one does; half a language would be refused. */
function isHalf(last: Unfinished | undefined): boolean {
  return last !== undefined && (last.value === "" || (last.filter !== "path" && !knownValues(last.filter).includes(last.value)));
}

function hasWords(text: string): boolean {
  return text.replace(FILTER, " ").trim() !== "";
}

/** The known values of a filter; those of `path:` stand in the workspace. */
export function knownValues(filter: Filter): readonly string[] {
  return { lang: LANGUAGES, kind: KINDS, path: [] }[filter];
}

/** The values that go on as the unfinished one begins, without it itself. */
export function matching(last: Unfinished, values: readonly string[]): string[] {
  const begun = last.value.toLowerCase();
  return values.filter((value) => value.toLowerCase().startsWith(begun) && value.toLowerCase() !== begun);
}

/** The text with a value in place of the unfinished one. A folder can be typed on in; any other value is done. */
export function completed(last: Unfinished, value: string): string {
  const opened = last.before.endsWith('"');
  const quoted = /\s/.test(value) && !opened ? `"${value}` : value;
  const isOpen = last.filter === "path" && value.endsWith("/");
  const closing = quoted.startsWith('"') || opened ? '" ' : " ";
  return last.before + quoted + (isOpen ? "" : closing);
}

/** Code or prose as a query, with nothing in it that would be read as a filter. */
export function asWords(text: string): string {
  return text.replace(FILTER, (filter) => filter.replace(":", " : ")).trim();
}
