/** The interpreter that the Python extension has for the workspace, where that extension is there. */

import * as vscode from "vscode";

/** The part of its API that is used: https://www.npmjs.com/package/@vscode/python-extension */
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
  };
}

/** Undefined in a workspace that is not trusted: its interpreter may be a program that the workspace brought along. */
export async function selectedPython(): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) {
    return undefined;
  }
  try {
    const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
    const environments = (await extension?.activate())?.environments;
    const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
  } catch {
    return undefined; // Another extension's trouble is not ours to tell.
  }
}
