"""Our kinds and places in the protocol's terms."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.lsp.convert import _KINDS, Converter, path_of
from server.parse import KINDS
from server.search.answer import Hit


def hit(path: str, selection: tuple[int, int, int], head: str = "") -> Hit:
    return Hit(path, 0, 2, selection, head, "f", "A.B", "method", "python", 1.0, "def f()")


def columns(converter: Converter, found: Hit) -> tuple[int, int]:
    selection = converter.item(found)["selectionRange"]
    return selection.start.character, selection.end.character


def test_every_kind_of_ours_has_one_of_theirs() -> None:
    assert set(_KINDS) == set(KINDS)


@pytest.mark.parametrize(
    ("encoding", "expected"), [("utf-32", (3, 5)), ("utf-16", (4, 7)), ("utf-8", (7, 12)), (None, (4, 7))]
)
def test_columns_are_converted(tmp_path: Path, encoding: str | None, expected: tuple[int, int]) -> None:
    found = hit("a.py", (1, 3, 5), head="é😀 f😀")
    assert columns(Converter(tmp_path.as_uri(), tmp_path, encoding), found) == expected


def test_a_line_in_ascii_needs_no_conversion(tmp_path: Path) -> None:
    assert columns(Converter(tmp_path.as_uri(), tmp_path, "utf-8"), hit("a.py", (0, 4, 5))) == (4, 5)


def test_uris_begin_as_the_client_spells_its_folder(tmp_path: Path) -> None:
    converter = Converter("file:///C%3A/My%20code/", tmp_path, "utf-8")
    assert converter.location(hit("a b/ü#?.py", (0, 0, 0))).uri == "file:///C%3A/My%20code/a%20b/%C3%BC%23%3F.py"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c", "/a/b c"),
        ("file:///a/b/", "/a/b"),
        ("file:///a/../b", "/b"),
        ("file:///%C3%BC", "/ü"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:/a", "/a"),
        ("untitled:one", None),
        ("vscode-vfs://github/a", None),
        ("file:", None),
        ("file:///a%00b", None),
        ("file:///a%FFb", None),
        ("/a/b", None),
        ("", None),
    ],
)
def test_a_file_uri_is_a_path(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))
