"""Reading one file of the workspace, which may be another thing by now than the walk saw."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 100_000_000
"""Bytes: as large a file as the settings can let in."""

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)  # what a link points to has a path of its own, or lies outside
    | getattr(os, "O_NONBLOCK", 0)  # nobody may ever write into a pipe
    | getattr(os, "O_NOCTTY", 0)
)


def read_regular(path: Path, limit: int = LARGEST) -> bytes:
    """The content of a regular file of at most `limit` bytes. Raises OSError for anything else, and never waits."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes by now", str(path))
    return data
