import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";

import { until, Workbench } from "./workbench";
import { lineWith, pathWithServer, repository } from "./world";

const TITLE = "Search code by meaning";
const code = repository();
let workbench: Workbench;

before(async () => {
  workbench = await Workbench.open(code, { searchPath: pathWithServer() });
});

after(async () => {
  await workbench.close();
});

async function ask(question: string): Promise<void> {
  await workbench.command(TITLE);
  await workbench.input.pressSequentially(question, { delay: 20 });
}

test("a question by the palette is answered while it is typed, and a hit is jumped to", async () => {
  await ask("escape characters in a url");
  const rows = await workbench.rowsWith("quote", "urllib/parse.py");
  assert.ok(rows.length > 3);
  await workbench.screenshot("rows");
  const name = /  (\w+),/.exec(rows[0] ?? "")?.[1] ?? "";
  const [, folder = "", file, line] = /(\w+)\/(\w+\.py):(\d+)/.exec(rows[0] ?? "") ?? [];
  await workbench.page.keyboard.press("Enter");
  await until("the hit's place", async () => {
    const place = await workbench.place();
    return place.file === file && place.line === Number(line);
  });
  assert.equal(lineWith(path.join(code, folder, file ?? ""), `def ${name}(`), Number(line));
});
