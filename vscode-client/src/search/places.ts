/** From the protocol's places to VS Code's. */

import * as vscode from "vscode";
import type { Range } from "vscode-languageclient";

import type { Hit } from "../protocol";

export function uriOf(hit: Hit): vscode.Uri {
  return vscode.Uri.parse(hit.location.uri);
}

export function rangeOf({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** The lines of a hit, without the start of the next one. */
export function linesOf(hit: Hit): vscode.Range {
  const { start, end } = hit.location.range;
  return new vscode.Range(start.line, 0, Math.max(start.line, end.line - 1), 0);
}

/** The file as the user calls it: with its workspace folder where there are several. */
export function pathOf(hit: Hit): string {
  return vscode.workspace.asRelativePath(uriOf(hit));
}

/** Open a hit for good, the cursor at its name. */
export async function openHit(hit: Hit, viewColumn: vscode.ViewColumn, preserveFocus = false): Promise<void> {
  const { start } = rangeOf(hit.selectionRange);
  const selection = new vscode.Range(start, start);
  await vscode.window.showTextDocument(uriOf(hit), { viewColumn, preserveFocus, preview: false, selection });
}
