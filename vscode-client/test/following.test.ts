import assert from "node:assert/strict";
import { test } from "node:test";

import { follow } from "../src/search/following";

const FILE = ["class A:", "    def run(self):", "        pass", "class B:", "    def run(self):", "        return 1"];
const RUN_OF_B = 4;

/** Where the second `run` is after a change of the file. */
function after(change: (lines: string[]) => void): number | undefined {
  const lines = [...FILE];
  change(lines);
  return follow(RUN_OF_B, FILE, lines);
}

test("a line moves with what is put in or taken out above it, and with nothing below", () => {
  assert.equal(after((lines) => lines.unshift("import a", "import b")), 6);
  assert.equal(after((lines) => lines.splice(2, 1)), 3);
  assert.equal(after((lines) => lines.push("x = 1")), 4);
  assert.equal(after((lines) => lines.splice(5, 1)), 4);
  assert.equal(after(() => undefined), 4);
});

test("of lines that are alike it stays the one that it was", () => {
  assert.equal(after((lines) => lines.unshift("class C:", "    def run(self):")), 6);
  assert.equal(after((lines) => lines.splice(0, 3)), 1);
  assert.equal(after((lines) => lines.splice(0, 6, "#", ...lines, "#")), 5);
});

test("a line that is moved to the right is the same", () => {
  assert.equal(after((lines) => lines.splice(3, 3, "if True:", "    class B:", "        def run(self):")), 5);
});

test("a line that is rewritten keeps its place, one that is gone is not guessed", () => {
  const only = ["a = 1", "def f():", "    pass"];
  assert.equal(follow(1, only, ["a = 1", "def better():", "    pass"]), 1);
  assert.equal(follow(1, only, ["a = 1", "    pass"]), undefined);
  assert.equal(follow(1, only, []), undefined);
});

test("when there are more like it in what changed, it is the nearest", () => {
  const lines = ["x", "run()", "y"];
  assert.equal(follow(1, lines, ["", "run()", "", "", "run()", ""]), 1);
});
