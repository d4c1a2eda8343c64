"""The files that say what is left out, but lie where the walk does not come: git's own, and those above the workspace.

`Sources` are such files with what they said when they were looked at; comparing two looks tells whether anything that
counts has changed. Where to expect a change of a file that may be missing, or behind links, tells `trail`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import git
from .ignore import FILES

_MOST_LINKS = 40
"""As many as Linux follows on the way to one file."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Files that are read together, at a moment."""

    files: tuple[Path, ...]
    """Each absolute; it need not exist."""
    said: tuple[object, ...]
    """Equal for as long as the walk finds the same by them."""


def of_the_user(root: Path) -> Sources:
    """What the user's own configuration of git says in a workspace folder without a repository's."""
    configs = git.user_configs()
    excludes = git.excludes_file(root, None)
    return Sources((*configs, excludes), (excludes, _stamp(excludes)))


def of_a_repository(top: Path) -> Sources:
    """What the repository with this top says outside of its tree; nothing, until it is one."""
    found = git.git_folder(top)
    if found is None:
        return Sources((top / ".git" / "HEAD",), ())
    config, exclude = git.repository_config(found), git.info_exclude(found)
    chosen = git.stated_excludes_file([config], top)
    patterns = (exclude, chosen) if chosen else (exclude,)
    return Sources((found / "HEAD", config, *patterns), tuple((file, _stamp(file)) for file in patterns))


def from_above(root: Path) -> Sources:
    """What lies between a workspace folder and the top of the repository around it, and where that lies itself; while
    there is none, every folder above may become one."""
    top = git.top_folder(root)
    above = [folder for folder in root.parents if top is None or folder.is_relative_to(top)]
    repositories = [folder / ".git" / "HEAD" for folder in (root, *above)]
    patterns = [folder / name for folder in above if top for name in FILES]
    return Sources((*repositories, *patterns), (top, *map(_stamp, patterns)))


def trail(file: Path) -> Iterator[tuple[str, str]]:
    """The folders on the way to a file, each with the entry of it that decides where the way leads.

    That is a link, the file, or the first part that is missing, with which the trail ends. A folder is named for
    itself, with an empty entry: it decides only by being moved or deleted.
    """
    at, parts, links = Path(file.anchor), [*file.parts[:0:-1]], 0
    while parts:
        name = parts.pop()
        if name == os.pardir:
            at = at.parent
            continue
        target = _target(at / name)
        if target is None and parts and _is_folder(at / name):
            at /= name
            yield str(at), ""
            continue
        yield str(at), name
        if target is None or links == _MOST_LINKS:
            return
        links += 1
        at = Path(target.anchor or at)
        parts += target.parts[:0:-1] if target.anchor else target.parts[::-1]


def _target(place: Path) -> Path | None:
    """What a link points to; None if it is none."""
    try:
        return place.readlink()
    except (OSError, ValueError):
        return None


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:
        return False


def _stamp(file: Path) -> tuple[object, ...] | None:
    """Changes with every change of a file's content, and when there is another file.

    The times show that it was changed and changed back; but a file may change twice within one tick of its clock.
    """
    try:
        found = file.stat()
        content = file.read_bytes() if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError):
        return None
    return content, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
