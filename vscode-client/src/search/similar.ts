/** "Find code that does this": like the selected code, or like the function at the cursor. */

import * as vscode from "vscode";

import { fixesOf, messageOf } from "../problem";
import type { Answer } from "../protocol";
import type { Service } from "../server/service";
import { hitRow, messageRows, Picker } from "./picker";
import { asWords } from "./query";
import type { Results } from "./results";
import { plain, shortfall } from "./rows";

const TITLE = "Code that does this";

export async function findSimilar(service: Service, results: Results, editor: vscode.TextEditor): Promise<void> {
  const { document, selection } = editor;
  const picker = new Picker(TITLE, { list: (hits) => void results.show(TITLE, hits), used: () => undefined, type: () => undefined });
  const controller = new AbortController();
  picker.onHide(() => controller.abort());
  picker.quickPick.placeholder = "Filter these hits";
  picker.quickPick.busy = true;
  picker.show();
  const code = asWords(document.getText(selection));
  try {
    const { signal } = controller;
    show(picker, await (code ? service.search(code, signal) : service.similar(document, selection.active, signal)));
  } catch (error) {
    picker.setRows(messageRows(plain(messageOf(error)), "error", fixesOf(error)));
  }
  picker.quickPick.busy = false;
}

function show(picker: Picker, { items, pending }: Answer): void {
  const missing = shortfall(pending);
  picker.quickPick.title = missing ? `${TITLE} (${missing})` : TITLE;
  // What is typed here narrows what is there, so rows have to match it.
  const rows = items.map((hit) => ({ ...hitRow(hit), alwaysShow: false }));
  picker.quickPick.matchOnDescription = picker.quickPick.matchOnDetail = true;
  picker.setRows(rows.length ? rows : messageRows("Nothing else here does this", "info"));
}
