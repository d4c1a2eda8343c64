"""Checksums of what is stored: a bit that flipped on a disk is found out before it is told as an answer.

SQLite notices a page that makes no sense; a letter of a name, a line number or a number of a vector that is another one
makes sense to it.
"""

from __future__ import annotations

import zlib


def sum_of(*values: object) -> int:
    """The CRC-32 of the values of a row."""
    return zlib.crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def sound(data: bytes, expected: int) -> bytes:
    """`data` if that is its CRC-32, else nothing. (As a function of SQL it would wait for the interpreter each row.)"""
    return data if isinstance(data, bytes) and zlib.crc32(data) == expected else b""
