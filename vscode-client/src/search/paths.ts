/** The values of `path:`: what lies in the workspace's folders. */

import * as vscode from "vscode";

/** Folders that are never indexed, and that nobody looks into. */
const HIDDEN = new Set([".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"]);

/** Folders, with `/`, and files that are in the folder which is typed so far. */
export async function pathValues(typed: string): Promise<string[]> {
  const folder = typed.slice(0, typed.lastIndexOf("/") + 1);
  const roots = vscode.workspace.workspaceFolders ?? [];
  const found = await Promise.all(roots.map((root) => entries(vscode.Uri.joinPath(root.uri, folder))));
  return [...new Set(found.flat())].sort().map((name) => folder + name);
}

async function entries(folder: vscode.Uri): Promise<string[]> {
  try {
    const found = await vscode.workspace.fs.readDirectory(folder);
    const seen = found.filter(([name]) => !HIDDEN.has(name));
    return seen.map(([name, type]) => (type & vscode.FileType.Directory ? `${name}/` : name));
  } catch {
    return []; // What is typed is no folder here.
  }
}
