"""What a workspace is called in the organisation index, and which names a filter means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..workspace.git import git_folder, repository_config, top_folder

MAX_NAME = 200
"""Characters of a workspace's name."""

_ORIGIN = re.compile(r'^\[remote "origin"\]\s*$(?P<body>(?:\n(?!\[).*)*)', re.MULTILINE)
_URL = re.compile(r"^\s*url\s*=\s*(?P<url>\S+)", re.MULTILINE)
_GLOB = re.compile(r"[*?\[]")


class NotAName(ValueError):
    """A text that cannot name a workspace; the message says why."""


def checked_name(name: str) -> str:
    """A workspace's name if it can be one. Raises NotAName."""
    if not is_name(name):
        raise NotAName(
            f"{name!r}: a name has 1 to {MAX_NAME} printable characters, no blanks, and no empty, `.` or `..` part"
        )
    return name


def is_name(name: str) -> bool:
    """Whether a text can name a workspace: as a path can, `owner/project`."""
    return len(name) <= MAX_NAME and " " not in name and is_path(name)


def is_path(path: str) -> bool:
    """Whether a text is a relative path with `/` that stays below its folder and can be shown as it is."""
    return path.isprintable() and all(part not in ("", ".", "..") for part in path.split("/"))


def default_name(root: Path) -> str:
    """What a workspace is called whose publisher says nothing: `owner/project` of its git remote `origin`, with the
    folder's path in it if it is not the top; outside of git the folder's own name."""
    top = top_folder(root)
    git = git_folder(top) if top else None
    remote = _remote_name(repository_config(git)) if git else None
    if top is None or remote is None:
        return "-".join(root.name.split()) or "root"
    return "/".join([remote, *root.relative_to(top).parts])


def _remote_name(config: Path) -> str | None:
    """The last two parts of the URL of `origin`: https://host/owner/project.git, git@host:owner/project."""
    try:
        text = config.read_text("utf-8-sig", "replace")
    except OSError:
        return None
    origin = _ORIGIN.search(text)
    url = _URL.search(origin["body"]) if origin else None
    if url is None:
        return None
    parts = [part for part in re.split(r"[/:\\]", url["url"].rstrip("/").removesuffix(".git")) if part]
    name = "/".join(parts[-2:])
    return name if is_name(name) else None


def repository_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test of workspaces' names, in any case: True where one of the patterns is the name, its last part, or a glob
    that it matches (`acme/*`). No pattern, no condition."""
    lowered = [pattern.lower() for pattern in patterns]

    def matches(name: str) -> bool:
        name = name.lower()
        return not lowered or any(
            fnmatchcase(name, pattern) if _GLOB.search(pattern) else pattern in (name, name.rpartition("/")[2])
            for pattern in lowered
        )

    return matches
