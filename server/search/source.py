"""The code of a hit, as its file has it now."""

from __future__ import annotations

from pathlib import Path

from ..parse import NotText, decode
from ..parse.source import with_newlines
from ..workspace.read import read_regular


def current_text(root: Path, path: str) -> str | None:
    r"""The text of a file of the workspace, with \n at its lines' ends; None if it is gone, no text any more, or lies
    elsewhere: a folder above it may have become a link since it was indexed."""
    file = root / path
    try:
        if file.resolve(strict=True) != file:
            return None
        return with_newlines(decode(read_regular(file)))
    except (OSError, NotText):
        return None
