/** "Search code by meaning": a list that answers while one types. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";

import { fixesOf, messageOf } from "../problem";
import type { Answer } from "../protocol";
import type { Service } from "../server/service";
import { remembered } from "./history";
import { Latest } from "./latest";
import { pathValues } from "./paths";
import { hitRow, messageRows, Picker, typingRow, type Row } from "./picker";
import { askable, completed, FILTERS, knownValues, matching, unfinished, type Filter, type Unfinished } from "./query";
import type { Results } from "./results";
import { plain, shortfall } from "./rows";

const TITLE = "Search code by meaning";
const PLACEHOLDER = "What does the code do? Also: lang:python path:src/ kind:method";
/** Milliseconds after the last key. The server answers in fewer than a fast typist needs for the next. */
const PAUSE = 40;
/** Milliseconds until an index that is being built is asked again. */
const LOOK_AGAIN = 700;
const HISTORY = "meaning.history";
const MAX_COMPLETIONS = 8;
const HINTS: Record<Filter, string> = {
  lang: "only this language",
  path: "only these files: the start of a folder's or a file's name, or a glob",
  kind: "only functions, methods, classes, …",
};
/** The protocol's code for parameters that it cannot make sense of: here, a query. */
const INVALID_PARAMS = -32602;

export class LiveSearch {
  private readonly picker: Picker;
  private readonly latest: Latest<string, Answer>;
  private answer: Answer | undefined;
  private completions: Row[] = [];
  private looking: NodeJS.Timeout | undefined;

  constructor(
    service: Service,
    private readonly memory: vscode.Memento,
    results: Results,
  ) {
    this.picker = new Picker(TITLE, {
      list: (hits) => {
        const query = this.quickPick.value.trim();
        void results.show(query, hits, query);
      },
      used: () => void this.memory.update(HISTORY, remembered(history(this.memory), this.quickPick.value)),
      type: (text) => {
        this.quickPick.value = text;
        this.typed(text);
      },
    });
    const ask = (query: string, signal: AbortSignal) => service.search(query, signal);
    this.latest = new Latest({ ask, answered: (answer, query) => this.answered(answer, query), failed: (error) => this.failed(error) }, PAUSE);
    const typing = this.quickPick.onDidChangeValue((text) => this.typed(text));
    this.picker.onHide(() => {
      this.latest.cancel();
      clearTimeout(this.looking);
      typing.dispose();
    });
  }

  /** `query` stands in the box. */
  show(query = ""): void {
    this.quickPick.placeholder = PLACEHOLDER;
    this.quickPick.value = query;
    this.typed(query);
    this.picker.show();
  }

  private get quickPick(): vscode.QuickPick<Row> {
    return this.picker.quickPick;
  }

  private typed(text: string): void {
    clearTimeout(this.looking);
    void this.complete(text);
    const query = askable(text);
    if (query === undefined) {
      this.latest.cancel();
      this.quickPick.busy = false;
      this.answer = undefined;
      this.draw(text.trim() === "" ? this.beginnings() : messageRows("Say in words what the code does", "info"));
    } else {
      this.quickPick.busy = true;
      this.latest.ask(query);
    }
  }

  private answered(answer: Answer, query: string): void {
    const before = this.answer;
    this.answer = answer;
    this.quickPick.busy = answer.pending > 0;
    const missing = shortfall(answer.pending);
    this.quickPick.title = missing ? `${TITLE} (${missing})` : TITLE;
    if (missing) {
      this.looking = setTimeout(() => this.lookAgain(query), LOOK_AGAIN);
    }
    if (isDeepStrictEqual(before?.items, answer.items) && answer.items.length) {
      return; // The rows are these, and somebody may be looking at them.
    }
    const rows = answer.items.map(hitRow);
    this.draw(rows.length ? rows : messageRows(missing ? `Nothing found yet: ${missing}` : "Nothing found", "info"));
  }

  private failed(error: unknown): void {
    this.answer = undefined;
    this.quickPick.busy = false;
    const isQuery = (error as { code?: number }).code === INVALID_PARAMS;
    this.draw(messageRows(plain(messageOf(error)), isQuery ? "info" : "error", fixesOf(error)));
  }

  private draw(rows: readonly Row[]): void {
    this.picker.setRows([...this.completions, ...rows]);
  }

  /** While an index is built, the same question finds more and more. Somebody who looks through the rows keeps them. */
  private lookAgain(query: string): void {
    if (!this.picker.moved) {
      this.latest.ask(query);
    }
  }

  /** The ways to end the filter that is being typed. */
  private async complete(text: string): Promise<void> {
    const last = unfinished(text);
    const values = last?.filter === "path" ? await pathValues(last.value) : knownValues(last?.filter ?? "lang");
    if (text !== this.quickPick.value) {
      return; // typed on meanwhile
    }
    const before = this.completions;
    this.completions = last ? endings(last, values) : [];
    if (before.length || this.completions.length) {
      this.draw(this.quickPick.items.filter((row) => !before.includes(row)));
    }
  }

  /** What can be chosen before anything is typed. */
  private beginnings(): Row[] {
    const earlier = history(this.memory).map((query) => typingRow("history", plain(query), query));
    const filters = FILTERS.map((filter) => typingRow("filter", `${filter}:`, `${filter}:`, HINTS[filter]));
    return [...earlier, ...filters];
  }
}

function endings(last: Unfinished, values: readonly string[]): Row[] {
  const offered = matching(last, values).slice(0, MAX_COMPLETIONS);
  return offered.map((value) => typingRow("filter", `${last.filter}:${value}`, completed(last, value)));
}

function history(memory: vscode.Memento): string[] {
  return memory.get<string[]>(HISTORY, []);
}

export async function clearHistory(memory: vscode.Memento): Promise<void> {
  await memory.update(HISTORY, undefined);
}
