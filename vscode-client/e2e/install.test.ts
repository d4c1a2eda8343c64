import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, test } from "node:test";

import { until, Workbench } from "./workbench";
import { folderWith, PYTHON } from "./world";

const TITLE = "Search code by meaning";
/** Nobody listens there. */
const NOWHERE = "http://127.0.0.1:9";
/** Milliseconds: VS Code shows two notifications in so many, and no more. */
const SPAM_PROTECTION = 1_000;
const bin = mkdtempSync(path.join(tmpdir(), "meaning-bin-"));
const code = folderWith({ "shop.py": "def refund(order):\n    '''Give the money of an order back.'''\n    return order.pay(-order.total)\n" });
let workbench: Workbench;

before(async () => {
  workbench = await Workbench.open(code, { searchPath: bin, settings: { "http.proxy": NOWHERE } });
});

after(async () => {
  await workbench.close();
});

afterEach(async (context) => {
  await workbench.screenshot(`after ${context.name}`);
});

/** What `python3` on the PATH does. */
function python3(script: string): void {
  const file = path.join(bin, "python3");
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

/** Ask for a search, agree to the installation, and have it fail. */
async function failure(message: RegExp): Promise<void> {
  await workbench.command(TITLE);
  await workbench.dialog.waitFor();
  await workbench.answer("Install");
  await workbench.notifications.filter({ hasText: message }).first().waitFor();
  await workbench.page.waitForTimeout(SPAM_PROTECTION);
}

test("nothing is installed that nobody agreed to", async () => {
  await workbench.command(TITLE);
  assert.match(await workbench.dialog.innerText(), /sends nothing anywhere/);
  await workbench.answer("Cancel");
  await until("the offer in the status bar", async () => (await workbench.statusItem.count()) === 1);
  assert.deepEqual(workbench.servers(), []);
});

test("without a Python, it says which one is needed", async () => {
  await failure(/needs Python 3\.10 to 3\.13, and no Python was found/);
});

test("with one that is too old, it says which one that is", async () => {
  python3("echo '[[3, 8], \"/usr/bin/python3.8\", true]'");
  await failure(/needs Python 3\.10 to 3\.13\. \/usr\/bin\/python3\.8 is 3\.8/);
});

test("with one that cannot make environments, it says what to install", async () => {
  python3("echo '[[3, 11], \"/usr/bin/python3.11\", false]'");
  await failure(/python3-venv/);
});

test("without a network, it says so", async () => {
  python3(`exec "${PYTHON}" "$@"`);
  await failure(/cannot be reached/);
});

test("an installation that is stopped is no failure", async () => {
  await workbench.writeSettings({});
  await workbench.command(TITLE);
  await workbench.answer("Install");
  const progress = workbench.notifications.filter({ hasText: "Installing the search server" });
  await progress.waitFor();
  await workbench.page.locator(".notifications-toasts").getByRole("button", { name: "Cancel" }).click();
  await progress.waitFor({ state: "detached" });
  await workbench.page.waitForTimeout(SPAM_PROTECTION);
  assert.equal(await workbench.notifications.filter({ hasText: /abort|cancel/i }).count(), 0);
});

test("with all of that, the server is installed, and answers", async () => {
  await workbench.command(TITLE);
  await workbench.answer("Install");
  await workbench.input.waitFor({ timeout: 300_000 });
  await workbench.input.pressSequentially("give money back to a customer");
  await workbench.rowsWith("refund, shop.py:1,");
});
