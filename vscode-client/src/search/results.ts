/** The results list: the hits of one question, which stay while one works through them. */

import * as vscode from "vscode";

import type { Hit } from "../protocol";
import { pathOf, rangeOf, uriOf } from "./places";
import { lineOf } from "./rows";

const VIEW = "meaning.results";
const CONTEXT = "meaning.hasResults";

export class Results implements vscode.TreeDataProvider<Hit>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private hits: readonly Hit[] = [];
  private readonly view = vscode.window.createTreeView(VIEW, { treeDataProvider: this });
  /** What was asked; empty for code that is like other code. */
  query = "";

  show(title: string, hits: readonly Hit[], query = ""): void {
    this.query = query;
    this.hits = hits;
    this.view.description = title;
    this.changed.fire();
    void this.appear();
  }

  clear(): void {
    this.hits = [];
    this.changed.fire();
    void vscode.commands.executeCommand("setContext", CONTEXT, false);
  }

  getChildren(parent?: Hit): Hit[] {
    return parent ? [] : [...this.hits];
  }

  /** The list is flat. VS Code asks because of `reveal`. */
  getParent(): undefined {
    return undefined;
  }

  getTreeItem(hit: Hit): vscode.TreeItem {
    const item = new vscode.TreeItem(hit.containerName ? `${hit.containerName}.${hit.name}` : hit.name);
    item.description = `${pathOf(hit)}:${lineOf(hit)}`;
    item.resourceUri = uriOf(hit);
    item.iconPath = vscode.ThemeIcon.File;
    item.tooltip = hit.preview.trim();
    const { start } = rangeOf(hit.selectionRange);
    const options: vscode.TextDocumentShowOptions = { selection: new vscode.Range(start, start), preserveFocus: true };
    item.command = { command: "vscode.open", title: "Open", arguments: [uriOf(hit), options] };
    return item;
  }

  dispose(): void {
    this.view.dispose();
  }

  private async appear(): Promise<void> {
    await vscode.commands.executeCommand("setContext", CONTEXT, true);
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    const first = this.hits[0];
    if (first) {
      await this.view.reveal(first, { focus: true });
    }
  }
}
