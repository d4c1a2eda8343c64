"""Trees of files for the tests of the walk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from server.settings import Settings
from server.workspace.discover import discover
from server.workspace.ignore import Ignores


def write(root: Path, files: Mapping[str, str]) -> Path:
    """The files, path -> content, below `root`."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    return root


def repository(root: Path, files: Mapping[str, str]) -> Path:
    """The same, with just enough of a git folder at the top."""
    return write(root, {".git/HEAD": "ref: refs/heads/main\n", **files})


def walk(root: Path, settings: Settings | None = None) -> list[str]:
    """The paths that the walk finds but for ignore files, after asking `Ignores` about each entry of the tree."""
    settings = settings or Settings()
    found = {file.path for file in discover(root, settings)}
    ignores = Ignores(root, settings)
    for entry in root.rglob("*"):
        path = entry.relative_to(root).as_posix()
        if not entry.is_symlink() and entry.is_file():
            assert ignores.is_ignored(path, is_dir=False) is (path not in found), path
        elif entry.is_dir() and any(name.startswith(f"{path}/") for name in found):
            assert not ignores.is_ignored(path, is_dir=True), path
    return sorted(path for path in found if not path.endswith("ignore"))
