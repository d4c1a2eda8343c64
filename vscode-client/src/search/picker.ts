/** A list of hits in which one looks around and picks: how rows look, and what can be done with them. */

import * as vscode from "vscode";

import type { Fix } from "../problem";
import type { Hit } from "../protocol";
import { badge } from "./badge";
import { openHit, pathOf, uriOf } from "./places";
import { Preview } from "./preview";
import { rowText } from "./rows";

/** What a row is for. */
type Deed =
  | { kind: "open"; hit: Hit }
  /** Put this into the search box. */
  | { kind: "type"; text: string }
  | { kind: "fix"; fix: Fix }
  | { kind: "nothing" };

export type Row = vscode.QuickPickItem & { deed: Deed };

/** What else may be done with the hits, by whoever shows them. */
export interface Outcomes {
  /** Keep all hits in a list. */
  list: (hits: readonly Hit[]) => void;
  /** A hit was opened, or all were listed. */
  used: () => void;
  type: (text: string) => void;
}

const TO_SIDE: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("split-horizontal"), tooltip: "Open to the Side" };
const LIST_ALL: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("list-flat"), tooltip: "Send All to the Results List" };
/** Milliseconds in which a click into the editor that hid the list is heard of. */
const CLICK = 60;
const CONTEXT = "meaning.picking";

/** Those on the screen, or on their way from it; the last is the one that is seen. */
const shown = new Set<Picker>();

export function currentPicker(): Picker | undefined {
  return [...shown].at(-1);
}

export class Picker {
  readonly quickPick = vscode.window.createQuickPick<Row>();
  private readonly preview = new Preview();
  private readonly subscriptions: vscode.Disposable[] = [];
  /** The row that VS Code makes the active one when rows come: nobody moved there. */
  private untouched: Row | undefined;
  /** Whether the user moved through the rows since they came. */
  moved = false;
  /** Whether the user did something with a hit. */
  private done = false;
  private clicked = false;

  constructor(title: string, private readonly outcomes: Outcomes) {
    const { quickPick } = this;
    quickPick.title = title;
    quickPick.buttons = [LIST_ALL];
    keepOrder(quickPick);
    this.subscriptions.push(
      quickPick.onDidChangeActive(([row]) => this.movedTo(row)),
      quickPick.onDidAccept(() => void this.accept(quickPick.activeItems[0])),
      quickPick.onDidTriggerItemButton(({ item }) => void this.openToSide(item)),
      quickPick.onDidTriggerButton(() => void this.listAll()),
      quickPick.onDidHide(() => void this.hidden()),
      vscode.window.onDidChangeTextEditorSelection((event) => {
        this.clicked ||= event.kind === vscode.TextEditorSelectionChangeKind.Mouse && this.preview.isIn(event.textEditor);
      }),
    );
  }

  show(): void {
    shown.add(this);
    void vscode.commands.executeCommand("setContext", CONTEXT, true);
    this.quickPick.show();
  }

  setRows(rows: readonly Row[]): void {
    this.untouched = rows[0];
    this.moved = false;
    this.quickPick.items = rows;
  }

  onHide(act: () => void): void {
    this.subscriptions.push(this.quickPick.onDidHide(act));
  }

  async openToSide(row = this.quickPick.activeItems[0]): Promise<void> {
    if (row?.deed.kind === "open") {
      await this.finish();
      await this.preview.restore();
      await openHit(row.deed.hit, vscode.ViewColumn.Beside);
    }
  }

  async listAll(): Promise<void> {
    const hits = this.quickPick.items.flatMap(({ deed }) => (deed.kind === "open" ? [deed.hit] : []));
    if (hits.length) {
      await this.finish();
      await this.preview.restore();
      this.outcomes.list(hits);
    }
  }

  private movedTo(row: Row | undefined): void {
    const isMove = row !== this.untouched || this.moved;
    this.moved ||= isMove && row !== undefined;
    if (isMove && row?.deed.kind === "open") {
      this.preview.show(row.deed.hit);
    }
  }

  private async accept(row: Row | undefined): Promise<void> {
    switch (row?.deed.kind) {
      case "open":
        return this.open(row.deed.hit);
      case "type":
        this.outcomes.type(row.deed.text);
        return;
      case "fix":
        this.quickPick.hide();
        await vscode.commands.executeCommand(row.deed.fix.command, ...(row.deed.fix.arguments ?? []));
        return;
      case "nothing":
      case undefined:
    }
  }

  private async open(hit: Hit): Promise<void> {
    await this.finish();
    await this.preview.settle();
    await openHit(hit, vscode.ViewColumn.Active);
    await this.preview.closeOthers(uriOf(hit));
  }

  private finish(): Promise<void> {
    this.done = true;
    this.outcomes.used();
    this.quickPick.hide();
    return Promise.resolve();
  }

  private async hidden(): Promise<void> {
    shown.delete(this);
    await vscode.commands.executeCommand("setContext", CONTEXT, shown.size > 0);
    if (!this.done) {
      await new Promise((waited) => setTimeout(waited, CLICK));
      await (this.clicked ? this.preview.settle() : this.preview.restore());
    }
    this.subscriptions.forEach((each) => void each.dispose());
    this.quickPick.dispose();
  }
}

/** Rows stay as the server ranks them. VS Code puts those first whose label holds what was typed, unless it is told by a
 * property that it has and its types do not know; without it, the order is another one and nothing else. */
function keepOrder(quickPick: vscode.QuickPick<Row>): void {
  (quickPick as unknown as { sortByLabel: boolean }).sortByLabel = false;
}

export function hitRow(hit: Hit): Row {
  const iconPath = vscode.Uri.parse(badge(hit.language));
  return { ...rowText(hit, pathOf(hit)), iconPath, alwaysShow: true, buttons: [TO_SIDE], deed: { kind: "open", hit } };
}

export function typingRow(icon: string, label: string, text: string, description = ""): Row {
  return { label: `$(${icon}) ${label}`, description, alwaysShow: true, deed: { kind: "type", text } };
}

export function messageRows(message: string, icon: string, fixes: readonly Fix[] = []): Row[] {
  const rows = fixes.map((fix): Row => ({ label: `$(lightbulb) ${fix.title}`, alwaysShow: true, deed: { kind: "fix", fix } }));
  return [{ label: `$(${icon}) ${message}`, alwaysShow: true, deed: { kind: "nothing" } }, ...rows];
}
