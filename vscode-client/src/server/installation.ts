/** The extension's own installation of the server: a virtual environment, made from the wheel that the extension carries. */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";

import { messageOf, Problem, INSTALL, SHOW_LOG } from "../problem";
import { explain, progressOf } from "./pip";
import { run } from "./process";

/** `wheel.json`, which stands beside the wheel. */
export interface Wheel {
  file: string;
  version: string;
  sha256: string;
}

/** What stands in the storage for the installation that is whole. */
interface Pointer {
  folder: string;
  sha256: string;
}

const POINTER = "server.json";
const PREFIX = "server-";
/** Milliseconds after which a folder that nothing points to is not one that another window is filling. */
const ABANDONED = 60 * 60_000;
const PIP = ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off", "--prefer-binary", "--retries", "2"];

export interface Installing {
  /** The interpreter that makes the environment. */
  python: string;
  /** Added to the environment of pip. */
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  /** What is being done now, in a word or two. */
  progress: (step: string) => void;
  log: (line: string) => void;
}

export class Installation {
  /** `storage` is the extension's own folder, `wheels` the one with the wheel and `wheel.json`. */
  constructor(
    private readonly storage: string,
    private readonly wheels: string,
  ) {}

  /** The Python of the installation; undefined if there is none. */
  async python(): Promise<string | undefined> {
    const pointer = await this.pointer();
    const python = pointer && pythonIn(path.join(this.storage, pointer.folder));
    return python && existsSync(python) ? python : undefined;
  }

  /** Whether there is an installation, and it is of another wheel than the extension carries now. */
  async isOutdated(): Promise<boolean> {
    const pointer = await this.pointer();
    return pointer !== undefined && pointer.sha256 !== (await this.wheel()).sha256;
  }

  /** Make it. Throws Problem; what was there before is still there then. */
  async install(how: Installing): Promise<void> {
    const wheel = await this.wheel();
    const name = `${PREFIX}${wheel.version}-${randomBytes(4).toString("hex")}`;
    const folder = path.join(this.storage, name);
    try {
      await mkdir(this.storage, { recursive: true });
      how.progress("making an environment");
      await this.step(how, how.python, ["-m", "venv", folder]);
      await this.step(how, pythonIn(folder), [...PIP, `${path.join(this.wheels, wheel.file)}[cpu]`]);
      how.progress("trying it out");
      await this.step(how, pythonIn(folder), ["-m", "meaning_lsp", "--version"]);
      await this.pointTo({ folder: name, sha256: wheel.sha256 });
    } catch (error) {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      throw error instanceof Problem || how.signal.aborted ? error : failure(messageOf(error));
    }
    await this.removeOthers(name);
  }

  private async step(how: Installing, command: string, args: readonly string[]): Promise<void> {
    const onLine = (line: string) => {
      how.log(line);
      const step = progressOf(line);
      if (step) {
        how.progress(step);
      }
    };
    how.log(`${command} ${args.join(" ")}`);
    const env = { ...process.env, ...how.env };
    const ended = await run(command, args, { cwd: this.storage, env, signal: how.signal, onLine });
    if (ended.code !== 0) {
      throw failure(ended.output);
    }
  }

  private async wheel(): Promise<Wheel> {
    return JSON.parse(await readFile(path.join(this.wheels, "wheel.json"), "utf8")) as Wheel;
  }

  private async pointer(): Promise<Pointer | undefined> {
    try {
      return JSON.parse(await readFile(path.join(this.storage, POINTER), "utf8")) as Pointer;
    } catch {
      return undefined;
    }
  }

  /** In one step, so that there is never half a pointer. */
  private async pointTo(pointer: Pointer): Promise<void> {
    const file = path.join(this.storage, POINTER);
    await writeFile(`${file}.new`, JSON.stringify(pointer));
    await rename(`${file}.new`, file);
  }

  /** Those of earlier versions, and what installations that were ended left; not what another window is making. */
  private async removeOthers(name: string): Promise<void> {
    for (const other of await readdir(this.storage)) {
      const folder = path.join(this.storage, other);
      if (other.startsWith(PREFIX) && other !== name && Date.now() - (await stat(folder)).mtimeMs > ABANDONED) {
        await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      }
    }
  }
}

function pythonIn(environment: string): string {
  return process.platform === "win32" ? path.join(environment, "Scripts", "python.exe") : path.join(environment, "bin", "python");
}

function failure(output: string): Problem {
  return new Problem(`The search server could not be installed. ${explain(output)}`, [{ ...INSTALL, title: "Try Again" }, SHOW_LOG]);
}
