/** The states of the server and of its folders, as one line that a status bar has room for. */

import { messageOf } from "../problem";
import type { FolderStatus } from "../protocol";
import type { State } from "../server/supervisor";

export interface Summary {
  /** With the names of icons, as VS Code reads them. */
  text: string;
  /** What there is to know beside it, one sentence a line. */
  details: string[];
  severity: "fine" | "warning" | "error";
}

const NAME = "Meaning";

/** Undefined while there is nothing to tell: no server was needed yet. */
export function summary(state: State, folders: readonly FolderStatus[], isInstalled: boolean): Summary | undefined {
  switch (state.kind) {
    case "stopped":
      return undefined;
    case "starting":
    case "waiting":
      return { text: `$(sync~spin) ${NAME}`, details: ["The search server is being started."], severity: "fine" };
    case "failed":
      return isInstalled
        ? { text: `$(error) ${NAME}`, details: [messageOf(state.error)], severity: "error" }
        : { text: `$(cloud-download) ${NAME}`, details: ["The search server is not installed yet."], severity: "fine" };
    case "running":
      return running(folders);
  }
}

function running(folders: readonly FolderStatus[]): Summary {
  const failed = folders.filter((folder) => folder.state === "failed");
  const details = folders.map(sentence);
  if (failed.length) {
    return { text: `$(error) ${NAME}`, details, severity: "error" };
  }
  const percent = percentOf(folders);
  if (percent !== undefined) {
    return { text: `$(sync~spin) ${NAME} ${percent} %`, details, severity: "fine" };
  }
  const isTroubled = folders.some(({ problem }) => problem !== null);
  return { text: `$(${isTroubled ? "warning" : "search-fuzzy"}) ${NAME}`, details, severity: isTroubled ? "warning" : "fine" };
}

/** How far the folders that are indexed now are; undefined if none is. */
export function percentOf(folders: readonly FolderStatus[]): number | undefined {
  const busy = folders.filter(({ state }) => state === "indexing" || state === "waiting");
  if (!busy.length) {
    return undefined;
  }
  const total = busy.reduce((sum, folder) => sum + folder.total, 0);
  const done = busy.reduce((sum, folder) => sum + folder.done, 0);
  return total ? Math.floor((100 * done) / total) : 0;
}

export function folderName(uri: string): string {
  return decodeURIComponent(uri.replace(/\/+$/, "").split("/").at(-1) ?? uri);
}

/** A folder's state in a sentence. */
export function sentence(folder: FolderStatus): string {
  const name = folderName(folder.uri);
  if (folder.problem !== null) {
    return `${name}: ${folder.problem}`;
  }
  if (folder.state === "indexing" && folder.total) {
    return `${name}: ${count(folder.done)} of ${count(folder.total)} files are indexed.`;
  }
  if (folder.state === "indexing" || folder.state === "waiting") {
    return `${name}: looking for files.`;
  }
  const pending = folder.pending ? `, ${count(folder.pending)} not indexed yet` : "";
  const backfill = folder.backfill ? `; ${count(folder.backfill.left)} still to be embedded by ${folder.backfill.model}` : "";
  return `${name}: ${count(folder.units)} pieces of code in ${count(folder.files)} files${pending}${backfill}.`;
}

function count(number: number): string {
  return number.toLocaleString("en");
}
