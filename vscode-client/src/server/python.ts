/** Finds a Python that can make the extension's own installation. */

import path from "node:path";

import { openSetting, Problem } from "../problem";
import { compare, which } from "./locate";
import { run } from "./process";

/** As `requires-python` in pyproject.toml; a test in `tests/vscode` holds them together. */
export const OLDEST_PYTHON: readonly number[] = [3, 10];
export const FIRST_PYTHON_TOO_NEW: readonly number[] = [3, 14];
const NAMES = ["python3.13", "python3.12", "python3.11", "python3.10", "python3", "python"];
/** Where installers put Python on macOS, whose editors are not started from a shell and have a short PATH. */
const MAC_FOLDERS = ["/opt/homebrew/bin", "/usr/local/bin"];
const QUESTION =
  "import sys, json, importlib.util as u;" +
  "print(json.dumps([sys.version_info[:2], sys.executable, all(map(u.find_spec, ['venv', 'ensurepip']))]))";
const PATIENCE = 30_000;

/** What an interpreter says of itself. */
export interface Python {
  file: string;
  version: readonly number[];
  /** Whether it can make virtual environments. */
  hasVenv: boolean;
}

/** The first usable Python. Throws Problem that says what is wrong with those that are there. */
export async function findPython(searchPath: string, selected: string | undefined, cwd: string): Promise<Python> {
  const seen: Python[] = [];
  for (const candidate of candidates(searchPath, selected)) {
    const python = await ask(candidate, cwd);
    if (python && isUsable(python)) {
      return python;
    }
    if (python) {
      seen.push(python);
    }
  }
  throw new Problem(whyNone(seen), [
    { title: "Get Python", command: "vscode.open", arguments: ["https://www.python.org/downloads/"] },
    openSetting("meaning.server.path"),
  ]);
}

export function isUsable(python: Python): boolean {
  return python.hasVenv && isFitting(python);
}

function isFitting({ version }: Python): boolean {
  return compare(version, OLDEST_PYTHON) >= 0 && compare(version, FIRST_PYTHON_TOO_NEW) < 0;
}

/** What to tell somebody whose interpreters, if there are any, are all of no use. */
export function whyNone(seen: readonly Python[]): string {
  const wanted = `The search server needs Python ${OLDEST_PYTHON.join(".")} to 3.${(FIRST_PYTHON_TOO_NEW[1] ?? 0) - 1}`;
  const withoutVenv = seen.find(isFitting);
  if (withoutVenv) {
    return `${withoutVenv.file} cannot make virtual environments: its venv or ensurepip module is missing. On Debian and Ubuntu: sudo apt install python3-venv.`;
  }
  if (seen.length) {
    const found = seen.map(({ file, version }) => `${file} is ${version.join(".")}`);
    return `${wanted}. ${[...new Set(found)].join(", ")}.`;
  }
  return `${wanted}, and no Python was found here. Install one, or name one in meaning.server.path.`;
}

function candidates(searchPath: string, selected: string | undefined): string[] {
  const folders = process.platform === "darwin" ? [searchPath, ...MAC_FOLDERS].join(path.delimiter) : searchPath;
  const found = NAMES.map((name) => which(name, folders)).filter((file) => file !== undefined);
  return [...new Set(selected ? [selected, ...found] : found)];
}

/** Undefined for a file that is no interpreter, as the one of Windows that opens a shop. */
async function ask(file: string, cwd: string): Promise<Python | undefined> {
  try {
    const { stdout } = await run(file, ["-c", QUESTION], { cwd, timeout: PATIENCE });
    const [version, executable, hasVenv] = JSON.parse(stdout) as [number[], string, boolean];
    return { file: executable || file, version, hasVenv };
  } catch {
    return undefined;
  }
}
