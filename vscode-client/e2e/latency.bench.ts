/** How long somebody who types waits for rows, and what the extension costs when it is activated: in the real workbench,
 * over a made-up tree. `npm run package && npm run bench`. */

import { rmSync } from "node:fs";

import { PATIENCE, until, Workbench } from "./workbench";
import { madeUp, pathWithServer } from "./world";

const FUNCTIONS = 20_000;
/** Milliseconds between two keys: longer than an answer takes, so that each one's is known. */
const PAUSE = 350;
const QUESTIONS = ["how do we retry the upload of a batch", "where is a missing invoice reported", "close the session of a customer"];

async function main(): Promise<void> {
  const code = madeUp(FUNCTIONS);
  const workbench = await Workbench.open(code, { searchPath: pathWithServer() });
  try {
    await workbench.command("Search code by meaning");
    await indexed(workbench);
    await watch(workbench);
    for (const question of QUESTIONS) {
      await workbench.input.fill("");
      await workbench.input.pressSequentially(question, { delay: PAUSE });
    }
    const waits = (await waited(workbench)).sort((left, right) => left - right);
    const at = (share: number) => waits[Math.floor(share * (waits.length - 1))]?.toFixed(0) ?? "?";
    console.log(`key to rows, ${FUNCTIONS} functions, ${waits.length} keys: p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms`);
    await workbench.page.keyboard.press("Escape");
    console.log(await activation(workbench));
  } finally {
    await workbench.close();
    rmSync(code, { recursive: true });
  }
}

async function indexed(workbench: Workbench): Promise<void> {
  for (let minute = 0; minute < 5; minute++) {
    try {
      await until("the index", async () => (await workbench.statusItem.innerText()).trim() === "Meaning");
      return;
    } catch {
      console.log(`indexing: ${await workbench.statusItem.innerText()}`);
    }
  }
  throw new Error(`not indexed after ${(5 * PATIENCE) / 1000} s`);
}

interface Watching extends Window {
  waits: number[];
}

/** In the page: from each key to the first change of what the rows say. */
async function watch(workbench: Workbench): Promise<void> {
  await workbench.page.evaluate(() => {
    const page = window as unknown as Watching;
    const list = document.querySelector(".quick-input-widget .quick-input-list");
    const text = () => [...(list?.querySelectorAll(".monaco-list-row") ?? [])].map((row) => row.getAttribute("aria-label")).join("\n");
    let [key, before] = [0, ""];
    page.waits = [];
    document.addEventListener("keydown", () => ([key, before] = [performance.now(), text()]), true);
    const look = () => {
      if (key && text() !== before) {
        page.waits.push(performance.now() - key);
        key = 0;
      }
    };
    new MutationObserver(look).observe(list ?? document.body, { subtree: true, childList: true, attributes: true });
  });
}

function waited(workbench: Workbench): Promise<number[]> {
  return workbench.page.evaluate(() => (window as unknown as Watching).waits);
}

/** What VS Code itself measured. */
async function activation(workbench: Workbench): Promise<string> {
  await workbench.command("Developer: Show Running Extensions");
  const row = workbench.page.locator(".runtime-extensions-editor .monaco-list-row", { hasText: "search code by what it does" });
  return (await row.innerText()).replace(/\s+/g, " ");
}

void main();
