"""Open documents: the client's edits applied exactly, and the text that comes of them put into the overlay.

The protocol counts lines by `\\n`, `\\r\\n` and `\\r` alone (Python's splitlines knows more), and columns in code units
of the encoding that client and server agreed on. A position that no text has is never an error: beyond the end of a
line it is that end, beyond the last line the end of the document, and within a character that takes several units (a
surrogate pair, a sequence of UTF-8) the start of that character.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
from lsprotocol import types
from numpy.typing import NDArray

from ..workspace.overlay import Overlay
from .convert import path_of, real_path_of

_LF, _CR = ord("\n"), ord("\r")

log = logging.getLogger(__name__)


class Documents:
    """The documents that the client has open. Those that are no files (`untitled:`) are nobody's here."""

    def __init__(self, overlay: Overlay) -> None:
        self.encoding: str = types.PositionEncodingKind.Utf16
        """What columns are counted in: utf-8, utf-16 or utf-32."""
        self._overlay = overlay
        self._open: dict[Path, tuple[Path, Document]] = {}
        """By the path as the client spells it: the path that the overlay knows, and the text."""

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """`textDocument/didOpen`. Opened again, a document is what it was opened with last."""
        uri = params.text_document.uri
        if (spelled := path_of(uri)) and (path := real_path_of(uri)):
            document = Document(params.text_document.text)
            self._open[spelled] = path, document
            self._overlay.put(path, document.shown())

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """`textDocument/didChange`: the changes in their order, each on the text that the one before left."""
        if found := self._find(types.TEXT_DOCUMENT_DID_CHANGE, params.text_document.uri):
            path, document = found
            for change in params.content_changes:
                if isinstance(change, types.TextDocumentContentChangePartial):
                    document.edit(change.range, change.text, self.encoding)
                else:
                    document.replace(change.text)
            self._overlay.put(path, document.shown())

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """`textDocument/didSave`, with the text or without."""
        if found := self._find(types.TEXT_DOCUMENT_DID_SAVE, params.text_document.uri):
            path, document = found
            if params.text is not None:
                document.replace(params.text)
            self._overlay.put(path, document.shown())

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """`textDocument/didClose`."""
        uri = params.text_document.uri
        if found := self._find(types.TEXT_DOCUMENT_DID_CLOSE, uri):
            self._open = {spelled: each for spelled, each in self._open.items() if spelled != path_of(uri)}
            path, _ = found
            for other, document in self._open.values():
                if other == path:  # the same file is open by another name
                    self._overlay.put(path, document.shown())
                    return
            self._overlay.drop(path)

    def _find(self, method: str, uri: str) -> tuple[Path, Document] | None:
        """The open document; another file is told of in the log, and no more."""
        if (spelled := path_of(uri)) is None:
            return None
        if (found := self._open.get(spelled)) is None:
            log.info("%s: ignored: %s is not open", method, spelled)
        return found


class Document:
    """One document's text, and where its lines start, which is looked for when the first edit asks.

    Lone surrogates, which JSON can hold, stay until the text leaves: the client counts them. Two halves of a pair that
    an edit brings together are one character, as they are to the client.
    """

    def __init__(self, text: str) -> None:
        self.replace(text)

    def replace(self, text: str) -> None:
        """The whole text is another."""
        self._text = text
        self._starts: NDArray[np.int64] | None = None
        self._surrogates = _has_surrogates(text)

    def edit(self, where: types.Range, new: str, encoding: str) -> None:
        """Put `new` where a range is. The ends of a range that runs backwards are taken the other way round."""
        first, last = sorted((self._offset(where.start, encoding), self._offset(where.end, encoding)))
        starts = self._line_starts()
        self._text = self._text[:first] + new + self._text[last:]
        self._surrogates = self._surrogates or _has_surrogates(new)
        if self._surrogates:
            self._text = _paired(self._text)
            self._starts = None
        else:
            self._starts = _starts_after(self._text, starts, first, last, first + len(new))

    def shown(self) -> str:
        """The text as others may have it, which can be encoded: U+FFFD for each lone surrogate."""
        return _paired(self._text, "replace") if self._surrogates else self._text

    def _line_starts(self) -> NDArray[np.int64]:
        if self._starts is None:
            self._starts = np.concatenate((np.zeros(1, np.int64), _line_ends(self._text)))
        return self._starts

    def _offset(self, position: types.Position, encoding: str) -> int:
        """A position -> an index into the text."""
        starts = self._line_starts()
        if position.line >= len(starts):
            return len(self._text)
        start = int(starts[position.line])
        end = int(starts[position.line + 1]) if position.line + 1 < len(starts) else len(self._text)
        # No character has less than one unit, so no more of the line is needed (which may be the whole document).
        line = self._text[start : min(end, start + position.character)].rstrip("\r\n")
        return start + _code_points(line, position.character, encoding)


def _line_ends(text: str) -> NDArray[np.int64]:
    """The index after each line end."""
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    feeds = characters == _LF
    returns = characters == _CR
    returns[:-1] &= ~feeds[1:]
    return np.flatnonzero(feeds | returns) + 1


def _starts_after(text: str, starts: NDArray[np.int64], first: int, last: int, new_last: int) -> NDArray[np.int64]:
    """The line starts of `text`, which came of a text with `starts` when what is now first:new_last replaced
    first:last. It is looked for only around the edit; the line before it may have ended in a `\\r` that became half an
    end by it.
    """
    kept = max(int(np.searchsorted(starts, first, "right")) - 1, 1)
    begin = int(starts[kept - 1])
    found = _line_ends(text[begin : new_last + 1]) + begin
    behind = starts[np.searchsorted(starts, last, "right") :]
    return np.concatenate((starts[:kept], found[found <= new_last], behind + (new_last - last)))


def _code_points(line: str, units: int, encoding: str) -> int:
    """How many characters of a line its first `units` code units hold whole."""
    head = line[:units]
    if encoding == types.PositionEncodingKind.Utf32 or head.isascii():
        return len(head)
    if encoding == types.PositionEncodingKind.Utf8:
        data = head.encode("utf-8", "surrogatepass")
        while units < len(data) and data[units] & 0xC0 == 0x80:  # amid a sequence
            units -= 1
        return len(data[:units].decode("utf-8", "surrogatepass"))
    whole = head.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")
    return len(whole) if head.startswith(whole) else len(whole) - 1  # the last one is half of a pair


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _paired(text: str, errors: str = "surrogatepass") -> str:
    """The text with adjacent halves of a pair as one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)
