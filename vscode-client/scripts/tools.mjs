// node scripts/tools.mjs: what the end-to-end test needs beside npm's packages, installed once into .workbench/ (another
// folder: MEANING_WORKBENCH). Prints {"serverMain": …, "chromium": …}, or ends with status 3 and says what cannot be had.
//
// The workbench is that of VS Code itself, as the npm package code-server carries it, run without code-server.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The newest that runs on Node 20. */
const PACKAGE = "code-server@4.100.3";
const BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const UNAVAILABLE = 3;

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = path.resolve(process.env.MEANING_WORKBENCH ?? path.join(here, ".workbench"));

/** What commands print goes to stderr: stdout is for the answer. */
function run(command, args, cwd = folder) {
  execFileSync(command, args, { cwd, stdio: ["ignore", 2, 2] });
}

function workbench() {
  const home = path.join(folder, PACKAGE.replace("@", "-"));
  const serverMain = path.join(home, "lib", "vscode", "out", "server-main.js");
  if (!existsSync(serverMain)) {
    const unpacked = path.join(folder, "unpacked");
    rmSync(unpacked, { recursive: true, force: true });
    mkdirSync(unpacked, { recursive: true });
    run("npm", ["pack", "--silent", "--pack-destination", unpacked, PACKAGE]);
    run("tar", ["xzf", `${PACKAGE.replace("@", "-")}.tgz`], unpacked);
    const vscode = path.join(unpacked, "package", "lib", "vscode");
    // Its lock file names packages that the registry does not have; scripts would compile what is not needed here.
    run("npm", ["install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], vscode);
    rmSync(home, { recursive: true, force: true });
    renameSync(path.join(unpacked, "package"), home);
    rmSync(unpacked, { recursive: true });
  }
  return serverMain;
}

function chromium() {
  const found = process.env.CHROMIUM ?? BROWSERS.map(onPath).find(Boolean);
  if (found) {
    return found;
  }
  if (process.getuid?.() !== 0 || !onPath("apt-get")) {
    throw new Error("no Chromium is installed; name one in CHROMIUM, or install it (Debian: sudo apt-get install chromium)");
  }
  run("apt-get", ["-qq", "update"]);
  run("apt-get", ["-qq", "install", "-y", "--no-install-recommends", "chromium"]);
  return onPath("chromium");
}

function onPath(name) {
  const folders = (process.env.PATH ?? "").split(path.delimiter);
  return folders.map((each) => path.join(each, name)).find((file) => existsSync(file));
}

try {
  mkdirSync(folder, { recursive: true });
  console.log(JSON.stringify({ serverMain: workbench(), chromium: chromium() }));
} catch (error) {
  console.error(`the workbench for the end-to-end test cannot be had: ${error.message}`);
  process.exitCode = UNAVAILABLE;
}
