/** The section `meaning` of the settings. */

import os from "node:os";
import path from "node:path";
import * as vscode from "vscode";

const SECTION = "meaning";
/** Not the server's: the extension's own, and the language client's. */
const OURS = ["server", "trace"];

/** What the user set; what they did not is left to the server, whose defaults know its machine and its environment. */
export function serverSettings(): Record<string, unknown> {
  const section = vscode.workspace.getConfiguration(SECTION);
  const names = Object.keys(section).filter((name) => typeof section[name] !== "function" && !OURS.includes(name));
  return Object.fromEntries(names.filter((name) => isSet(section.inspect(name))).map((name) => [name, section.get(name)]));
}

type Inspected = ReturnType<vscode.WorkspaceConfiguration["inspect"]>;

function isSet(found: Inspected): boolean {
  return [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue].some((value) => value !== undefined);
}

/** The program that the user names, if they do. `~` is their home, a relative path begins at the workspace folder, and a
 * mere name is looked for on the PATH. */
export function serverPath(): string {
  const typed = vscode.workspace.getConfiguration(SECTION).get<string>("server.path", "").trim();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  return /[/\\]/.test(typed) ? path.resolve(folder, typed.replace(/^~(?=[/\\])/, os.homedir())) : typed;
}

export function currentModel(name: "model" | "refineModel"): string {
  return vscode.workspace.getConfiguration(SECTION).get(name, "");
}

/** For every workspace: a model is a matter of the machine. */
export async function setModel(name: "model" | "refineModel", value: string | undefined): Promise<void> {
  await vscode.workspace.getConfiguration(SECTION).update(name, value, vscode.ConfigurationTarget.Global);
}

export const affectsServerPath = (event: vscode.ConfigurationChangeEvent) => event.affectsConfiguration(`${SECTION}.server.path`);
