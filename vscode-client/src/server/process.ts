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

/** Rejects if it cannot be started, takes longer than `timeout`, or was stopped by `signal`. */
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
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...ended, code }));
  });
}

function until({ timeout, signal }: Options): AbortSignal | undefined {
  return timeout === undefined ? signal : AbortSignal.any([AbortSignal.timeout(timeout), ...(signal ? [signal] : [])]);
}
