"""Files that are made from the database: written beside their name, renamed, and known by their checksum."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Callable, Collection
from io import FileIO
from pathlib import Path

import numpy as np

PAGE = 4096
"""What a disk loses, moves or empties is a whole number of these."""

_READ_AT_ONCE = 256 * PAGE

SCRATCH = "tmp"
"""How the name of a file ends that is not whole yet."""


def write_derived(folder: Path, name: str, write: Callable[[Path], object]) -> tuple[str, int]:
    """Have `write` make a file, and give it its name for good: `name` with its checksum for `{}`.

    Returns that and its checksum. It is on the disk when it has its name. Raises what `write` does, and OSError.
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
    """The CRC-32 of a file's length and of the sums of its pages, each of its 8-byte words. Raises OSError.

    Anything that becomes another page changes it, and so does a page in another's place, while it takes a twentieth of
    the time that a CRC-32 of every byte does: a large index is opened in a fraction of a second.
    """
    block = bytearray(_READ_AT_ONCE)
    value = length = 0
    with path.open("rb", buffering=0) as data:
        while read := _read(data, block):
            length += read
            end = read + -read % PAGE
            block[read:end] = bytes(end - read)
            pages = np.frombuffer(block, np.uint64, end // 8).reshape(-1, PAGE // 8)
            value = zlib.crc32(pages.sum(axis=1), value)
    return zlib.crc32(length.to_bytes(8, "little"), value)


def _read(data: FileIO, block: bytearray) -> int:
    """Fill `block` as far as the file goes; returns the bytes that were read."""
    read, room = 0, memoryview(block)
    while more := data.readinto(room[read:]):
        read += more
    return read
