/** The server as the rest of the extension knows it: there when it is needed, whoever has to be asked for that. */

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

import { INSTALL, messageOf, Problem } from "../problem";
import { REINDEX, SEARCH, SIMILAR, STATUS, type Answer, type FolderStatus, type Reindexed, type ServerStatus } from "../protocol";
import { serverPath } from "../settings";
import { Installation } from "./installation";
import { checkIn, locate, type ServerCommand } from "./locate";
import { findPython } from "./python";
import { SelectedPython } from "./selectedPython";
import { Supervisor, type Observer, type Started, type State } from "./supervisor";

/** There is no server to start, and the user has not been asked yet. */
export class NotInstalled extends Problem {
  constructor() {
    super("The search server is not installed.", [INSTALL]);
  }
}

const CONSENT_DETAIL =
  "It runs on this machine and sends nothing anywhere. The extension brings it along; the Python packages that it needs " +
  "are downloaded once from pypi.org, about 75 MB, into the extension's own folder. Your own Python environments stay as they are.";

export class Service implements vscode.Disposable {
  private readonly supervisor: Supervisor<LanguageClient>;
  private readonly installation: Installation;
  private readonly selectedPython = new SelectedPython();
  private readonly changed = new vscode.EventEmitter<void>();
  private installing: Promise<void> | undefined;
  /** The server that was started last. */
  server: ServerCommand | undefined;
  /** The state of each workspace folder, by its URI. */
  private readonly folders = new Map<string, FolderStatus>();

  /** The server's state, or that of its folders, is another one. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    observer: Omit<Observer, "changed">,
  ) {
    this.installation = new Installation(this.storage, context.asAbsolutePath("wheel"));
    this.supervisor = new Supervisor((crashed) => this.launch(crashed), { ...observer, changed: () => this.changed.fire() });
    this.selectedPython.onDidChange(() => void this.pythonChanged());
  }

  get state(): State {
    return this.supervisor.state;
  }

  /** Start the server if that needs nobody's consent. Whatever is wrong stands in `state`. */
  startQuietly(): void {
    this.supervisor.ensure().catch((error: unknown) => this.log.warn(messageOf(error)));
  }

  /** Start the server, asking the user where that is needed. False if they would rather not. Throws Problem. */
  async startForUser(): Promise<boolean> {
    try {
      await this.supervisor.ensure();
    } catch (error) {
      if (!(error instanceof NotInstalled)) {
        throw error;
      }
      return (await this.askToInstall()) && this.startForUser();
    }
    return true;
  }

  search(query: string, signal: AbortSignal): Promise<Answer> {
    return this.request(SEARCH, { query }, signal);
  }

  similar(document: vscode.TextDocument, position: vscode.Position, signal: AbortSignal): Promise<Answer> {
    const place = { line: position.line, character: position.character };
    return this.request(SIMILAR, { textDocument: { uri: document.uri.toString() }, position: place }, signal);
  }

  status(): Promise<ServerStatus> {
    return this.request(STATUS, {});
  }

  reindex(): Promise<Reindexed> {
    return this.request(REINDEX, {});
  }

  /** The folders that are open now; the server may still speak of others. */
  openFolders(): FolderStatus[] {
    const open = new Set(vscode.workspace.workspaceFolders?.map(({ uri }) => uri.toString()));
    return [...this.folders.values()].filter(({ uri }) => open.has(vscode.Uri.parse(uri).toString()));
  }

  /** Another server may be the right one now. */
  replace(): void {
    if (this.state.kind !== "stopped") {
      this.restart().catch((error: unknown) => this.log.warn(messageOf(error)));
    }
  }

  async restart(): Promise<void> {
    this.folders.clear();
    await this.supervisor.restart();
  }

  async dispose(): Promise<void> {
    this.selectedPython.dispose();
    await this.supervisor.stop();
  }

  /** Make the extension's own installation, with progress. Throws Problem, or CancellationError if the user stops it. */
  async install(): Promise<void> {
    this.installing ??= this.doInstall().finally(() => (this.installing = undefined));
    await this.installing;
  }

  private get storage(): string {
    return this.context.globalStorageUri.fsPath;
  }

  /** An answer, once more from the next server if this one ends over it. */
  private async request<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result> {
    const client = await this.supervisor.ready();
    try {
      return await send(client, method, params, signal);
    } catch (error) {
      if (client.isRunning()) {
        throw error;
      }
      return send(await this.supervisor.ready(), method, params, signal);
    }
  }

  private async launch(crashed: () => void): Promise<Started<LanguageClient>> {
    await vscode.workspace.fs.createDirectory(this.context.globalStorageUri);
    this.server = await this.locate();
    if (!this.server) {
      throw new NotInstalled();
    }
    this.log.info(`Starting ${this.server.command} ${this.server.args.join(" ")} (${this.server.origin})`);
    // The client's code is large, and nothing needs it before this.
    const { startClient } = await import("./client");
    const folderChanged = (status: FolderStatus) => this.take(status);
    return startClient(this.server, this.storage, { log: this.log, crashed, folderChanged });
  }

  private async locate(): Promise<ServerCommand | undefined> {
    const places = {
      setting: serverPath(),
      selectedPython: () => this.selectedPython.file(),
      searchPath: process.env["PATH"] ?? "",
      ownPython: () => this.ownPython(),
    };
    return locate(places, checkIn(this.storage), (line) => this.log.info(`Not used: ${line}`));
  }

  /** The server of the Python that is selected now comes first. One that runs stays where there is no other. */
  private async pythonChanged(): Promise<void> {
    const found = await this.locate().catch(() => undefined);
    if (found && found.command !== this.server?.command) {
      this.replace();
    }
  }

  /** The user agreed to the installation; when the extension is updated, it is too. */
  private async ownPython(): Promise<string | undefined> {
    if (await this.installation.isOutdated()) {
      await this.install().catch((error: unknown) => this.log.warn(`The older server stays: ${messageOf(error)}`));
    }
    return this.installation.python();
  }

  private async askToInstall(): Promise<boolean> {
    const choice = await vscode.window.showInformationMessage(
      "Install the search server?",
      { modal: true, detail: CONSENT_DETAIL },
      "Install",
      "Use Another…",
    );
    if (choice === "Use Another…") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "meaning.server.path");
    }
    if (choice === "Install") {
      await this.install();
    }
    return choice === "Install";
  }

  private doInstall(): Promise<void> {
    const options = { location: vscode.ProgressLocation.Notification, title: "Installing the search server", cancellable: true };
    return Promise.resolve(
      vscode.window.withProgress(options, async (progress, token) => {
        const { file } = await findPython(process.env["PATH"] ?? "", await this.selectedPython.file(), this.storage);
        const installed = this.installation.install({
          python: file,
          env: proxy(),
          signal: abortedBy(token),
          progress: (message) => progress.report({ message }),
          log: (line) => this.log.info(line),
        });
        await installed.catch((error: unknown) => {
          throw token.isCancellationRequested ? new vscode.CancellationError() : error;
        });
      }),
    );
  }

  private take(status: FolderStatus): void {
    this.folders.set(status.uri, status);
    this.changed.fire();
  }
}

async function send<Result>(client: LanguageClient, method: string, params: object, signal?: AbortSignal): Promise<Result> {
  const source = new vscode.CancellationTokenSource();
  const cancel = () => source.cancel();
  signal?.addEventListener("abort", cancel);
  try {
    return await client.sendRequest<Result>(method, params, source.token);
  } finally {
    signal?.removeEventListener("abort", cancel);
    source.dispose();
  }
}

/** pip's way to the network is the editor's. */
function proxy(): NodeJS.ProcessEnv {
  const url = vscode.workspace.getConfiguration("http").get<string>("proxy");
  return url ? { HTTP_PROXY: url, HTTPS_PROXY: url } : {};
}

function abortedBy(token: vscode.CancellationToken): AbortSignal {
  const controller = new AbortController();
  token.onCancellationRequested(() => controller.abort());
  return controller.signal;
}
