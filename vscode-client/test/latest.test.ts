import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Latest } from "../src/search/latest";

const PAUSE = 10;

class Asked {
  readonly questions: string[] = [];
  readonly shown: string[] = [];
  readonly failures: string[] = [];
  readonly signals: AbortSignal[] = [];
  readonly answer = new Map<string, (answer: string) => void>();
  readonly latest = new Latest<string, string>(
    {
      ask: (question, signal) => {
        this.questions.push(question);
        this.signals.push(signal);
        return question === "bad" ? Promise.reject(new Error("no")) : new Promise((done) => this.answer.set(question, done));
      },
      answered: (answer, question) => this.shown.push(`${question}: ${answer}`),
      failed: (error, question) => this.failures.push(`${question}: ${String(error)}`),
    },
    PAUSE,
  );
}

test("only the last of some fast keys asks", async () => {
  const asked = new Asked();
  for (const question of ["r", "re", "ret"]) {
    asked.latest.ask(question);
  }
  await sleep(5 * PAUSE);
  assert.deepEqual(asked.questions, ["ret"]);
});

test("a stale question is cancelled, and its answer is not shown", async () => {
  const asked = new Asked();
  asked.latest.ask("old");
  await sleep(5 * PAUSE);
  asked.latest.ask("new");
  assert.equal(asked.signals[0]?.aborted, true);
  await sleep(5 * PAUSE);
  asked.answer.get("new")?.("yes");
  asked.answer.get("old")?.("too late");
  await sleep(0);
  assert.deepEqual(asked.shown, ["new: yes"]);
});

test("a failure is told, that of a cancelled question is not", async () => {
  const asked = new Asked();
  asked.latest.ask("bad");
  await sleep(5 * PAUSE);
  asked.latest.ask("bad");
  asked.latest.cancel();
  await sleep(5 * PAUSE);
  assert.deepEqual(asked.failures, ["bad: Error: no"]);
});
