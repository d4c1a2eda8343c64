"""Files that are made from the database: written beside their name, renamed, and known by their checksum."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Collection
from pathlib import Path

SCRATCH = "tmp"
"""How the name of a file ends that is not whole yet."""


def write_derived(folder: Path, name: str, write: Callable[[Path], object]) -> tuple[str, int]:
    """Have `write` make a file, and give it its name for good: `name` with its checksum for `{}`.

    Returns that and the CRC-32. It is on the disk when it has its name. Raises what `write` does, and OSError.
    """
    scratch = folder / f"{name.format(os.getpid())}.{SCRATCH}"
    try:
        write(scratch)
        checksum = checksum_of(scratch)
        with scratch.open("rb+") as written:
            os.fsync(written.fileno())
        scratch.chmod(0o600)
        named = name.format(f"{checksum:08x}")
        scratch.replace(folder / named)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return named, checksum


def sweep(folder: Path, pattern: str, kept: Collection[str]) -> None:
    """Delete the files of a folder that match and are not kept: older ones, and what a kill has left."""
    for file in folder.glob(pattern):
        if file.name not in kept:
            with contextlib.suppress(OSError):  # still mapped by another process, on some systems
                file.unlink()


def is_intact(path: Path, checksum: int) -> bool:
    """Whether a file is there and is what was written."""
    try:
        return checksum_of(path) == checksum
    except OSError:
        return False


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file. Raises OSError."""
    value = 0
    with path.open("rb") as data:
        while block := data.read(1 << 20):
            value = zlib.crc32(block, value)
    return value
