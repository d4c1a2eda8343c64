/** The item in the status bar: ready, indexing, or what is wrong. A click shows all there is to know, and to do. */

import * as vscode from "vscode";

import { NotInstalled, type Service } from "../server/service";
import { summary, type Summary } from "./summary";

const BACKGROUNDS: Record<Summary["severity"], string | undefined> = {
  fine: undefined,
  warning: "statusBarItem.warningBackground",
  error: "statusBarItem.errorBackground",
};

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("meaning.status", vscode.StatusBarAlignment.Right, 90);
  private readonly listening: vscode.Disposable;

  constructor(private readonly service: Service) {
    this.item.name = "Meaning";
    this.item.command = "meaning.status";
    this.listening = service.onDidChange(() => this.draw());
  }

  dispose(): void {
    this.listening.dispose();
    this.item.dispose();
  }

  private draw(): void {
    const { state } = this.service;
    const isInstalled = !(state.kind === "failed" && state.error instanceof NotInstalled);
    const shown = summary(state, this.service.openFolders(), isInstalled);
    if (!shown) {
      this.item.hide();
      return;
    }
    const background = BACKGROUNDS[shown.severity];
    this.item.text = shown.text;
    this.item.tooltip = shown.details.join("\n");
    this.item.backgroundColor = background === undefined ? undefined : new vscode.ThemeColor(background);
    this.item.show();
  }
}
