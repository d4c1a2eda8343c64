/** The language client of one server process. */

import { once } from "node:events";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  RevealOutputChannelOn,
  type DynamicFeature,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";

import { messageOf, Problem, RESTART, SHOW_LOG } from "../problem";
import { INDEX_CHANGED, type FolderStatus } from "../protocol";
import { serverSettings } from "../settings";
import type { ServerCommand } from "./locate";
import type { Started } from "./supervisor";

/** Milliseconds in which a process that ended has its last line read. */
const LAST_WORDS = 500;

export interface Hooks {
  log: vscode.LogOutputChannel;
  /** The process ended, and nobody had asked it to. */
  crashed: () => void;
  folderChanged: (status: FolderStatus) => void;
}

/** Start a server in `cwd`, a folder of our own: Python looks for packages where it is started. */
export async function startClient(server: ServerCommand, cwd: string, hooks: Hooks): Promise<Started<LanguageClient>> {
  let answered = false; // until then, the start itself fails
  const heard = new Heard(hooks.log);
  const client = new Client(
    "meaning",
    "Meaning",
    { command: server.command, args: server.args, options: { cwd } },
    options(heard, () => answered && hooks.crashed()),
  );
  const listening = client.onNotification(INDEX_CHANGED, hooks.folderChanged);
  try {
    await client.start();
  } catch (error) {
    const reason = (await heard.lastWords()) ?? messageOf(error);
    throw new Problem(`The search server cannot be started (${server.command}): ${reason}`, [SHOW_LOG, RESTART]);
  }
  answered = true;
  return {
    client,
    stop: async () => {
      listening.dispose();
      await client.dispose().catch((error: unknown) => hooks.log.warn(String(error)));
    },
  };
}

function options(heard: Heard, closed: () => void): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }],
    outputChannel: heard.log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    stdioOptions: { stdout: () => undefined, stderr: (input) => heard.listen(input) },
    // One that cannot be written to has closed, or is about to.
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        closed();
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
    initializationFailedHandler: () => false,
    middleware: {
      // The status item shows it.
      handleWorkDoneProgress: () => undefined,
      workspace: {
        configuration: (params) => params.items.map(({ section }) => (section === "meaning" ? serverSettings() : null)),
        // The server asks for what it wants to know, and gets what the user set.
        didChangeConfiguration: (_sections, next) => next(undefined),
      },
    },
  };
}

/** What the server says on stderr, which is its log. Python writes the level at the beginning of each line. */
class Heard {
  private last: string | undefined;
  private over: Promise<unknown> = Promise.resolve();

  constructor(readonly log: vscode.LogOutputChannel) {}

  listen(input: NodeJS.ReadableStream): void {
    const lines = readline.createInterface({ input }).on("line", (line) => this.take(line));
    this.over = once(lines, "close");
  }

  /** Its last line, which is the reason if it ended by itself. */
  async lastWords(): Promise<string | undefined> {
    await Promise.race([this.over, sleep(LAST_WORDS)]);
    return this.last;
  }

  private take(line: string): void {
    const [, level, text] = /^(INFO|WARNING|ERROR|CRITICAL) (.*)$/.exec(line) ?? [];
    const write = level === "WARNING" ? "warn" : level === "INFO" ? "info" : "error";
    this.last = text ?? line;
    this.log[write](this.last);
  }
}

class Client extends LanguageClient {
  /** What goes wrong is for the log. What the user has to know is told by who started this, and once. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** Leaves out that the client makes commands of VS Code of the server's: ours have the same names, and do more. */
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if (!("registrationType" in feature) || feature.registrationType.method !== ExecuteCommandRequest.method) {
      super.registerFeature(feature);
    }
  }
}
