/** VS Code's workbench, served on this machine, with the packed extension in it, in a Chromium without a window. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

import { chromium, type Browser, type Locator, type Page } from "playwright-core";

import { below } from "./processes";

interface Tools {
  serverMain: string;
  chromium: string;
}

export const HERE = path.resolve(__dirname, "..", "..");
const VSIX = path.join(HERE, "dist", "meaning-lsp.vsix");
/** Milliseconds after which something that does not happen has failed; machines that run tests may be busy. */
export const PATIENCE = 60_000;
/** Milliseconds in which rows that do not change are those of the last key. */
const SETTLING = 300;
const QUIET_SETTINGS = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoCheckUpdates": false,
  "chat.commandCenter.enabled": false,
};

let known: Tools | undefined;

function tools(): Tools {
  known ??= JSON.parse(execFileSync(process.execPath, ["scripts/tools.mjs"], { cwd: HERE, encoding: "utf8" })) as Tools;
  return known;
}

export interface Options {
  /** What the server's process finds on its PATH. */
  searchPath: string;
  settings?: Record<string, unknown>;
  /** Further extensions, each a .vsix. */
  extensions?: string[];
}

export class Workbench {
  private constructor(
    readonly page: Page,
    private readonly browser: Browser,
    private readonly server: ChildProcess,
    readonly home: string,
  ) {}

  /** Open a folder, or a workspace file. The extension is installed as a user does it; nothing else is there. */
  static async open(place: string, options: Options): Promise<Workbench> {
    const home = mkdtempSync(path.join(tmpdir(), "meaning-e2e-"));
    const env = surroundings(home, options);
    const data = path.join(home, "data");
    mkdirSync(path.join(data, "User"), { recursive: true });
    writeFileSync(settingsIn(home), settingsText(options.settings ?? {}));
    const main = [tools().serverMain, "--accept-server-license-terms", "--telemetry-level", "off", "--user-data-dir", data,
      "--server-data-dir", path.join(home, "server"), "--extensions-dir", path.join(home, "extensions")];
    for (const extension of [VSIX, ...(options.extensions ?? [])]) {
      execFileSync(process.execPath, [...main, "--install-extension", extension], { env, stdio: "pipe" });
    }
    const port = await freePort();
    const log = openSync(path.join(home, "workbench.log"), "a");
    const listening = ["--host", "127.0.0.1", "--port", String(port), "--without-connection-token"];
    const server = spawn(process.execPath, [...main, ...listening], { env, detached: true, stdio: ["ignore", log, log] });
    try {
      await answers(`http://127.0.0.1:${port}/version`);
      const browser = await chromium.launch({ executablePath: tools().chromium, args: ["--no-sandbox", "--disable-gpu"] });
      const page = await browser.newPage({ viewport: { width: 1200, height: 760 } });
      page.setDefaultTimeout(PATIENCE);
      const what = place.endsWith(".code-workspace") ? "workspace" : "folder";
      await page.goto(`http://127.0.0.1:${port}/?${what}=${encodeURIComponent(place)}`);
      await folderShown(page);
      return new Workbench(page, browser, server, home);
    } catch (error) {
      end(server);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.browser.close();
    end(this.server);
    await sleep(500); // for what writes into the folder still
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
  }

  /** Write the user's settings, in the workbench itself; those that keep it quiet stay. */
  async writeSettings(values: Record<string, unknown>): Promise<void> {
    await this.command("Preferences: Open User Settings (JSON)");
    await until("the settings", async () => (await this.tabs()).includes("settings.json") && (await this.place()).file === "settings.json");
    const text = settingsText(values);
    await until("the saved settings", async () => {
      await this.page.locator(".editor-group-container.active .view-lines").first().click();
      await this.page.keyboard.press("Control+A");
      await this.page.keyboard.insertText(text);
      // The editor may have closed brackets and quotes once more.
      await this.page.keyboard.press("Control+Shift+End");
      await this.page.keyboard.press("Delete");
      await this.page.keyboard.press("Control+S");
      await sleep(SETTLING);
      return readFileSync(settingsIn(this.home), "utf8") === text;
    });
    await this.command("View: Close Editor");
  }

  /** The processes of search servers. */
  servers(): number[] {
    return below(this.server.pid ?? 0, /bin\/meaning-lsp |-m meaning_lsp /).map(({ pid }) => pid);
  }

  /** Run a command by the palette, which lists those only that were known when it opened. */
  async command(title: string): Promise<void> {
    const row = this.rows.filter({ hasText: title }).first();
    for (const deadline = Date.now() + PATIENCE; ; ) {
      await this.page.keyboard.press("F1");
      await this.input.fill(`>${title}`);
      try {
        await row.waitFor({ timeout: 2_000 });
        break;
      } catch (error) {
        if (Date.now() > deadline) {
          throw error;
        }
        await this.page.keyboard.press("Escape");
      }
    }
    await this.page.keyboard.press("Enter");
  }

  /** The box of the quick pick. */
  get input(): Locator {
    return this.page.locator(".quick-input-widget:visible input.input");
  }

  get rows(): Locator {
    return this.page.locator(".quick-input-widget .quick-input-list .monaco-list-row");
  }

  /** What a screen reader says of each row: label, description, detail. */
  async rowTexts(): Promise<string[]> {
    return this.rows.evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label") ?? ""));
  }

  /** The rows, as soon as one of them has all of these in it, and no others come. */
  async rowsWith(...parts: string[]): Promise<string[]> {
    let before = "";
    return until(`a row with ${parts.join(", ")}`, async () => {
      const texts = await this.rowTexts();
      const isSettled = texts.join("\n") === before;
      before = texts.join("\n");
      await sleep(isSettled ? 0 : SETTLING);
      return isSettled && texts.some((text) => parts.every((part) => text.includes(part))) ? texts : undefined;
    });
  }

  /** The title of the tab that is active, and the line and column of the cursor, from 1. */
  async place(): Promise<{ file: string; line: number; column: number }> {
    const file = await this.page.locator(".editor-group-container.active .tab.active .label-name").innerText();
    const text = await this.page.locator('[id="status.editor.selection"]').innerText();
    const [line = 0, column = 0] = [...text.matchAll(/\d+/g)].map(Number);
    return { file, line, column };
  }

  /** Where, in pixels, the first line on the screen begins. */
  async topOfEditor(): Promise<number> {
    return this.page.locator(".editor-group-container.active .view-lines").first().evaluate((lines) => lines.getBoundingClientRect().top);
  }

  get statusItem(): Locator {
    return this.page.locator('[id="meaning-lsp.meaning-lsp.meaning.status"]');
  }

  async tabs(): Promise<string[]> {
    return this.page.locator(".tab .label-name").allInnerTexts();
  }

  /** The numbers of the lines on the screen. */
  async linesShown(): Promise<number[]> {
    const numbers = await this.page.locator(".editor-group-container.active .line-numbers").allInnerTexts();
    return numbers.map(Number).sort((left, right) => left - right);
  }

  /** Open a file at a line, as a user does. (By its whole path: the workbench has no file search without ripgrep.) */
  async openFile(file: string, line: number): Promise<void> {
    const name = path.basename(file);
    await this.page.keyboard.press("Control+P");
    await this.input.fill(file);
    await this.rowsWith(name);
    await this.page.keyboard.press("Enter");
    await until(`the editor of ${name}`, async () => (await this.tabs()).includes(name) && (await this.place()).file === name);
    await this.page.keyboard.press("Control+G");
    await this.input.fill(`:${line}`);
    await this.page.keyboard.press("Enter");
    await until(`line ${line}`, async () => isDeepStrictEqual(await this.place(), { file: name, line, column: 1 }));
  }

  /** The message of a dialog that has to be answered. */
  get dialog(): Locator {
    return this.page.locator(".monaco-dialog-box");
  }

  async answer(button: string): Promise<void> {
    await this.dialog.getByRole("button", { name: button, exact: true }).click();
    await this.dialog.waitFor({ state: "detached" });
  }

  get notifications(): Locator {
    return this.page.locator(".notifications-toasts .notification-list-item-message");
  }

  async screenshot(name: string): Promise<void> {
    const folder = path.join(HERE, "out", "screenshots");
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: path.join(folder, `${name}.png`) });
  }
}

function settingsIn(home: string): string {
  return path.join(home, "data", "User", "settings.json");
}

function settingsText(values: Record<string, unknown>): string {
  return JSON.stringify({ ...QUIET_SETTINGS, ...values });
}

/** What a look shows, as soon as it shows something. */
export async function until<Seen>(what: string, look: () => Promise<Seen | undefined | false>): Promise<Seen> {
  for (const deadline = Date.now() + PATIENCE; Date.now() < deadline; ) {
    const seen = await look();
    if (seen !== undefined && seen !== false) {
      return seen;
    }
    await sleep(50);
  }
  throw new Error(`waited ${PATIENCE / 1000} s for ${what}`);
}

function surroundings(home: string, options: Options): NodeJS.ProcessEnv {
  for (const name of ["tmp", "run"]) {
    mkdirSync(path.join(home, name), { mode: 0o700 });
  }
  const places = { HOME: home, TMPDIR: path.join(home, "tmp"), XDG_RUNTIME_DIR: path.join(home, "run") };
  // Else the workbench asks a login shell for its environment, in which PATH would be the system's.
  const asStarted = { VSCODE_CLI: "1" };
  // Where packages come from is a matter of the machine.
  const pip = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("PIP_")));
  return { ...pip, ...places, ...asStarted, LANG: "C.UTF-8", MEANING_CACHE_DIR: path.join(home, "cache"), PATH: options.searchPath };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function answers(url: string): Promise<void> {
  await until(url, async () => {
    try {
      return (await fetch(url)).ok;
    } catch {
      return false;
    }
  });
}

/** Busy, the workbench sometimes opens a workspace file without its folders, and then does so until it is loaded again. */
async function folderShown(page: Page): Promise<void> {
  const row = page.locator(".explorer-folders-view .monaco-list-row").first();
  for (const deadline = Date.now() + PATIENCE; ; ) {
    try {
      await row.waitFor({ timeout: PATIENCE / 4 });
      return;
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await page.reload();
    }
  }
}

/** It has children, which are in its group. */
function end(server: ChildProcess): void {
  try {
    process.kill(-(server.pid ?? 0), "SIGKILL");
  } catch {
    // It ended by itself.
  }
}
