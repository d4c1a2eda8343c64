import assert from "node:assert/strict";
import { test } from "node:test";

import type { Hit } from "../src/protocol";
import { badge } from "../src/search/badge";
import { remembered } from "../src/search/history";
import { rowText, shortfall } from "../src/search/rows";
import { LANGUAGES } from "../src/search/vocabulary";

const at = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 9 } });

const hit = (values: Partial<Hit>): Hit => ({
  location: { uri: "file:///code/net.py", range: at(39) },
  selectionRange: at(41),
  name: "retry",
  containerName: null,
  kind: 6,
  language: "python",
  score: 1,
  preview: "  def retry(self, job):",
  ...values,
});

test("a row has the kind, name, container, place and a line of code", () => {
  assert.deepEqual(rowText(hit({ containerName: "Uploader" }), "src/net.py"), {
    label: "$(symbol-method) retry",
    description: "Uploader · src/net.py:42",
    detail: "def retry(self, job):",
  });
});

test("code that spells an icon is shown as code", () => {
  const text = rowText(hit({ name: "$(sync)", preview: "cd $(home)" }), "a$(b)");
  assert.deepEqual(text, { label: "$(symbol-method) \\$(sync)", description: "a\\$(b):42", detail: "cd \\$(home)" });
});

test("what is missing is told in words", () => {
  assert.deepEqual([0, 1, 3120].map(shortfall), ["", "1 file is not indexed yet", "3,120 files are not indexed yet"]);
});

test("every language has a picture of its own", () => {
  assert.equal(new Set(LANGUAGES.map(badge)).size, LANGUAGES.length);
  assert.match(badge("python"), /^data:image\/svg\+xml;base64,/);
});

test("the newest question comes first, each once, and not for ever", () => {
  assert.deepEqual(remembered(["a", "b"], " b "), ["b", "a"]);
  assert.deepEqual(remembered(["a"], " "), ["a"]);
  const many = Array.from({ length: 200 }, (_, number) => `q${number}`);
  assert.ok(remembered(many, "new").length < 100);
});
