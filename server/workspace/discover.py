"""The walk: every file of a workspace that may be worth reading. Opens nothing but ignore files.

Symbolic links are not followed: what one points to inside the workspace is found at its own place, once, and what lies
outside stays outside; so there are no circles. Only regular files are given, never a pipe, socket or device.

A walk may be narrow: it looks only where it is asked to, and says there what the whole walk says.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..settings import Settings
from .builtin import is_data
from .content import content_reason
from .ignore import Folder, OnProblem, is_text, silent, workspace_folder

__all__ = ["FoundFile", "content_reason", "discover", "too_large"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that is not left out, as the walk saw it."""

    path: str
    """Relative to the workspace folder, with `/`."""
    size: int
    """Bytes."""
    mtime_ns: int
    ctime_ns: int
    """Changes with every change of content or name, even where a tool put the old `mtime_ns` back."""


_Within = dict[str, "_Within | None"]
"""The entries of a folder that are asked for, each with what is asked for inside of it: None for all there is."""


def discover(
    root: Path, settings: Settings, on_problem: OnProblem = silent, within: Collection[str] = ("",)
) -> Iterator[FoundFile]:
    """The files below `root`: a folder's entries in the order of their names, a folder's content in its place.

    Only those that are among `within` or lie below one of them: paths as in a change set, of files and folders that
    need not exist. Nothing is listed but these folders and those on the way to them.

    What cannot be looked at is told to `on_problem` and passed over. Raises OSError if that is `root` itself.
    """
    entries = _listed(str(root))
    top = workspace_folder(root, settings, [entry.name for entry in entries], on_problem)
    asked = _asked_for(within)
    waiting = [(top, asked, _in_order(entries, asked))]
    while waiting:
        folder, asked, rest = waiting[-1]
        for entry in rest:
            deeper = None if asked is None else asked[entry.name]
            if not is_text(entry.name):
                on_problem(folder.path + entry.name, OSError(errno.EILSEQ, "the name is not UTF-8"))
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    if inside := _entered(folder, entry, deeper, on_problem):
                        waiting.append(inside)
                        break
                elif deeper is None and (found := _found(folder, entry, settings)):
                    yield found
            except OSError as error:
                on_problem(folder.path + entry.name, error)
        else:
            waiting.pop()


def too_large(path: str, size: int, settings: Settings) -> bool:
    """Whether a file is left out for its size."""
    return size > settings.max_file_bytes or is_data(path.rpartition("/")[2], size)


def _asked_for(within: Iterable[str]) -> _Within | None:
    """The paths as a tree. Only names that a folder turns out to hold are ever followed, so `..` leads nowhere."""
    top: _Within = {}
    for path in within:
        if not path:
            return None
        folder = top
        *above, name = path.split("/")
        for part in above:
            deeper = folder.setdefault(part, {})
            if deeper is None:
                break  # All of it is asked for.
            folder = deeper
        else:
            folder[name] = None
    return top


def _listed(place: str) -> list[os.DirEntry[str]]:
    with os.scandir(place) as entries:
        return list(entries)


def _in_order(entries: Iterable[os.DirEntry[str]], asked: _Within | None) -> Iterator[os.DirEntry[str]]:
    chosen = entries if asked is None else [entry for entry in entries if entry.name in asked]
    return iter(sorted(chosen, key=lambda entry: entry.name))


def _entered(
    folder: Folder, entry: os.DirEntry[str], asked: _Within | None, on_problem: OnProblem
) -> tuple[Folder, _Within | None, Iterator[os.DirEntry[str]]] | None:
    if folder.leaves_out(entry.name, is_dir=True):
        return None
    entries = _listed(entry.path)
    inside = folder.enter(entry.name, [inner.name for inner in entries], on_problem)
    return (inside, asked, _in_order(entries, asked)) if inside else None


def _found(folder: Folder, entry: os.DirEntry[str], settings: Settings) -> FoundFile | None:
    if not entry.is_file(follow_symlinks=False) or folder.leaves_out(entry.name, is_dir=False):
        return None
    status = entry.stat(follow_symlinks=False)
    if too_large(entry.name, status.st_size, settings):
        return None
    return FoundFile(folder.path + entry.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
