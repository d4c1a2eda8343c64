/** A hit as a line or three of text. */

import type { Hit } from "../protocol";

/** The icon of each `SymbolKind`, by its number in the protocol. */
const ICONS: Record<number, string> = {
  1: "symbol-file",
  2: "symbol-module",
  3: "symbol-namespace",
  5: "symbol-class",
  6: "symbol-method",
  7: "symbol-property",
  9: "symbol-constructor",
  10: "symbol-enum",
  11: "symbol-interface",
  12: "symbol-function",
  19: "symbol-object",
  23: "symbol-structure",
  26: "symbol-type-parameter",
};

export function kindIcon(hit: Hit): string {
  return ICONS[hit.kind] ?? "symbol-misc";
}

/** Text in which VS Code finds no icon: `$(sync)` in a shell script is code. */
export function plain(text: string): string {
  return text.replace(/\$\(/g, "\\$(");
}

/** The line that a hit's name stands in, counted from 1. */
export function lineOf(hit: Hit): number {
  return hit.selectionRange.start.line + 1;
}

export interface RowText {
  label: string;
  description: string;
  detail: string;
}

/** `path` is the file as the user calls it. */
export function rowText(hit: Hit, path: string): RowText {
  const place = `${path}:${lineOf(hit)}`;
  return {
    label: `$(${kindIcon(hit)}) ${plain(hit.name)}`,
    description: plain(hit.containerName ? `${hit.containerName} · ${place}` : place),
    detail: plain(hit.preview.trim()),
  };
}

/** What the answer is missing, in a few words; empty if it misses nothing. */
export function shortfall(pending: number): string {
  return pending === 0 ? "" : pending === 1 ? "1 file is not indexed yet" : `${pending.toLocaleString("en")} files are not indexed yet`;
}
