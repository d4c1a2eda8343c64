import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, test } from "node:test";

import { until, Workbench } from "./workbench";
import { folderWith, pathWithServer, pythonExtension } from "./world";

const TITLE = "Search code by meaning";
/** Milliseconds in which a Python has been looked at. */
const LOOKED = 2_000;
const searchPath = pathWithServer();
let workbench: Workbench | undefined;

afterEach(async (context) => {
  await workbench?.screenshot(`after ${context.name}`);
  await workbench?.close();
});

test("several folders are searched at once, and rows say which one a hit is in", async () => {
  const [shop, bakery] = [
    folderWith({ "a/till.py": "def refund(order):\n    '''Give the money of an order back.'''\n    order.pay(-1)\n" }),
    folderWith({ "b/oven.go": "package oven\n\n// Bake makes bread out of dough.\nfunc Bake(dough Dough) Bread {\n\treturn heat(dough)\n}\n" }),
  ];
  const file = path.join(mkdtempSync(path.join(tmpdir(), "meaning-code-")), "two.code-workspace");
  writeFileSync(file, JSON.stringify({ folders: [{ path: shop, name: "shop" }, { path: bakery, name: "bakery" }] }));
  workbench = await Workbench.open(file, { searchPath });
  await workbench.command(TITLE);
  await workbench.input.pressSequentially("give money back");
  await workbench.rowsWith("refund, shop/a/till.py:1");
  await workbench.input.fill("make bread");
  await workbench.rowsWith("Bake, bakery/b/oven.go:4");
});

test("a workspace that is not trusted brings no program to run, and is searched all the same", async () => {
  const traces = mkdtempSync(path.join(tmpdir(), "meaning-traces-"));
  const trace = path.join(traces, "ran");
  const program = path.join(traces, "meaning-lsp");
  writeFileSync(program, `#!/bin/sh\ntouch "${trace}"\n`);
  chmodSync(program, 0o755);
  const code = folderWith({
    ".vscode/settings.json": JSON.stringify({ "meaning.server.path": program }),
    "till.py": "def refund(order):\n    '''Give the money of an order back.'''\n    order.pay(-1)\n",
  });
  const trust = { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" };
  workbench = await Workbench.open(code, { searchPath, settings: { ...trust, "security.workspace.trust.untrustedFiles": "open" } });
  await workbench.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
  await workbench.command(TITLE);
  await workbench.input.pressSequentially("give money back");
  await workbench.rowsWith("refund, till.py:1");
  assert.equal(existsSync(trace), false);
});

/** A workspace in which a Python is selected, and the file that says which. */
async function openWithPython(interpreter: string): Promise<{ opened: Workbench; selection: string }> {
  const selection = path.join(mkdtempSync(path.join(tmpdir(), "meaning-selected-")), "python");
  writeFileSync(selection, interpreter);
  const code = folderWith({ "till.py": "def refund(order):\n    order.pay(-1)\n" });
  workbench = await Workbench.open(code, { searchPath, extensions: [pythonExtension(selection)] });
  await workbench.command(TITLE);
  await workbench.input.pressSequentially("refund");
  await workbench.rowsWith("refund, till.py:1");
  return { opened: workbench, selection };
}

/** As the status says, once it is started. */
async function serverIs(opened: Workbench, origin: string): Promise<void> {
  await until(`the server from ${origin}`, async () => {
    await opened.command("Meaning: Show Status");
    const rows = await opened.rowsWith("Show Log");
    await opened.page.keyboard.press("Escape");
    return rows.some((row) => row.includes(`from ${origin}`));
  });
}

test("the server of the Python that is selected for the workspace comes before the one on the PATH, and follows it", async () => {
  const interpreter = path.join(searchPath.split(":")[0] ?? "", "python");
  const other = path.join(pathWithServer().split(":")[0] ?? "", "python");
  const { opened, selection } = await openWithPython(interpreter);
  await serverIs(opened, `the selected Python, ${interpreter}`);
  const [first] = opened.servers();
  writeFileSync(selection, other);
  await until("the other server", () => Promise.resolve(opened.servers().length === 1 && opened.servers()[0] !== first));
  await serverIs(opened, `the selected Python, ${other}`);
});

test("a Python without a server changes nothing for the one that runs", async () => {
  const { opened, selection } = await openWithPython("/bin/false");
  await serverIs(opened, "the PATH");
  const servers = opened.servers();
  writeFileSync(selection, "/bin/true");
  await opened.page.waitForTimeout(LOOKED);
  assert.deepEqual(opened.servers(), servers);
});

test("a server that never comes up is an error that is told once, with a way out", async () => {
  const code = folderWith({ "till.py": "def refund(order):\n    order.pay(-1)\n" });
  const broken = path.join(mkdtempSync(path.join(tmpdir(), "meaning-broken-")), "meaning-lsp");
  writeFileSync(broken, '#!/bin/sh\n[ "$1" = --version ] && echo "meaning-lsp 0.1.0" && exit; echo "ERROR bad luck" >&2; exit 1\n');
  chmodSync(broken, 0o755);
  workbench = await Workbench.open(code, { searchPath, settings: { "meaning.server.path": broken } });
  const opened = workbench;
  await opened.command(TITLE);
  await opened.notifications.filter({ hasText: "cannot be started" }).filter({ hasText: "bad luck" }).waitFor();
  assert.equal(await opened.notifications.count(), 1);
  await opened.writeSettings({ "meaning.server.path": "" });
  await until("the right server", () => Promise.resolve(opened.servers().length === 1));
});
