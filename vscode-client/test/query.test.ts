import assert from "node:assert/strict";
import { test } from "node:test";

import { asWords, askable, completed, knownValues, matching, unfinished } from "../src/search/query";

const complete = (text: string, values?: string[]): string[] => {
  const last = unfinished(text);
  return last ? matching(last, values ?? knownValues(last.filter)).map((value) => completed(last, value)) : [];
};

test("words and finished filters are asked as they are typed", () => {
  assert.equal(askable("retry a failed upload"), "retry a failed upload");
  assert.equal(askable(" lang:go retry "), "lang:go retry");
  assert.equal(askable("retry lang:go"), "retry lang:go");
});

test("a filter that is being typed does not stop the answers to the words before it", () => {
  assert.equal(askable("retry lang:"), "retry");
  assert.equal(askable("retry lang:pyt"), "retry");
  assert.equal(askable("retry kind:func"), "retry");
});

test("a wrong value that somebody went on from is the server's to explain", () => {
  assert.equal(askable("lang:pyton retry"), "lang:pyton retry");
});

test("half a path is a filter already", () => {
  assert.equal(askable("retry path:src/ne"), "retry path:src/ne");
});

test("filters alone are no question", () => {
  for (const text of ["", "  ", "lang:go", "lang:", 'path:"my code/" kind:method']) {
    assert.equal(askable(text), undefined, text);
  }
});

test("a word that looks like a filter inside of another is a word", () => {
  assert.equal(unfinished("slang:py"), undefined);
  assert.equal(unfinished("lang:go retry"), undefined);
});

test("values are completed, those after a comma too", () => {
  assert.deepEqual(complete("lang:py"), ["lang:python "]);
  assert.deepEqual(complete("retry lang:go,ru"), ["retry lang:go,ruby ", "retry lang:go,rust "]);
  assert.deepEqual(complete("kind:CONS"), ["kind:constructor "]);
});

test("a value that is whole is not offered again, longer ones are", () => {
  assert.deepEqual(complete("lang:python"), []);
  assert.deepEqual(complete("lang:c"), ["lang:cpp ", "lang:csharp "]);
});

test("a folder is completed so that one can type on in it, a file is done", () => {
  assert.deepEqual(complete("path:sr", ["src/", "srv.py"]), ["path:src/", "path:srv.py "]);
});

test("a path with a blank is quoted", () => {
  assert.deepEqual(complete("path:my", ["my code/", "my notes.md"]), ['path:"my code/', 'path:"my notes.md" ']);
  assert.deepEqual(complete('path:"my code/re', ["my code/readme.md"]), ['path:"my code/readme.md" ']);
  assert.equal(unfinished('path:"my code/" retry'), undefined);
});

test("selected code is words, whatever it spells", () => {
  assert.equal(asWords("def f(a, path:str, kind:Kind)"), "def f(a, path : str, kind : Kind)");
  assert.equal(askable(asWords("lang:go")), "lang : go");
});
