// node scripts/package.mjs: the extension as one file, dist/meaning-lsp.vsix, with the wheel of the server inside.
//
// PYTHON names the interpreter that builds the wheel: the clone's own (.venv) if there is one, else python3.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const root = path.dirname(here);
const wheels = path.join(here, "wheel");
const own = path.join(root, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
const out = path.join(here, "dist", "meaning-lsp.vsix");

/** From a copy: a build leaves folders behind, and old ones would find their way into the wheel. */
function buildWheel() {
  const work = mkdtempSync(path.join(tmpdir(), "meaning-wheel-"));
  try {
    for (const name of ["pyproject.toml", "README.md", "LICENSE", "server"]) {
      cpSync(path.join(root, name), path.join(work, name), { recursive: true, filter: (file) => !file.endsWith("__pycache__") });
    }
    run(python, "-m", "pip", "--disable-pip-version-check", "wheel", "-qq", "--no-deps", ...isolation(), "-w", wheels, work);
  } finally {
    rmSync(work, { recursive: true });
  }
  const [file] = readdirSync(wheels).filter((name) => name.endsWith(".whl"));
  const sha256 = createHash("sha256").update(readFileSync(path.join(wheels, file))).digest("hex");
  writeFileSync(path.join(wheels, "wheel.json"), JSON.stringify({ file, version: file.split("-")[1], sha256 }));
}

/** Without a network where what builds is there already. */
function isolation() {
  try {
    execFileSync(python, ["-c", "import setuptools, sys; sys.exit(int(setuptools.__version__.split('.')[0]) < 77)"], { stdio: "ignore" });
    return ["--no-build-isolation", "--no-index"];
  } catch {
    return [];
  }
}

function run(command, ...args) {
  execFileSync(command, args, { cwd: here, stdio: ["ignore", "inherit", "inherit"] });
}

rmSync(wheels, { recursive: true, force: true });
mkdirSync(wheels);
buildWheel();
run(process.execPath, "scripts/build.mjs");
copyFileSync(path.join(root, "LICENSE"), path.join(here, "LICENSE"));
run(process.execPath, "node_modules/@vscode/vsce/vsce", "package", "--no-dependencies", "--allow-missing-repository", "--out", out);
console.log(`${out}: ${(statSync(out).size / 1e6).toFixed(1)} MB`);
