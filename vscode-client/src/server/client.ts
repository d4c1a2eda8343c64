/** The language client of one server process. */

import readline from "node:readline";
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

import { INDEX_CHANGED, type FolderStatus } from "../protocol";
import { serverSettings } from "../settings";
import type { ServerCommand } from "./locate";
import type { Started } from "./supervisor";

export interface Hooks {
  log: vscode.LogOutputChannel;
  /** The process ended, and nobody had asked it to. */
  crashed: () => void;
  folderChanged: (status: FolderStatus) => void;
}

/** Start a server in `cwd`, a folder of our own: Python looks for packages where it is started. */
export async function startClient(server: ServerCommand, cwd: string, hooks: Hooks): Promise<Started<LanguageClient>> {
  let answered = false; // until then, the start itself fails
  const client = new Client(
    "meaning",
    "Meaning",
    { command: server.command, args: server.args, options: { cwd } },
    options(hooks.log, () => answered && hooks.crashed()),
  );
  const listening = client.onNotification(INDEX_CHANGED, hooks.folderChanged);
  await client.start();
  answered = true;
  return {
    client,
    stop: async () => {
      listening.dispose();
      await client.dispose().catch((error: unknown) => hooks.log.warn(String(error)));
    },
  };
}

function options(log: vscode.LogOutputChannel, closed: () => void): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }],
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    stdioOptions: { stdout: () => undefined, stderr: (input) => copyLog(input, log) },
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

/** The server's log begins each line with its level, as Python writes it. */
function copyLog(input: NodeJS.ReadableStream, log: vscode.LogOutputChannel): void {
  readline.createInterface({ input }).on("line", (line) => {
    const [, level, text] = /^(INFO|WARNING|ERROR|CRITICAL) (.*)$/.exec(line) ?? [];
    const write = level === "WARNING" ? "warn" : level === "INFO" ? "info" : "error";
    log[write](text ?? line);
  });
}

/** Leaves out that the client makes commands of VS Code of the server's: ours have the same names, and do more. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if (!("registrationType" in feature) || feature.registrationType.method !== ExecuteCommandRequest.method) {
      super.registerFeature(feature);
    }
  }
}
