/** Runs a program to its end. */

import { spawn } from "node:child_process";

export interface Ended {
  /** The exit status; null if a signal ended it. */
  code: number | null;
  stdout: string;
  /** Both streams, as they came. */
  output: string;
}

export interface Options {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Milliseconds until it is ended. */
  timeout?: number;
  signal?: AbortSignal;
  onLine?: (line: string) => void;
}

/** Rejects, in words for the user, if it cannot be started or takes longer than `timeout`; and if `signal` stopped it. */
export function run(command: string, args: readonly string[], options: Options = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const settings = { cwd: options.cwd, env: options.env, signal: until(options), killSignal: "SIGKILL" as const, windowsHide: true };
    const child = spawn(command, args, { ...settings, stdio: ["ignore", "pipe", "pipe"] });
    const ended: Ended = { code: null, stdout: "", output: "" };
    let line = "";
    const take = (text: string) => {
      ended.output += text;
      const lines = (line + text).split(/\r?\n/);
      line = lines.pop() ?? "";
      lines.forEach((each) => options.onLine?.(each));
    };
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      ended.stdout += text;
      take(text);
    });
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", (error) => reject(inWords(command, error, options)));
    child.on("close", (code) => resolve({ ...ended, code }));
  });
}

function inWords(command: string, error: NodeJS.ErrnoException, { timeout, signal }: Options): Error {
  switch (error.code) {
    case "ENOENT":
      return new Error(`there is no program ${command}`);
    case "EACCES":
      return new Error(`${command} cannot be run: it is no program, or one that you may not run`);
    case "ABORT_ERR":
      return signal?.aborted || timeout === undefined ? error : new Error(`${command} says nothing for ${timeout / 1000} s`);
    case undefined:
    default:
      return new Error(`${command} cannot be run (${error.code ?? error.message})`);
  }
}

function until({ timeout, signal }: Options): AbortSignal | undefined {
  return timeout === undefined ? signal : AbortSignal.any([AbortSignal.timeout(timeout), ...(signal ? [signal] : [])]);
}
