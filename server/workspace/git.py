"""Where git keeps the ignore patterns that stand in no `.gitignore`. Reads files only; git itself need not be there.

Of git's configuration the user's and the repository's count. Files that they include do not, nor does the system's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def top_folder(folder: Path) -> Path | None:
    """The top of the working tree that `folder` lies in, itself included; None outside of git."""
    return next((place for place in (folder, *folder.parents) if git_folder(place)), None)


def git_folder(top: Path) -> Path | None:
    """The git folder of the working tree with this top, through a `.git` file too; None if it is not a top."""
    found = top / ".git"
    try:
        if found.is_file():
            # A worktree or a submodule: one line says where its git folder is.
            label, _, where = found.read_text("utf-8", "surrogateescape").partition(":")
            if label != "gitdir":
                return None
            found = top / where.strip()
        return found if (found / "HEAD").is_file() else None
    except (OSError, ValueError):
        return None


def info_exclude(git: Path) -> Path:
    """The repository's own exclude file, which its worktrees share (there may be none)."""
    return _shared(git) / "info" / "exclude"


def repository_config(git: Path) -> Path:
    """The repository's own configuration, which its worktrees share (there may be none)."""
    return _shared(git) / "config"


def user_configs() -> list[Path]:
    """The user's own configuration, weakest first (there may be none)."""
    if chosen := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [Path(chosen)]
    return [_config_home() / "git" / "config", _expanded("~/.gitconfig")]


def excludes_file(top: Path, git: Path | None) -> Path:
    """The exclude file in force in a working tree: `core.excludesFile`, or where git looks without it.

    There may be none; an empty setting names no file on purpose. Outside of git, `git` is None.
    """
    own = [repository_config(git)] if git else []
    chosen = stated_excludes_file([*user_configs(), *own], top)
    return chosen or _config_home() / "git" / "ignore"


def stated_excludes_file(configs: Iterable[Path], top: Path) -> Path | None:
    """`core.excludesFile` of a working tree as the last of these files that has it states it."""
    values = [value for config in configs if (value := _excludes_file(config)) is not None]
    return top / _expanded(values[-1]) if values else None


def _shared(git: Path) -> Path:
    with suppress(OSError):  # no such file: not a worktree
        return git / (git / "commondir").read_text("utf-8", "surrogateescape").strip()
    return git


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or _expanded("~/.config"))


def _expanded(path: str) -> Path:
    """`~` and `~name` resolved; as it stands, which names no file, for a user without a home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


_QUOTED = r'"(?:[^"\\\n]|\\(?:.|\n))*"'
_CONFIG = re.compile(
    rf"""
      \[ [^\]"\n]* (?: {_QUOTED} )? \]
    | (?P<name>[a-z][a-z0-9-]*) [ \t]* (?: = [ \t]* (?P<value> (?: [^"\\\n\#;] | \\(?:.|\n) | {_QUOTED} )* ) )?
    | \s+
    | .+
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A section's heading, a setting, space, or the rest of a line: a comment, or what git refuses to read."""
_IN_VALUE = re.compile(r'\\(.|\n)|"')
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b", "\n": ""}


def _excludes_file(config: Path) -> str | None:
    """`core.excludesFile` as one config file gives it; None if it does not."""
    try:
        text = config.read_text("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return None
    section, found = "", None
    for token in _CONFIG.finditer(text):
        if token[0].startswith("["):
            section = token[0][1:-1].lower()
        elif section == "core" and (token["name"] or "").lower() == "excludesfile":
            found = _IN_VALUE.sub(_unescaped, (token["value"] or "").rstrip(" \t"))
    return found


def _unescaped(part: re.Match[str]) -> str:
    """What a quote or an escape in a value stands for."""
    return _ESCAPED.get(part[1], part[1]) if part[1] else ""
