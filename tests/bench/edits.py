"""Edits of functions in any tree of code: in single files, and as the two branches of a repository."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BRANCHES = ("before", "after")
EDITS_PER_FILE = 3
"""Functions of a file that the two branches have different."""

_FUNCTION = re.compile(r"^(?:export )?(?:async )?(?:def|function|func) (\w+)(?=\()", re.MULTILINE)
_NOT_CODE = re.compile(r"/(\.|node_modules|vendor|third_party|dist|build)")
"""Folders that a workspace may leave out."""
_ENDINGS = (".py", ".js", ".ts", ".go")


def editable(root: Path) -> list[Path]:
    """Files whose functions can be renamed, at least one, mixed, in the same order for the same tree."""
    files = editable_if_any(root)
    assert files, f"{root}: no file with functions to edit"
    return files


def editable_if_any(root: Path) -> list[Path]:
    """The same, or none: a tree may be all in other languages."""
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(root)
        if not _NOT_CODE.search(folder[len(str(root)) :])
        for name in names
        if name.endswith(_ENDINGS) and len(_FUNCTION.findall(_text(Path(folder, name)))) >= EDITS_PER_FILE
    ]
    return sorted(files, key=lambda file: hashlib.sha256(str(file.relative_to(root)).encode()).digest())


def edited(file: Path, names: Sequence[str]) -> str:
    """A file's text with its first functions named so."""
    text = _text(file)
    for name, old in reversed(list(zip(names, _FUNCTION.finditer(text), strict=False))):
        text = text[: old.start(1)] + name + text[old.end(1) :]
    return text


def write(file: Path, text: str) -> None:
    """Write in place; bytes that were no UTF-8 stay as they were."""
    file.write_text(text, "utf-8", errors="surrogateescape", newline="")


def _text(file: Path) -> str:
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
        return stream.read()


def new_name(purpose: str, number: int) -> str:
    """A name that nothing else has, one word."""
    digest = hashlib.sha256(f"{purpose} {number}".encode()).digest()
    return "q" + "".join(chr(ord("a") + byte % 26) for byte in digest[:11])


def make_branches(root: Path, files: Sequence[Path]) -> None:
    """A repository whose branches differ in the first functions of each file; the first branch is checked out."""
    git(root, "init", "-q")
    for branch in BRANCHES:
        git(root, "checkout", "-q", "-b", branch)
        for number, file in enumerate(files):
            write(file, edited(file, branch_names(branch, number)))
        git(root, "add", "--all")
        git(root, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", branch)
    git(root, "checkout", "-q", BRANCHES[0])


def branch_names(branch: str, number: int) -> list[str]:
    """The names that the first functions of a file have on a branch."""
    return [new_name(f"{branch} {edit}", number) for edit in range(EDITS_PER_FILE)]


def git(root: Path, *arguments: str) -> None:
    """Run git in a folder, heedless of the user's configuration."""
    plain = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-c", "gc.auto=0", *arguments], cwd=root, check=True, env=plain, stdout=sys.stderr)
