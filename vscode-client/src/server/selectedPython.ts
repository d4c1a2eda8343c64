/** The interpreter that the Python extension has for the workspace, where that extension is there. */

import * as vscode from "vscode";

/** The part of its API that is used: https://www.npmjs.com/package/@vscode/python-extension */
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class SelectedPython implements vscode.Disposable {
  private listening: vscode.Disposable | undefined;
  private readonly changed = new vscode.EventEmitter<void>();

  /** The user selected another one. Heard of as soon as it was asked for: to listen, the Python extension has to run. */
  readonly onDidChange = this.changed.event;

  /** Undefined in a workspace that is not trusted: its interpreter may be a program that the workspace brought along. */
  async file(): Promise<string | undefined> {
    if (!vscode.workspace.isTrusted) {
      return undefined;
    }
    try {
      const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
      const environments = (await extension?.activate())?.environments;
      this.listening ??= environments?.onDidChangeActiveEnvironmentPath(() => this.changed.fire());
      const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
      return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
    } catch {
      return undefined; // Another extension's trouble is not ours to tell.
    }
  }

  dispose(): void {
    this.listening?.dispose();
    this.changed.dispose();
  }
}
