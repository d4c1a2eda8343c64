import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import { until, Workbench } from "./workbench";
import { lineWith, modelWithId, pathWithServer, repository } from "./world";

const TITLE = "Search code by meaning";
/** Milliseconds in which the server has answered a question. */
const ANSWER = 500;
const code = repository();
let workbench: Workbench;

before(async () => {
  workbench = await Workbench.open(code, { searchPath: pathWithServer() });
});

after(async () => {
  await workbench.close();
});

beforeEach(async () => {
  await workbench.page.keyboard.press("Escape");
});

afterEach(async (context) => {
  await workbench.screenshot(`after ${context.name}`); // which shows why, if it failed
});

async function ask(question: string): Promise<void> {
  await workbench.command(TITLE);
  await workbench.input.pressSequentially(question, { delay: 20 });
}

/** The place that a row names. */
function placeIn(row: string | undefined): { folder: string; file: string; line: number } {
  const [, folder = "", file = "", line] = /(\w+)\/(\w+\.py):(\d+)/.exec(row ?? "") ?? [];
  return { folder, file, line: Number(line) };
}

async function arriveAt(file: string, line: number): Promise<void> {
  await until(`${file}:${line}`, async () => {
    const place = await workbench.place();
    return place.file === file && place.line === line;
  });
}

async function press(...keys: string[]): Promise<void> {
  for (const key of keys) {
    await workbench.page.keyboard.press(key);
  }
}

/** All that a user would see of where they are. */
async function surroundings() {
  const [place, tabs, lines, top] = [await workbench.place(), await workbench.tabs(), await workbench.linesShown(), await workbench.topOfEditor()];
  return { place, tabs, lines, top };
}

async function backIn(before: Awaited<ReturnType<typeof surroundings>>): Promise<void> {
  let now = before;
  const isBack = async () => isDeepStrictEqual((now = await surroundings()), before);
  await until("the editor as it was", isBack).catch(() => assert.deepEqual(now, before));
}

test("nothing runs before the first use where no code is open", async () => {
  assert.deepEqual(workbench.servers(), []);
  assert.equal(await workbench.statusItem.count(), 0);
});

test("a question by the palette is answered while it is typed, and a hit is jumped to", async () => {
  await ask("escape characters in a url");
  const rows = await workbench.rowsWith("quote", "urllib/parse.py");
  assert.ok(rows.length > 3);
  const { folder, file, line } = placeIn(rows[0]);
  const name = / (\w+),/.exec(rows[0] ?? "")?.[1] ?? "";
  assert.equal(lineWith(path.join(code, folder, file), `def ${name}(`), line);
  await press("Enter");
  await arriveAt(file, line);
});

test("the status item is ready when all is indexed", async () => {
  await until("the status item", async () => (await workbench.statusItem.innerText()).trim() === "Meaning");
});

test("moving through the rows shows the code, and Escape puts everything back", async () => {
  await workbench.openFile(path.join(code, "json", "decoder.py"), 120);
  await press("Shift+End");
  await until("a selection", async () => (await workbench.place()).column > 1);
  const before = await surroundings();
  await ask("read cookies from a response");
  await workbench.rowsWith("extract_cookies");
  await press("ArrowDown");
  const shown = await until("a preview", async () => (await workbench.tabs()).find((tab) => tab === "cookiejar.py" || tab === "cookies.py"));
  await workbench.page.locator(".view-overlays [class*='ced-'], .view-overlays .cdr[class*='TextEditorDecorationType']").first().waitFor();
  await workbench.screenshot("preview");
  assert.notEqual(shown, before.place.file);
  await press("Escape");
  await backIn(before);
});

test("a preview in the file that one is in is left as well", async () => {
  await workbench.openFile(path.join(code, "json", "decoder.py"), 120);
  const before = await surroundings();
  await ask("path:json/decoder.py unicode escape surrogate");
  await workbench.rowsWith("_decode_uXXXX");
  await press("ArrowDown", "ArrowDown");
  await until("other lines", async () => (await workbench.linesShown())[0] !== before.lines[0]);
  await press("Escape");
  await backIn(before);
});

test("tabs that give way to others stay, and so does an editor of differences with the focus in it", async () => {
  const passing = workbench.page.locator(".tab .label-name", { hasText: "scanner.py" });
  await workbench.openFile(path.join(code, "json", "decoder.py"), 120);
  await workbench.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "scanner.py" }).click();
  await until("a tab that gives way", async () => (await workbench.tabs()).includes("scanner.py"));
  for (const command of ["View: Open Previous Recently Used Editor in Group", "File: Compare Active File with Saved"]) {
    await workbench.command(command);
    await until(`an editor after ${command}`, async () => (await workbench.place()).file.startsWith("decoder.py"));
    await until("the focus", hasFocus);
    const before = await surroundings();
    await ask("read cookies from a response");
    await workbench.rowsWith("extract_cookies");
    await press("ArrowDown", "ArrowDown");
    await until("a preview", async () => (await workbench.tabs()).some((tab) => tab.startsWith("cookie")));
    await press("Escape");
    await backIn(before);
    await until("the focus", hasFocus);
    assert.equal(await passing.evaluate((label) => getComputedStyle(label).fontStyle), "italic");
  }
  await workbench.command("View: Close Editor");
});

/** Whether what is typed goes into the code. */
function hasFocus(): Promise<boolean> {
  return workbench.page.evaluate(() => Boolean(document.activeElement?.closest(".part.editor")));
}

/** Of the function that the next test asks for: the list hides the lines above. */
const LAST_LINE = "return 'application/octet-stream'";

test("a click into the code that is shown stays there", async () => {
  await ask("guess the type of a file by its name");
  await workbench.rowsWith("guess_type");
  await press("ArrowDown", "ArrowUp");
  await until("the preview", async () => (await workbench.tabs()).includes("server.py"));
  const line = workbench.page.locator(".editor-group-container.active .view-line", { hasText: LAST_LINE });
  await line.click({ position: { x: 60, y: 8 } });
  await workbench.input.waitFor({ state: "hidden" });
  await workbench.page.waitForTimeout(ANSWER); // in which it would have gone back
  const file = path.join(code, "http", "server.py");
  await arriveAt("server.py", lineWith(file, LAST_LINE));
  await workbench.command("View: Close Editor");
});

test("a hit is opened to the side", async () => {
  await ask("unquote plus signs");
  const { file, line } = placeIn((await workbench.rowsWith("unquote_plus"))[0]);
  await press("Control+Backslash");
  await until("a second group", async () => (await workbench.page.locator(".editor-group-container").count()) === 2);
  await arriveAt(file, line);
  await workbench.command("View: Close Editor");
  await until("one group", async () => (await workbench.page.locator(".editor-group-container").count()) === 1);
});

test("all hits go to a list that stays", async () => {
  await ask("redirect to another location");
  const hits = await workbench.rowsWith("redirect_request");
  await press("Alt+L");
  await until("the list", async () => (await listRows().count()) >= hits.length);
  await workbench.screenshot("list");
  await listRows().filter({ hasText: "redirect_request" }).click();
  await arriveAt("request.py", lineWith(path.join(code, "urllib", "request.py"), "def redirect_request("));
});

function listRows() {
  return workbench.page.locator(".part.panel .monaco-list-row");
}

/** The places in the list, as `file:line`. */
function listed(): Promise<string[]> {
  return listRows().locator(".label-description").allInnerTexts();
}

/** Those places, with the ones of a file so many lines further down. */
function shifted(places: string[], file: string, by: number): string[] {
  return places.map((place) => (place.startsWith(`${file}:`) ? `${file}:${Number(place.slice(file.length + 1)) + by}` : place));
}

test("the list follows the code, as it is typed and as it changes on disk", async () => {
  const before = await listed();
  const follows = (places: string[]) => until(places.join(), async () => isDeepStrictEqual(await listed(), places));
  await workbench.openFile(path.join(code, "urllib", "request.py"), 1);
  await workbench.page.keyboard.insertText("# one\n# two\n");
  await follows(shifted(before, "urllib/request.py", 2));
  await workbench.command("File: Revert File");
  await follows(before);

  const other = before.map((place) => place.replace(/:\d+$/, "")).find((each) => each !== "urllib/request.py") ?? "";
  const file = path.join(code, other);
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `# one\n${text}`);
  await follows(shifted(before, other, 1));
  writeFileSync(file, text);
  await follows(before);
  await workbench.command("View: Toggle Panel Visibility");
});

test("values of filters are completed, and narrow the hits", async () => {
  await ask("parse a header kind:cla");
  await workbench.rowsWith("kind:class");
  await press("Enter");
  await until("the whole value", async () => (await workbench.input.inputValue()) === "parse a header kind:class ");
  const rows = await workbench.rowsWith("class ");
  assert.ok(rows.every((row) => row.includes("symbol-class")), rows.join("\n"));
  await workbench.input.fill("path:js");
  await workbench.rowsWith("path:json/");
});

test("a filter that is none is explained", async () => {
  await ask("lang:pyton parse");
  await workbench.rowsWith("did you mean python?");
});

test("earlier questions are at hand", async () => {
  await workbench.command(TITLE);
  const rows = await workbench.rowsWith("escape characters in a url");
  assert.match(rows[0] ?? "", /redirect to another location/);
  await press("Enter");
  await workbench.rowsWith("redirect_request");
});

test("code that does the same as the function at the cursor is found from the editor's menu", async () => {
  const file = path.join(code, "urllib", "parse.py");
  await workbench.openFile(file, lineWith(file, "def unquote_plus(") + 1);
  await press("Shift+F10");
  const item = workbench.page.locator(".context-view .action-label", { hasText: "Find code that does this" });
  await item.hover();
  await press("Enter");
  const rows = await workbench.rowsWith("def ");
  assert.ok(rows.length > 3);
});

test("a setting takes effect without a restart", async () => {
  const [server] = workbench.servers();
  await workbench.writeSettings({ "meaning.limit": 3 });
  await ask("parse a date");
  await until("three rows", async () => {
    await workbench.input.press("Space"); // which asks once more
    await workbench.page.waitForTimeout(ANSWER);
    return (await workbench.rows.count()) === 3;
  });
  assert.deepEqual(workbench.servers(), [server]);
  await press("Escape");
  await workbench.writeSettings({});
});

test("a function that was just written and saved is found", async () => {
  const file = path.join(code, "json", "tool.py");
  await workbench.openFile(file, 1);
  await workbench.page.keyboard.insertText("def knit_a_sweater(wool, needles):\n    return needles.knit(wool)\n\n\n");
  await press("Control+S");
  await until("the saved file", () => Promise.resolve(readFileSync(file, "utf8").startsWith("def knit_a_sweater")));
  await ask("knit clothes out of wool");
  await workbench.rowsWith("knit_a_sweater, json/tool.py:1,");
});

test("a server that is killed is started again, told once, and answers", async () => {
  for (const round of [1, 2]) {
    const [server] = workbench.servers();
    assert.ok(server, `round ${round}`);
    process.kill(server, "SIGKILL");
    await until("its end", () => Promise.resolve(!workbench.servers().includes(server)));
    await ask("knit clothes out of wool");
    await workbench.rowsWith("knit_a_sweater");
    await press("Escape");
  }
  assert.equal(await workbench.notifications.filter({ hasText: "stopped unexpectedly" }).count(), 1);
});

test("the status item's click shows the server, the model and the folder", async () => {
  await workbench.statusItem.click();
  const rows = await workbench.rowsWith("meaning-lsp 0.");
  assert.match(rows.join("\n"), /pieces of code in \d+ files/);
  await workbench.screenshot("status");
});

/** Choose a model of a kind, and if `folder` is given, that folder in the dialog. */
async function chooseModel(choice: string, folder?: string): Promise<void> {
  await workbench.command("Meaning: Choose Model");
  await workbench.rowsWith(choice);
  await workbench.rows.filter({ hasText: choice }).first().click();
  if (folder !== undefined) {
    const button = workbench.page.locator(".quick-input-widget").getByRole("button", { name: "Use This Model" });
    await button.waitFor();
    // The dialog itself writes into its box until it has read the folder that it begins with.
    await workbench.rowsWith("..");
    await until(`${folder} in the dialog`, async () => {
      await workbench.input.fill(`${folder}/`);
      await workbench.rowsWith("..");
      return (await workbench.input.inputValue()) === `${folder}/`;
    });
    await button.click();
  }
}

async function modelIs(id: string): Promise<void> {
  await until(`the model ${id}`, async () => {
    await workbench.command("Meaning: Show Status");
    const rows = await workbench.rowsWith("meaning-lsp 0.");
    await press("Escape");
    return rows.some((row) => row.includes(id));
  });
}

test("a model is chosen from disk, and left again; a folder that is none is told", async () => {
  const [model, id] = modelWithId("of-the-tests");
  await chooseModel("A model from disk", model);
  await modelIs("of-the-tests");
  await chooseModel("A second model from disk", code);
  await workbench.notifications.filter({ hasText: "is no model: there is no bundle.json in it" }).waitFor();
  await chooseModel("Default model");
  await modelIs(id);
});

test("the commands are in the palette", async () => {
  await press("F1");
  await workbench.input.fill(">Meaning: ");
  const rows = (await workbench.rowsWith("Meaning: Show Status")).join("\n");
  for (const title of ["Re-index Workspace", "Restart Search Server", "Show Log", "Choose Model", "Clear Search History"]) {
    assert.match(rows, new RegExp(title));
  }
});

test("the server is started anew, and the workspace indexed anew, by command", async () => {
  const [server] = workbench.servers();
  await workbench.command("Meaning: Restart Search Server");
  await until("another server", () => Promise.resolve(workbench.servers()[0] !== server && workbench.servers().length === 1));
  await workbench.command("Meaning: Re-index Workspace");
  await workbench.page.locator(".statusbar-item", { hasText: "pieces of code in" }).waitFor();
});
