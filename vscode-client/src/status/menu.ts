/** What the status item's click shows: the state in full, and the commands that do something about it. */

import * as vscode from "vscode";

import { fixesOf, messageOf, type Fix } from "../problem";
import type { Service } from "../server/service";
import { sentence, summary } from "./summary";

type Line = vscode.QuickPickItem & { fix?: Fix };

const COMMANDS: readonly (readonly [icon: string, fix: Fix])[] = [
  ["search-fuzzy", { title: "Search code by meaning", command: "meaning.search" }],
  ["refresh", { title: "Re-index Workspace", command: "meaning.reindex" }],
  ["debug-restart", { title: "Restart Search Server", command: "meaning.restart" }],
  ["output", { title: "Show Log", command: "meaning.showLog" }],
  ["symbol-misc", { title: "Choose Model", command: "meaning.chooseModel" }],
  ["gear", { title: "Open Settings", command: "workbench.action.openSettings", arguments: ["@ext:meaning-lsp.meaning-lsp"] }],
];

export async function showStatus(service: Service): Promise<void> {
  const lines = [...(await state(service)), separator("Commands"), ...commands()];
  const chosen = await vscode.window.showQuickPick(lines, { title: "Meaning: Status", placeHolder: "Choose what to do" });
  if (chosen?.fix) {
    await vscode.commands.executeCommand(chosen.fix.command, ...(chosen.fix.arguments ?? []));
  }
}

async function state(service: Service): Promise<Line[]> {
  if (service.state.kind !== "running") {
    const error = service.state.kind === "failed" ? service.state.error : undefined;
    const told = error === undefined ? (summary(service.state, [], true)?.details ?? ["The search server is not running."]) : [messageOf(error)];
    return [...told.map((label) => ({ label: `$(info) ${label}` })), ...fixesOf(error).map(fixLine)];
  }
  try {
    const { version, model, problem, folders } = await service.status();
    return [
      { label: `$(server-process) meaning-lsp ${version}`, detail: `from ${service.server?.origin ?? "?"}` },
      { label: `$(symbol-misc) ${model ?? "No model can be used"}`, ...(problem === null ? {} : { detail: problem }) },
      ...folders.map((folder): Line => ({ label: `$(folder) ${sentence(folder)}`, detail: watchSentence(folder.watch) })),
    ];
  } catch (error) {
    return [{ label: `$(error) ${messageOf(error)}` }];
  }
}

function watchSentence(watch: string): string {
  return watch === "watching" ? "Changes of files are seen at once." : `Changes of files by other programs may be seen late (${watch}).`;
}

function commands(): Line[] {
  return COMMANDS.map(([icon, fix]) => ({ label: `$(${icon}) ${fix.title}`, fix }));
}

function fixLine(fix: Fix): Line {
  return { label: `$(lightbulb) ${fix.title}`, fix };
}

function separator(label: string): Line {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}
