"""The extension's own tools. They are installed here, once; where that cannot be done its tests are skipped, but not in
CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-client"
OLDEST_NODE = 20
UNAVAILABLE = 3
"""What scripts/tools.mjs ends with where something cannot be had."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A command in the extension's folder. The wheel is built, and the server run, by this interpreter."""
    # A folder of our own, and not pytest's, whose names are too long for the sockets of the workbench.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        surroundings = {**os.environ, "PYTHON": sys.executable, "TMPDIR": folder}
        return subprocess.run(command, cwd=EXTENSION, env=surroundings, capture_output=True, text=True, check=False)


def succeed(*command: str) -> str:
    done = run(*command)
    assert not done.returncode, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def skip(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def packages() -> None:
    """npm's packages, as the lock file names them."""
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        skip("the VS Code extension needs Node.js and npm (Debian: apt-get install nodejs npm)")
    version = run(node, "--version").stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < OLDEST_NODE:
        skip(f"the VS Code extension needs Node.js {OLDEST_NODE} or later; this is {version}")
    installed = EXTENSION / "node_modules" / ".package-lock.json"
    wanted = EXTENSION / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < wanted.stat().st_mtime:
        done = run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
        if done.returncode:
            skip(f"npm cannot install the packages of the VS Code extension: {done.stderr[-500:]}")


@pytest.fixture(scope="session")
def vsix(packages: None) -> Path:
    """The extension, packed."""
    succeed("npm", "run", "package")
    return EXTENSION / "dist" / "meaning-lsp.vsix"


@pytest.fixture(scope="session")
def workbench() -> None:
    """VS Code's workbench, and a browser to show it."""
    if sys.platform != "linux":
        skip("the workbench is tested on Linux")
    done = run("node", "scripts/tools.mjs")
    if done.returncode == UNAVAILABLE:
        skip(done.stderr[-1000:])
    assert not done.returncode, done.stderr
