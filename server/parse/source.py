"""A file's bytes as text, and its lines."""

from __future__ import annotations

import codecs

_BOMS = (
    # UTF-32 first: its little-endian mark begins with UTF-16's.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(ValueError):
    """The bytes are no text; the message says how one sees it."""


def decode(data: bytes) -> str:
    """The text of a file, without its byte order mark.

    A mark names the encoding; without one it is UTF-8. Bytes that are wrong in it become U+FFFD: a file with one
    Latin-1 name in a comment is still worth finding. Raises NotText for NUL bytes in anything but UTF-16 and UTF-32.
    """
    mark, encoding = next((each for each in _BOMS if data.startswith(each[0])), (b"", "utf-8"))
    data = data[len(mark) :]
    if encoding == "utf-8" and (position := data.find(0)) >= 0:
        raise NotText(f"binary: a NUL byte at offset {position}")
    return data.decode(encoding, errors="replace")


def split_lines(text: str) -> list[str]:
    r"""The lines of `text` without their ends. Only \n, \r\n and a lone \r end a line, as in the language server
    protocol; form feeds and U+2028 do not. An end at the very end of the text begins no further line."""
    lines = with_newlines(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def with_newlines(text: str) -> str:
    r"""`text` with every line end as \n: the lines keep their numbers and their columns."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")
