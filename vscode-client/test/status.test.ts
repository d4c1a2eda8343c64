import assert from "node:assert/strict";
import { test } from "node:test";

import type { FolderStatus } from "../src/protocol";
import { percentOf, sentence, summary } from "../src/status/summary";

const folder = (values: Partial<FolderStatus>): FolderStatus => ({
  uri: "file:///home/me/my%20code",
  state: "ready",
  done: 0,
  total: 0,
  files: 12,
  units: 3456,
  pending: 0,
  problem: null,
  watch: "watching",
  model: "m",
  backfill: null,
  ...values,
});
const running = { kind: "running" } as const;
const shown = (...folders: FolderStatus[]) => summary(running, folders, true);

test("nothing is shown before a server is needed", () => {
  assert.equal(summary({ kind: "stopped" }, [], true), undefined);
});

test("a server that comes up, or comes again, is on its way", () => {
  for (const kind of ["starting", "waiting"] as const) {
    assert.equal(summary({ kind }, [], true)?.text, "$(sync~spin) Meaning");
  }
});

test("what failed is an error, what was never installed an offer", () => {
  const failed = { kind: "failed", error: new Error("no Python") } as const;
  assert.deepEqual(summary(failed, [], true), { text: "$(error) Meaning", details: ["no Python"], severity: "error" });
  assert.equal(summary(failed, [], false)?.severity, "fine");
});

test("a ready folder is told in numbers", () => {
  assert.deepEqual(shown(folder({})), {
    text: "$(search-fuzzy) Meaning",
    details: ["my code: 3,456 pieces of code in 12 files."],
    severity: "fine",
  });
});

test("indexing shows how far it is, over all folders that are at it", () => {
  const busy = folder({ state: "indexing", done: 25, total: 100 });
  assert.equal(shown(busy, folder({}))?.text, "$(sync~spin) Meaning 25 %");
  assert.equal(shown(busy, folder({ state: "indexing", done: 100, total: 100 }))?.text, "$(sync~spin) Meaning 62 %");
  assert.equal(percentOf([folder({ state: "waiting" })]), 0);
  assert.equal(sentence(busy), "my code: 25 of 100 files are indexed.");
});

test("a folder that failed, and one with a trouble, say what it is", () => {
  assert.equal(shown(folder({ state: "failed", problem: "the disk is full" }))?.severity, "error");
  assert.deepEqual(shown(folder({ problem: "x.py: too large" })), {
    text: "$(warning) Meaning",
    details: ["my code: x.py: too large"],
    severity: "warning",
  });
});

test("what is left to do in the background is told", () => {
  assert.match(sentence(folder({ backfill: { model: "big", left: 1200 } })), /1,200 still to be embedded by big/);
  assert.match(sentence(folder({ pending: 2 })), /2 not indexed yet/);
});
