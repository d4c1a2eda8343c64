"""Edits change a document as the protocol says, to the unit; what comes of them is in the overlay."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from server.lsp.documents import Document, Documents
from server.settings import Settings
from server.workspace.overlay import Overlay

from .peer import peer_of, story

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
FOLDER = Path("/work space")
FILE = FOLDER / "a.py"
URI = FILE.as_uri()
Place = tuple[int, int]


# -- one edit, against a model that is obviously right


def units_of(text: str, encoding: str) -> list[bytes]:
    """The text as its code units."""
    width = {UTF8: 1, UTF16: 2, UTF32: 4}[encoding]
    data = text.encode(encoding if encoding == UTF8 else f"{encoding}-le", "surrogatepass")
    return [data[at : at + width] for at in range(0, len(data), width)]


def text_of(units: list[bytes], encoding: str) -> str:
    return b"".join(units).decode(encoding if encoding == UTF8 else f"{encoding}-le", "surrogatepass")


def is_within_a_character(units: list[bytes], at: int, encoding: str) -> bool:
    if not 0 < at < len(units):
        return False
    if encoding == UTF8:
        return units[at][0] & 0xC0 == 0x80
    if encoding == UTF16:
        return 0xD8 <= units[at - 1][1] <= 0xDB and 0xDC <= units[at][1] <= 0xDF
    return False


def offset_in(units: list[bytes], place: Place, encoding: str) -> int:
    """Walks through the units, a line end at a time."""
    feed, carriage = units_of("\n", encoding)[0], units_of("\r", encoding)[0]
    line, column = place
    at = 0
    while line:
        while at < len(units) and units[at] not in (feed, carriage):
            at += 1
        if at == len(units):
            return at
        at += 2 if units[at : at + 2] == [carriage, feed] else 1
        line -= 1
    while column and at < len(units) and units[at] not in (feed, carriage):
        at, column = at + 1, column - 1
    while is_within_a_character(units, at, encoding):
        at -= 1
    return at


def edited(text: str, start: Place, end: Place, new: str, encoding: str) -> str:
    units = units_of(text, encoding)
    first, last = sorted((offset_in(units, start, encoding), offset_in(units, end, encoding)))
    return text_of([*units[:first], *units_of(new, encoding), *units[last:]], encoding)


CHARACTERS = ["a", "b", "é", "ß", "語", "😀", "\n", "\r", "\r\n", "\f", "\v", "\x85", "\u2028", "\x1c", "\0"]
HALVES = ["\ud83d", "\ude00"]
"""Of a surrogate pair: a client that counts in UTF-16 may send them one by one."""
PLACES = st.tuples(st.integers(0, 6), st.one_of(st.integers(0, 8), st.just(2**31 - 1)))


def texts(encoding: str) -> st.SearchStrategy[str]:
    alphabet = CHARACTERS + HALVES if encoding == UTF16 else CHARACTERS
    joined = st.lists(st.sampled_from(alphabet), max_size=12).map("".join)
    return joined.map(lambda text: text_of(units_of(text, encoding), encoding))


@pytest.mark.parametrize("encoding", [UTF8, UTF16, UTF32])
@given(data=st.data())
def test_any_edits_change_the_units_that_they_name(encoding: str, data: st.DataObject) -> None:
    text = data.draw(texts(encoding))
    document = Document(text)
    for _ in range(data.draw(st.integers(1, 6))):
        start, end, new = data.draw(PLACES), data.draw(PLACES), data.draw(texts(encoding))
        document.edit(types.Range(types.Position(*start), types.Position(*end)), new, encoding)
        text = edited(text, start, end, new, encoding)
        assert document.shown() == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# -- the promises one by one, where a reader can check them


def after(text: str, start: Place, end: Place, new: str, encoding: str = UTF16) -> str:
    document = Document(text)
    document.edit(types.Range(types.Position(*start), types.Position(*end)), new, encoding)
    return document.shown()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_with_any_of_the_three_ends(end: str) -> None:
    assert after(f"ab{end}cd{end}", (1, 1), (1, 2), "X") == f"ab{end}cX{end}"


@pytest.mark.parametrize("inside", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_other_character_ends_a_line(inside: str) -> None:
    assert after(f"a{inside}b\nc", (1, 0), (1, 0), "X") == f"a{inside}b\nXc"


def test_a_carriage_return_that_a_feed_comes_to_is_one_end_with_it() -> None:
    document = Document("a\rb")
    document.edit(types.Range(types.Position(1, 0), types.Position(1, 0)), "\n", UTF16)
    document.edit(types.Range(types.Position(1, 0), types.Position(1, 0)), "X", UTF16)
    assert document.shown() == "a\r\nXb"


@pytest.mark.parametrize("column", [2, 3, 99, 2**31 - 1])
def test_beyond_the_end_of_a_line_is_its_end(column: int) -> None:
    assert after("ab\r\ncd", (0, column), (0, column), "X") == "abX\r\ncd"


@pytest.mark.parametrize("text", ["", "ab", "ab\n", "ab\r\n"])
def test_beyond_the_last_line_is_the_end(text: str) -> None:
    assert after(text, (9, 0), (9, 9), "X") == f"{text}X"
    assert after(text, (0, 0), (2**31 - 1, 2**31 - 1), "X") == "X"


def test_a_reversed_range_loses_nothing() -> None:
    assert after("one two", (0, 7), (0, 4), "2") == "one 2"


@pytest.mark.parametrize(("encoding", "columns"), [(UTF8, (1, 5)), (UTF16, (1, 3)), (UTF32, (1, 2))])
def test_columns_are_units_of_the_encoding(encoding: str, columns: tuple[int, int]) -> None:
    assert after("a😀b", (0, columns[0]), (0, columns[1]), "X", encoding) == "aXb"


@pytest.mark.parametrize(("encoding", "columns"), [(UTF8, (2, 3, 4)), (UTF16, (2,))])
def test_within_a_character_is_its_start(encoding: str, columns: tuple[int, ...]) -> None:
    for column in columns:
        assert after("a😀b", (0, column), (0, column), "X", encoding) == "aX😀b"


def test_a_lone_surrogate_counts_until_the_text_leaves() -> None:
    assert after("\ud83d😀\ude00b", (0, 4), (0, 5), "X") == "\ufffd😀\ufffdX"


def test_halves_that_come_together_are_a_character() -> None:
    document = Document("\ud83d-\ude00b")
    document.edit(types.Range(types.Position(0, 1), types.Position(0, 2)), "", UTF16)
    assert document.shown() == "😀b"
    document.edit(types.Range(types.Position(0, 2), types.Position(0, 3)), "c", UTF16)
    assert document.shown() == "😀c"


# -- the notifications


class Client:
    """Says what an editor says, to documents of its own."""

    def __init__(self, encoding: str = UTF16) -> None:
        self.overlay = Overlay()
        self.documents = Documents(self.overlay)
        self.documents.encoding = encoding

    def open(self, text: str, uri: str = URI) -> None:
        self.documents.opened(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text)))

    def change(self, *changes: types.TextDocumentContentChangeEvent, uri: str = URI, version: int = 2) -> None:
        named = types.VersionedTextDocumentIdentifier(version, uri)
        self.documents.changed(types.DidChangeTextDocumentParams(named, list(changes)))

    def save(self, text: str | None = None, uri: str = URI) -> None:
        self.documents.saved(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri), text))

    def close(self, uri: str = URI) -> None:
        self.documents.closed(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    @property
    def shown(self) -> dict[str, str]:
        return {path: buffer.text for path, buffer in self.overlay.below(FOLDER).items()}


def part(start: Place, end: Place, text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), text)


def whole(text: str) -> types.TextDocumentContentChangeWholeDocument:
    return types.TextDocumentContentChangeWholeDocument(text)


def test_a_document_is_in_the_overlay_from_open_to_close() -> None:
    client = Client()
    client.open("x = 1\n")
    assert client.shown == {"a.py": "x = 1\n"}
    client.change(part((0, 4), (0, 5), "2"))
    assert client.shown == {"a.py": "x = 2\n"}
    client.close()
    assert client.shown == {}


def test_the_changes_of_one_notification_apply_in_order() -> None:
    client = Client()
    client.open("lost")
    client.change(whole("a\nb"), part((1, 0), (1, 1), "c\nd"), part((2, 0), (2, 1), "e"))
    assert client.shown == {"a.py": "a\nc\ne"}


def test_columns_are_counted_as_agreed() -> None:
    client = Client(UTF8)
    client.open("é = 1")
    client.change(part((0, 5), (0, 6), "2"))
    assert client.shown == {"a.py": "é = 2"}


def test_versions_that_go_backwards_are_no_error() -> None:
    client = Client()
    client.open("a")
    client.change(whole("b"), version=7)
    client.change(whole("c"), version=-1)
    assert client.shown == {"a.py": "c"}


def test_a_document_that_is_opened_again_is_replaced() -> None:
    client = Client()
    client.open("first")
    client.open("x = 1")
    client.change(part((0, 0), (0, 1), "y"))
    assert client.shown == {"a.py": "y = 1"}


def test_a_save_is_a_new_buffer_with_the_same_text() -> None:
    client = Client()
    client.open("a")
    before = client.overlay.below(FOLDER)["a.py"]
    client.save()
    assert client.overlay.below(FOLDER)["a.py"] is not before
    assert client.shown == {"a.py": "a"}


def test_the_text_of_a_save_is_taken() -> None:
    client = Client()
    client.open("a")
    client.save("b\n")
    client.change(part((0, 0), (0, 0), "x"))
    assert client.shown == {"a.py": "xb\n"}


def test_what_is_not_open_is_told_of_in_the_log_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    with caplog.at_level(logging.INFO):
        client.change(whole("secret"))
        client.save("secret")
        client.close()
    assert client.shown == {}
    assert len(caplog.records) == 3
    assert all(str(FILE) in message and "secret" not in message for message in caplog.messages)


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-notebook-cell:/work%20space/a.py#1", "", "http://["])
def test_what_is_no_file_is_nothing_of_ours(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    with caplog.at_level(logging.INFO):
        client.open("a", uri)
        client.change(whole("b"), uri=uri)
        client.save(uri=uri)
        client.close(uri)
    assert client.overlay.below(Path("/")) == {}
    assert not caplog.records


def test_two_spellings_of_a_uri_are_one_document() -> None:
    client = Client()
    client.open("a", "file:///work%20space/a.py")
    client.change(whole("b"), uri="file:///work space/%61.py")
    assert client.shown == {"a.py": "b"}
    client.close("file:///work%20space/x/../a.py")
    assert client.shown == {}


@story
async def test_the_server_asks_for_edits_and_takes_them(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        able = await peer.hello(workspace, capabilities={"general": {"positionEncodings": ["utf-8"]}})
        assert able["textDocumentSync"] == {
            "openClose": True,
            "change": types.TextDocumentSyncKind.Incremental,
            "save": True,
        }
        uri = (workspace / "uploads.py").as_uri()
        peer.notify(
            "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": ""}}
        )
        edit = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "é"}
        named = {"uri": uri, "version": None}
        peer.notify(
            "textDocument/didChange", {"textDocument": named, "contentChanges": [edit, {"text": "x", "range": None}]}
        )
        peer.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        peer.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        await peer.indexed()
        assert not peer.told("window/logMessage")
