/** Which server to run: the first of several places that has one that works. */

import { existsSync } from "node:fs";
import path from "node:path";

import { messageOf, openSetting, Problem } from "../problem";
import { run } from "./process";

export interface ServerCommand {
  command: string;
  args: string[];
  /** Where it was found, in words. */
  origin: string;
}

/** The places that may have a server, the first to be asked first. */
export interface Places {
  /** The setting `meaning.server.path`; empty if it is not set. */
  setting: string;
  /** The Python that is selected for the workspace, if it may be run. */
  selectedPython: () => Promise<string | undefined>;
  /** The folders of PATH, as the variable has them. */
  searchPath: string;
  /** The Python of the extension's own installation. */
  ownPython: () => Promise<string | undefined>;
}

/** The oldest server that knows all that this extension asks for. */
export const OLDEST_SERVER: readonly [number, number, number] = [0, 1, 0];
const VERSION = /^meaning-lsp (\d+)\.(\d+)\.(\d+)/;
/** Milliseconds: a first start from a cold or remote disk takes its time. */
const PATIENCE = 30_000;

/** Tells why a command is no server that can be used; undefined if it is one. */
export type Check = (server: ServerCommand) => Promise<string | undefined>;

/** The server to run; undefined if none is installed. Throws Problem if the setting names one that cannot be used. */
export async function locate(places: Places, check: Check, log: (line: string) => void): Promise<ServerCommand | undefined> {
  if (places.setting) {
    const server = commandOf(places.setting, "the setting meaning.server.path");
    const trouble = await check(server);
    if (trouble) {
      throw new Problem(`meaning.server.path: ${trouble}`, [openSetting("meaning.server.path")]);
    }
    return server;
  }
  for (const candidate of [() => selected(places), () => onPath(places), () => own(places)]) {
    const server = await candidate();
    const trouble = server && (await check(server));
    if (server && !trouble) {
      return server;
    }
    if (trouble) {
      log(`${server.origin}: ${trouble}`);
    }
  }
  return undefined;
}

/** How to start a server that is given as a program or as an interpreter. */
export function commandOf(file: string, origin: string): ServerCommand {
  const isPython = /^(python|pypy|py)[\d.w]*(\.exe)?$/i.test(path.basename(file));
  return { command: file, args: isPython ? ["-m", "meaning_lsp"] : [], origin };
}

async function selected(places: Places): Promise<ServerCommand | undefined> {
  const python = await places.selectedPython();
  return python ? { command: python, args: ["-m", "meaning_lsp"], origin: `the selected Python, ${python}` } : undefined;
}

async function own(places: Places): Promise<ServerCommand | undefined> {
  const python = await places.ownPython();
  return python ? { command: python, args: ["-m", "meaning_lsp"], origin: "the extension's own installation" } : undefined;
}

function onPath(places: Places): Promise<ServerCommand | undefined> {
  const program = which("meaning-lsp", places.searchPath);
  return Promise.resolve(program ? commandOf(program, `the PATH, ${program}`) : undefined);
}

/** The first file of this name on the path. Relative folders are left out: they would be those of the workspace. */
export function which(name: string, searchPath: string): string | undefined {
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  return searchPath
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .flatMap((folder) => names.map((each) => path.join(folder, each)))
    .find((file) => existsSync(file));
}

/** Runs the server to ask for its version. `cwd` is a folder of our own: Python looks for packages where it is started. */
export function checkIn(cwd: string): Check {
  return async ({ command, args }) => {
    try {
      const ended = await run(command, [...args, "--version"], { cwd, timeout: PATIENCE });
      return ended.code === 0 ? judgeVersion(command, ended.stdout) : `${command}: ${lastLine(ended.output)}`;
    } catch (error) {
      return messageOf(error);
    }
  };
}

export function judgeVersion(command: string, stdout: string): string | undefined {
  const found = VERSION.exec(stdout);
  if (!found) {
    const [said = ""] = stdout.trim().slice(0, 80).split("\n");
    return `${command} is no meaning-lsp: asked for its version, it says "${said}"`;
  }
  const version = found.slice(1).map(Number);
  if (compare(version, OLDEST_SERVER) < 0) {
    return `${command} is meaning-lsp ${version.join(".")}; this extension needs ${OLDEST_SERVER.join(".")} or later`;
  }
  return undefined;
}

export function compare(left: readonly number[], right: readonly number[]): number {
  const at = right.findIndex((part, index) => part !== (left[index] ?? 0));
  return at < 0 ? 0 : (left[at] ?? 0) - (right[at] ?? 0);
}

function lastLine(output: string): string {
  return output.trim().split("\n").at(-1) ?? "it ends without a word";
}
