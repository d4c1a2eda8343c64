import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { fixesOf, Problem } from "../src/problem";
import { Installation } from "../src/server/installation";
import { checkIn, commandOf, judgeVersion, locate, which, type Check, type Places } from "../src/server/locate";
import { explain, progressOf } from "../src/server/pip";
import { run } from "../src/server/process";
import { findPython, whyNone, type Python } from "../src/server/python";

const folder = () => mkdtempSync(path.join(tmpdir(), "meaning-unit-"));

/** A program of the shell. */
function program(file: string, script: string): string {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

// -- which server

const fine: Check = () => Promise.resolve(undefined);
const quiet = () => undefined;

function places(values: Partial<Places>): Places {
  const none = () => Promise.resolve(undefined);
  return { setting: "", selectedPython: none, searchPath: "", ownPython: none, ...values };
}

const everywhere = () => {
  const bin = folder();
  program(path.join(bin, "meaning-lsp"), "");
  return places({
    selectedPython: () => Promise.resolve("/venv/bin/python"),
    searchPath: `relative:${bin}`,
    ownPython: () => Promise.resolve("/own/bin/python"),
  });
};

test("the setting comes first, then the selected Python, the PATH, and the extension's own", async () => {
  const all = everywhere();
  const found = async (refused: string[], setting = "") => {
    const check: Check = ({ origin }) => Promise.resolve(refused.some((each) => origin.includes(each)) ? "no" : undefined);
    return (await locate({ ...all, setting }, check, quiet))?.origin.split(",")[0];
  };
  assert.equal(await found([], "/opt/meaning-lsp"), "the setting meaning.server.path");
  assert.equal(await found([]), "the selected Python");
  assert.equal(await found(["selected"]), "the PATH");
  assert.equal(await found(["selected", "PATH"]), "the extension's own installation");
  assert.equal(await found(["selected", "PATH", "own"]), undefined);
});

test("a setting that cannot be used is an error with a way out, never passed over", async () => {
  const bad: Check = () => Promise.resolve("no such file");
  await assert.rejects(locate({ ...everywhere(), setting: "/gone" }, bad, quiet), (error) => {
    assert.match(String(error), /meaning\.server\.path: no such file/);
    assert.equal(fixesOf(error)[0]?.title, "Open Settings");
    return error instanceof Problem;
  });
});

test("nothing is found where there is nothing", async () => {
  assert.equal(await locate(places({}), fine, quiet), undefined);
});

test("a program is run as it is, an interpreter with the package's name", () => {
  assert.deepEqual(commandOf("/opt/bin/meaning-lsp", "").args, []);
  for (const python of ["/venv/bin/python", "/usr/bin/python3.12", "C:/Python/python.exe", "pypy3"]) {
    assert.deepEqual(commandOf(python, "").args, ["-m", "meaning_lsp"], python);
  }
});

test("a relative folder of the PATH is that of the workspace, and not looked into", () => {
  const bin = folder();
  program(path.join(bin, "meaning-lsp"), "");
  assert.equal(which("meaning-lsp", `.:${path.relative(process.cwd(), bin)}`), undefined);
  assert.equal(which("meaning-lsp", `.:${bin}`), path.join(bin, "meaning-lsp"));
});

test("a server that is too old, or none, is told by name", () => {
  assert.equal(judgeVersion("m", "meaning-lsp 0.1.0\n"), undefined);
  assert.equal(judgeVersion("m", "meaning-lsp 1.0.0\n"), undefined);
  assert.match(judgeVersion("m", "meaning-lsp 0.0.9\n") ?? "", /0\.0\.9; this extension needs 0\.1\.0/);
  assert.match(judgeVersion("m", "Python 3.11") ?? "", /m is no meaning-lsp/);
});

test("why a program cannot be run is told in words", async () => {
  const trouble = (file: string) => checkIn(folder())({ command: file, args: [], origin: "" });
  assert.equal(await trouble("/gone/meaning-lsp"), "there is no program /gone/meaning-lsp");
  assert.match((await trouble(folder())) ?? "", /cannot be run: it is no program, or one that you may not run/);
  const chatty = program(path.join(folder(), "env"), "echo env 9.1; echo Copyright");
  assert.match((await trouble(chatty)) ?? "", /is no meaning-lsp: asked for its version, it says "env 9.1"$/);
  const mute = program(path.join(folder(), "mute"), "exec sleep 60");
  await assert.rejects(run(mute, [], { timeout: 200 }), /mute says nothing for 0.2 s/);
});

// -- which Python

const python = (version: number[], hasVenv = true): Python => ({ file: `/usr/bin/python${version.join(".")}`, version, hasVenv });

test("why no Python will do is told by its name and version", () => {
  assert.match(whyNone([]), /3\.10 to 3\.13, and no Python was found/);
  assert.match(whyNone([python([3, 8]), python([3, 14])]), /python3\.8 is 3\.8, .*python3\.14 is 3\.14/);
  assert.match(whyNone([python([3, 8]), python([3, 11], false)]), /python3\.11 cannot make virtual environments.*python3-venv/);
});

test("an interpreter that is too old is passed over for one that is not", async () => {
  const bin = folder();
  const answers = (version: string) => `echo '[[${version}], "'$0'", true]'`;
  program(path.join(bin, "python3"), answers("3, 9"));
  await assert.rejects(findPython(bin, undefined, bin), /python3 is 3\.9/);
  program(path.join(bin, "python"), answers("3, 12"));
  assert.equal((await findPython(bin, undefined, bin)).file, path.join(bin, "python"));
});

test("a file that is no interpreter is passed over", async () => {
  const bin = folder();
  program(path.join(bin, "python3"), "exit 9");
  await assert.rejects(findPython(bin, path.join(bin, "gone"), bin), /no Python was found/);
});

// -- pip

test("what pip says is told in a sentence", () => {
  assert.match(explain("OSError: [Errno 28] No space left on device"), /disk is full/);
  const lost = "WARNING: Retrying … NewConnectionError('…')\nERROR: No matching distribution found for numpy>=2.1";
  assert.match(explain(lost), /cannot be reached/);
  assert.match(explain("ERROR: No matching distribution found for onnxruntime<2"), /no onnxruntime<2 for this platform/);
  assert.match(explain("PermissionError: [Errno 13] Permission denied"), /cannot be written to/);
  assert.equal(explain("Collecting x\nERROR: something new\nnote"), "ERROR: something new");
});

test("progress is what a person would want to know", () => {
  assert.equal(progressOf("Collecting onnxruntime<2,>=1.20 (from meaning-lsp[cpu])"), "onnxruntime");
  assert.equal(progressOf("  Downloading numpy-2.4.whl (16 MB)"), undefined);
  assert.equal(progressOf("Installing collected packages: a, b"), "unpacking");
});

// -- the installation

/** A Python whose environments hold a Python that says yes to everything, or fails at pip. */
function fakePython(pip: string): string {
  const inside = `case "$*" in *pip*) ${pip};; esac`;
  const script = `mkdir -p "$3/bin"; printf '#!/bin/sh\\n%s\\n' '${inside}' > "$3/bin/python"; chmod +x "$3/bin/python"`;
  return program(path.join(folder(), "python3"), script);
}

function wheels(sha256: string): string {
  const where = folder();
  writeFileSync(path.join(where, "wheel.json"), JSON.stringify({ file: "m.whl", version: "0.1.0", sha256 }));
  return where;
}

function installing(python: string) {
  return { python, env: {}, signal: new AbortController().signal, progress: quiet, log: quiet };
}

test("an installation is there when it is whole, and is outdated by another wheel", async () => {
  const storage = path.join(folder(), "storage");
  const installation = new Installation(storage, wheels("one"));
  assert.equal(await installation.python(), undefined);
  assert.equal(await installation.isOutdated(), false);
  await installation.install(installing(fakePython("true")));
  assert.ok(existsSync((await installation.python()) ?? ""));
  assert.equal(await installation.isOutdated(), false);
  assert.equal(await new Installation(storage, wheels("two")).isOutdated(), true);
});

test("one that fails leaves nothing behind, and the one before as it was", async () => {
  const storage = path.join(folder(), "storage");
  const installation = new Installation(storage, wheels("one"));
  await installation.install(installing(fakePython("true")));
  const before = await installation.python();
  const broken = installing(fakePython('echo "ERROR: No space left on device"; exit 1'));
  await assert.rejects(installation.install(broken), /could not be installed\. The disk is full/);
  assert.equal(await installation.python(), before);
  assert.equal(readdirSync(storage).filter((name) => name.startsWith("server-")).length, 1);
});

test("a Python that cannot be started is an error like any other", async () => {
  const installation = new Installation(path.join(folder(), "storage"), wheels("one"));
  await assert.rejects(installation.install(installing("/gone/python3")), Problem);
});

test("the remains of old installations go, what another window is making stays", async () => {
  const storage = path.join(folder(), "storage");
  const old = path.join(storage, "server-0.0.1-old");
  mkdirSync(old, { recursive: true });
  utimesSync(old, 0, 0);
  mkdirSync(path.join(storage, "server-0.1.0-other"));
  const installation = new Installation(storage, wheels("one"));
  await installation.install(installing(fakePython("true")));
  assert.equal(existsSync(old), false);
  assert.equal(existsSync(path.join(storage, "server-0.1.0-other")), true);
});
