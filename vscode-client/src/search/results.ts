/** The results list: the hits of one question, which stay while one works through them, and follow their code. */

import * as vscode from "vscode";

import type { Hit } from "../protocol";
import { follow } from "./following";
import { pathOf, uriOf } from "./places";

const VIEW = "meaning.results";
const CONTEXT = "meaning.hasResults";
/** Milliseconds of peace after a change of a file before its hits are looked for. */
const PEACE = 200;

/** A hit of the list. */
interface Entry {
  hit: Hit;
  uri: vscode.Uri;
  /** Where its name stands, or stood, counted from 0. */
  line: number;
  /** The file when it did. */
  lines: readonly string[];
  /** Whether the file has no such line any more. It may come back. */
  isGone: boolean;
}

export class Results implements vscode.TreeDataProvider<Entry>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private entries: readonly Entry[] = [];
  private readonly view = vscode.window.createTreeView(VIEW, { treeDataProvider: this });
  /** While there are hits: whoever tells of changes. */
  private listening: vscode.Disposable | undefined;
  private readonly touched = new Set<string>();
  private peace: NodeJS.Timeout | undefined;
  /** What was asked; empty for code that is like other code. */
  query = "";

  async show(title: string, hits: readonly Hit[], query = ""): Promise<void> {
    this.query = query;
    this.view.description = title;
    this.listening ??= this.listen();
    this.entries = await entriesOf(hits);
    this.changed.fire();
    await this.appear();
  }

  clear(): void {
    this.entries = [];
    this.stopListening();
    this.changed.fire();
    void vscode.commands.executeCommand("setContext", CONTEXT, false);
  }

  getChildren(parent?: Entry): Entry[] {
    return parent ? [] : [...this.entries];
  }

  /** The list is flat. VS Code asks because of `reveal`. */
  getParent(): undefined {
    return undefined;
  }

  getTreeItem({ hit, uri, line, isGone }: Entry): vscode.TreeItem {
    const item = new vscode.TreeItem(hit.containerName ? `${hit.containerName}.${hit.name}` : hit.name);
    item.description = `${pathOf(hit)}:${line + 1}${isGone ? " (gone since)" : ""}`;
    item.resourceUri = uri;
    item.iconPath = vscode.ThemeIcon.File;
    item.tooltip = hit.preview.trim();
    const start = new vscode.Position(line, hit.selectionRange.start.character);
    const options: vscode.TextDocumentShowOptions = { selection: new vscode.Range(start, start), preserveFocus: true };
    item.command = { command: "vscode.open", title: "Open", arguments: [uri, options] };
    return item;
  }

  dispose(): void {
    this.stopListening();
    this.view.dispose();
  }

  /** To what is typed, and to what happens to files on disk. */
  private listen(): vscode.Disposable {
    const files = vscode.workspace.createFileSystemWatcher("**/*");
    const touched = (uri: vscode.Uri) => this.touch(uri);
    return vscode.Disposable.from(
      files,
      files.onDidChange(touched),
      files.onDidCreate(touched),
      files.onDidDelete(touched),
      vscode.workspace.onDidChangeTextDocument(({ document }) => touched(document.uri)),
    );
  }

  private stopListening(): void {
    clearTimeout(this.peace);
    this.listening?.dispose();
    this.listening = undefined;
  }

  private touch(uri: vscode.Uri): void {
    if (this.entries.some((entry) => entry.uri.toString() === uri.toString())) {
      this.touched.add(uri.toString());
      clearTimeout(this.peace);
      this.peace = setTimeout(() => void this.followTouched(), PEACE);
    }
  }

  /** Put the hits of the files that changed where they are now. */
  private async followTouched(): Promise<void> {
    const files = [...this.touched];
    this.touched.clear();
    for (const file of files) {
      const lines = await linesOfFile(vscode.Uri.parse(file));
      this.entries.filter(({ uri }) => uri.toString() === file).forEach((entry) => move(entry, lines));
    }
    this.changed.fire();
  }

  private async appear(): Promise<void> {
    await vscode.commands.executeCommand("setContext", CONTEXT, true);
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    const first = this.entries[0];
    if (first) {
      await this.view.reveal(first, { focus: true });
    }
  }
}

async function entriesOf(hits: readonly Hit[]): Promise<Entry[]> {
  const files = new Map<string, Promise<string[]>>();
  return Promise.all(
    hits.map(async (hit) => {
      const uri = uriOf(hit);
      const lines = files.get(hit.location.uri) ?? linesOfFile(uri);
      files.set(hit.location.uri, lines);
      return { hit, uri, line: hit.selectionRange.start.line, lines: await lines, isGone: false };
    }),
  );
}

function move(entry: Entry, lines: readonly string[]): void {
  const line = follow(entry.line, entry.lines, lines);
  entry.isGone = line === undefined;
  if (line !== undefined) {
    Object.assign(entry, { line, lines });
  }
}

/** As an editor shows it, saved or not; none of a file that cannot be read. */
async function linesOfFile(uri: vscode.Uri): Promise<string[]> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  try {
    const text = open ? open.getText() : Buffer.from(await vscode.workspace.fs.readFile(uri)).toString("utf8");
    return text.split(/\r\n|\r|\n/);
  } catch {
    return [];
  }
}
