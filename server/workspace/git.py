"""Where git keeps the ignore patterns that stand in no `.gitignore`. Reads files only; git itself need not be there."""

from __future__ import annotations

import os
import re
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
    with suppress(OSError):  # no such file: not a worktree
        git = git / (git / "commondir").read_text("utf-8", "surrogateescape").strip()
    return git / "info" / "exclude"


def global_excludes() -> Path:
    """The user's `core.excludesFile`, or the place where git looks without it (there may be none)."""
    config_home = Path(os.environ.get("XDG_CONFIG_HOME") or _expanded("~/.config"))
    if chosen := os.environ.get("GIT_CONFIG_GLOBAL"):
        configs = [Path(chosen)]
    else:
        configs = [_expanded("~/.gitconfig"), config_home / "git" / "config"]
    for config in configs:
        if value := _excludes_file(config):
            return _expanded(value)
    return config_home / "git" / "ignore"


def _expanded(path: str) -> Path:
    """`~` and `~name` resolved; as it stands, which names no file, for a user without a home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _excludes_file(config: Path) -> str:
    """`core.excludesFile` as one config file gives it; empty if it does not. Includes are not followed."""
    try:
        text = config.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""
    section, value = "", ""
    for line in text.splitlines():
        if heading := re.match(r"\s*\[\s*([^\]\s]+)[^\]]*\]", line):
            section = heading[1].lower()
        elif section == "core" and (setting := re.match(r'(?i)\s*excludesfile\s*=\s*"?([^"#;]*)', line)):
            value = setting[1].strip()
    return value
