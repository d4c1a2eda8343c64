/** Our own messages, as the server's `lsp/protocol.py` defines them. */

import type { Location, Range, SymbolKind } from "vscode-languageclient";

export const SEARCH = "meaning/search";
export const SIMILAR = "meaning/similar";
export const STATUS = "meaning/status";
export const REINDEX = "meaning/reindex";
export const INDEX_CHANGED = "meaning/indexChanged";

export interface Hit {
  location: Location;
  selectionRange: Range;
  name: string;
  containerName: string | null;
  kind: SymbolKind;
  language: string;
  score: number;
  preview: string;
}

export interface Answer {
  items: Hit[];
  /** Files known to be changed and not indexed yet. */
  pending: number;
  /** Units in the index. */
  indexed: number;
  model: string;
  tookMs: number;
}

export interface FolderStatus {
  uri: string;
  state: "waiting" | "indexing" | "ready" | "failed";
  /** Files of the update that runs. */
  done: number;
  total: number;
  files: number;
  units: number;
  pending: number;
  problem: string | null;
  watch: "watching" | "partly watching" | "rescanning";
  model: string | null;
  /** What is done for another model: the one that is going to answer, or the one that refines. */
  backfill: { model: string; left: number } | null;
}

export interface ServerStatus {
  version: string;
  model: string | null;
  problem: string | null;
  folders: FolderStatus[];
}

export interface Reindexed {
  folders: { uri: string; files: number; units: number; pending: number; seconds: number }[];
}
