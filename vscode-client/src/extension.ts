/** What VS Code calls: commands, and when there is something to do without one. */

import * as vscode from "vscode";

import { chooseModel } from "./models";
import { fixesOf, messageOf, SHOW_LOG, type Fix } from "./problem";
import { clearHistory, LiveSearch } from "./search/live";
import { currentPicker } from "./search/picker";
import { provideCopies } from "./search/preview";
import { Results } from "./search/results";
import { findSimilar } from "./search/similar";
import { Service } from "./server/service";
import { affectsServerPath } from "./settings";
import { StatusItem } from "./status/item";
import { showStatus } from "./status/menu";

let service: Service | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Meaning", { log: true });
  const server = (service = new Service(context, log, {
    crashed: () => void say("warning", "The search server stopped unexpectedly and is started again.", [SHOW_LOG]),
    gaveUp: (error) => void say("error", error.message, error.fixes),
  }));
  const results = new Results();
  const search = (query?: unknown) => withServer(server, () => new LiveSearch(server, context.workspaceState, results).show(textOf(query)));
  const commands: Record<string, (...given: unknown[]) => unknown> = {
    "meaning.search": search,
    "meaning.similar": () => withServer(server, () => similar(server, results)),
    "meaning.status": () => showStatus(server),
    "meaning.reindex": () => withServer(server, () => reindex(server)),
    "meaning.restart": () => telling(() => server.restart()),
    "meaning.showLog": () => log.show(),
    "meaning.chooseModel": () => chooseModel(),
    "meaning.install": () => telling(() => server.install().then(() => server.restart())),
    "meaning.clearHistory": () => clearHistory(context.workspaceState),
    "meaning.openToSide": () => currentPicker()?.openToSide(),
    "meaning.listHits": () => currentPicker()?.listAll(),
    "meaning.results.again": () => search(results.query),
    "meaning.results.clear": () => results.clear(),
  };
  context.subscriptions.push(
    log,
    results,
    provideCopies(),
    new StatusItem(server),
    ...Object.entries(commands).map(([name, act]) => vscode.commands.registerCommand(name, act)),
    vscode.workspace.onDidChangeConfiguration((event) => affectsServerPath(event) && server.replace()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.replace()),
    vscode.workspace.onDidOpenTextDocument((document) => startForCode(server, [document])),
  );
  startForCode(server, vscode.workspace.textDocuments);
}

export async function deactivate(): Promise<void> {
  await service?.dispose();
}

/** Code is being looked at: have it indexed before anybody asks. In a folder without code, nothing runs. */
function startForCode(server: Service, documents: readonly vscode.TextDocument[]): void {
  const isCode = documents.some(({ uri, languageId }) => uri.scheme === "file" && codeLanguages().has(languageId));
  if (isCode && server.state.kind === "stopped" && hasFolders()) {
    server.startQuietly();
  }
}

/** The languages that the extension is activated for. */
function codeLanguages(): Set<string> {
  const manifest = vscode.extensions.getExtension("meaning-lsp.meaning-lsp")?.packageJSON as { activationEvents: string[] };
  return new Set(manifest.activationEvents.map((event) => event.replace("onLanguage:", "")));
}

function hasFolders(): boolean {
  return vscode.workspace.workspaceFolders?.some(({ uri }) => uri.scheme === "file") ?? false;
}

/** Do what needs the server, once it is there. */
async function withServer(server: Service, act: () => unknown): Promise<void> {
  if (!hasFolders()) {
    await say("warning", "Open a folder first: its code is what is searched.", [{ title: "Open Folder", command: "workbench.action.files.openFolder" }]);
    return;
  }
  await telling(async () => {
    if (await server.startForUser()) {
      await act();
    }
  });
}

async function similar(server: Service, results: Results): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor) {
    await findSimilar(server, results, editor);
  } else {
    await say("warning", "Put the cursor into a function, or select some code.", []);
  }
}

async function reindex(server: Service): Promise<void> {
  const { folders } = await server.reindex();
  const sum = (name: "units" | "files") => folders.reduce((total, folder) => total + folder[name], 0).toLocaleString("en");
  void vscode.window.setStatusBarMessage(`$(check) ${sum("units")} pieces of code in ${sum("files")} files are indexed`, 5_000);
}

/** Show what goes wrong, with the ways out. What the user stopped did not go wrong. */
async function telling(act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof vscode.CancellationError)) {
      await say("error", messageOf(error), fixesOf(error));
    }
  }
}

async function say(kind: "warning" | "error", message: string, fixes: readonly Fix[]): Promise<void> {
  const show = kind === "error" ? vscode.window.showErrorMessage : vscode.window.showWarningMessage;
  const chosen = await show(message, ...fixes.map(({ title }) => title));
  const fix = fixes.find(({ title }) => title === chosen);
  if (fix) {
    await vscode.commands.executeCommand(fix.command, ...(fix.arguments ?? []));
  }
}

function textOf(query: unknown): string {
  return typeof query === "string" ? query : "";
}
