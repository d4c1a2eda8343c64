"""Bytes become text, or a reason why not."""

from __future__ import annotations

import codecs

import pytest

from server.parse import NotText, decode, parse
from server.parse.languages import BY_NAME
from server.parse.source import split_lines

TEXT = "def f():\n    return 'é𝒳'\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
        codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"],
)
def test_the_mark_says_the_encoding_and_is_no_part_of_the_text(data: bytes) -> None:
    assert decode(data) == TEXT


def test_wrong_bytes_become_replacement_characters() -> None:
    assert decode("# café\n".encode("latin-1")) == "# caf\ufffd\n"
    assert decode(codecs.BOM_UTF16_LE + b"a\0b") == "a\ufffd"


def test_nul_bytes_without_a_mark_are_binary_and_the_error_says_where() -> None:
    with pytest.raises(NotText, match="a NUL byte at offset 3"):
        decode(b"abc\0def")
    with pytest.raises(NotText):
        decode(codecs.BOM_UTF8 + b"abc\0")


def test_an_empty_file_is_an_empty_text() -> None:
    assert decode(b"") == ""
    assert decode(codecs.BOM_UTF8) == ""


def test_only_the_protocols_line_ends_end_a_line() -> None:
    assert split_lines("a\r\nb\rc\nd\x0be\x0cf\x85g\u2028h\n") == ["a", "b", "c", "d\x0be\x0cf\x85g\u2028h"]
    assert split_lines("") == []
    assert split_lines("a") == ["a"]
    assert split_lines("a\n\n") == ["a", ""]


def test_columns_are_code_points() -> None:
    units = parse("ä = '😀'; function λ() {}\n", BY_NAME["javascript"], "a")
    assert units[0].selection == (0, 18, 19)
