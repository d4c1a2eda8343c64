/** Shows the code of a hit in an editor while somebody looks through the hits, and puts all back as it was. */

import * as vscode from "vscode";

import type { Hit } from "../protocol";
import { linesOf, uriOf } from "./places";

/** A file that is open already is shown as a copy, for its editor would lose its place. */
const COPIES = "meaning-copy";

/** Where the user was. The editor itself knows its selections, and its lines on the screen. */
interface Origin {
  document: vscode.TextDocument;
  column: vscode.ViewColumn;
}

export class Preview {
  private readonly origin = whereTheUserIs();
  private readonly column = vscode.window.tabGroups.activeTabGroup.viewColumn;
  /** A group has one tab at most that gives way to the next. If it is the user's, the ones here are of the other kind. */
  private readonly givesWay = !vscode.window.tabGroups.activeTabGroup.tabs.some((tab) => tab.isPreview);
  private readonly openBefore = new Set(fileTabs().map(keyOf));
  private readonly mark = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("editor.rangeHighlightBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.rangeHighlightForeground"),
  });
  private wanted: Hit | undefined;
  private working: Promise<void> | undefined;
  private shown: vscode.TextEditor | undefined;
  /** The files, by their URIs, that were shown and had no editor before. */
  private readonly brought = new Set<string>();

  /** Show a hit. Of hits that come faster than editors open, the last is shown. */
  show(hit: Hit): void {
    this.wanted = hit;
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  /** Whether an editor is the one that shows a hit now. */
  isIn(editor: vscode.TextEditor): boolean {
    return editor === this.shown;
  }

  /** Back to where the user was, with no tab more. */
  async restore(): Promise<void> {
    await this.settle();
    const { origin } = this;
    if (this.shown) {
      // While the focus is still theirs to pass on: an editor that is shown without it first would never get it.
      await this.close([...this.brought]);
    }
    if (this.shown && origin && !isActive(origin.document.uri)) {
      await vscode.window.showTextDocument(origin.document, { viewColumn: origin.column });
    }
  }

  /** The hit is going to be opened for good, or the user works on in the editor that shows it. */
  async settle(): Promise<void> {
    this.wanted = undefined;
    await this.working;
    this.mark.dispose();
  }

  /** Close the tabs that came with showing hits, but for that of the file which stays. */
  async closeOthers(staying: vscode.Uri): Promise<void> {
    await this.close([...this.brought].filter((uri) => uri !== staying.toString()), true);
  }

  private async close(uris: readonly string[], preserveFocus = false): Promise<void> {
    const ours = fileTabs().filter((tab) => tab.group.viewColumn === this.column && uris.includes(uriIn(tab)?.toString() ?? ""));
    await vscode.window.tabGroups.close(ours.filter((tab) => !tab.isDirty), preserveFocus);
  }

  private async work(): Promise<void> {
    while (this.wanted) {
      const hit = this.wanted;
      this.wanted = undefined;
      try {
        await this.open(hit);
      } catch {
        // The file is gone, or none that an editor shows. The row says where it was.
      }
    }
  }

  private async open(hit: Hit): Promise<void> {
    this.shown?.setDecorations(this.mark, []);
    const options = { viewColumn: this.column, preserveFocus: true, preview: this.givesWay };
    const file = uriOf(hit);
    const uri = this.openBefore.has(key(this.column, file)) ? await copyOf(file) : file;
    const document = await vscode.workspace.openTextDocument(uri);
    this.brought.add(uri.toString());
    const editor = (this.shown = await vscode.window.showTextDocument(document, options));
    const lines = linesOf(hit);
    editor.setDecorations(this.mark, [lines]);
    editor.revealRange(lines, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    // Where an editor opens a new tab for each file, the earlier ones go.
    await this.closeOthers(uri);
  }
}

/** Undefined where there is no editor of a file alone; one of differences, say, is gone back to by closing what came. */
function whereTheUserIs(): Origin | undefined {
  const editor = vscode.window.activeTextEditor;
  const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
  return editor?.viewColumn !== undefined && tab?.input instanceof vscode.TabInputText
    ? { document: editor.document, column: editor.viewColumn }
    : undefined;
}

function isActive(uri: vscode.Uri): boolean {
  const { activeTab } = vscode.window.tabGroups.activeTabGroup;
  return activeTab !== undefined && uriIn(activeTab)?.toString() === uri.toString();
}

function fileTabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => uriIn(tab) !== undefined);
}

function uriIn(tab: vscode.Tab): vscode.Uri | undefined {
  return tab.input instanceof vscode.TabInputText ? tab.input.uri : undefined;
}

function keyOf(tab: vscode.Tab): string {
  return key(tab.group.viewColumn, uriIn(tab));
}

function key(column: vscode.ViewColumn, uri: vscode.Uri | undefined): string {
  return `${column} ${uri?.toString() ?? ""}`;
}

/** One for each version of the file, for VS Code keeps what it knows under a name. */
async function copyOf(uri: vscode.Uri): Promise<vscode.Uri> {
  const { version } = await vscode.workspace.openTextDocument(uri);
  return uri.with({ scheme: COPIES, query: String(version) });
}

/** Tells VS Code what is in the copies. */
export function provideCopies(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(COPIES, {
    provideTextDocumentContent: async (copy) => {
      const document = await vscode.workspace.openTextDocument(copy.with({ scheme: "file", query: "" }));
      return document.getText();
    },
  });
}
