"""Our types -> the protocol's: places, kinds, columns in the encoding that the client counts in."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

from lsprotocol import types
from pygls.uris import to_fs_path

from ..index.report import IndexReport
from ..search.answer import Hit
from .protocol import FolderReport, SearchItem

_KINDS = {
    "function": types.SymbolKind.Function,
    "method": types.SymbolKind.Method,
    "constructor": types.SymbolKind.Constructor,
    "property": types.SymbolKind.Property,
    "macro": types.SymbolKind.Function,
    "class": types.SymbolKind.Class,
    "struct": types.SymbolKind.Struct,
    "enum": types.SymbolKind.Enum,
    "interface": types.SymbolKind.Interface,
    "trait": types.SymbolKind.Interface,
    "object": types.SymbolKind.Object,
    "impl": types.SymbolKind.Class,
    "extension": types.SymbolKind.Class,
    "namespace": types.SymbolKind.Namespace,
    "type": types.SymbolKind.TypeParameter,
    "test": types.SymbolKind.Function,
    "module": types.SymbolKind.Module,
    "text": types.SymbolKind.File,
}
"""The protocol has no kind for a trait, a macro, an alias or a test: the nearest that editors have an icon for."""


_LOCAL = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)
"""How a URI of a file on this machine may begin: https://www.rfc-editor.org/rfc/rfc8089"""


def path_of(uri: str) -> Path | None:
    """The path of a file URI, without `..`; None for any other URI, and for a path that is not UTF-8."""
    try:
        unquote(uri, errors="strict")
        path = to_fs_path(_LOCAL.sub("file://", uri, count=1))
    except ValueError:  # `http://[`
        return None
    if not path or "\0" in path or not Path(path).is_absolute():
        return None
    return Path(os.path.normpath(path))


def real_path_of(uri: str) -> Path | None:
    """The same, and without links in the folders above: one file is one path, however the client came to it. (A file
    that is a link itself is another one than what it points to.)"""
    if (path := path_of(uri)) is None:
        return None
    return Path(os.path.realpath(path.parent), path.name)


def folder_report(uri: str, report: IndexReport) -> FolderReport:
    """The outcome of an update of the folder at `uri`."""
    return {
        "uri": uri,
        "files": report.files,
        "units": report.units,
        "embedded": report.embedded,
        "reused": report.reused,
        "removed": report.removed,
        "seconds": report.seconds,
        "pending": report.pending,
        "fetched": report.fetched,
    }


class Converter:
    """Converts the hits of one folder."""

    def __init__(self, folder_uri: str, root: Path, encoding: str | None) -> None:
        """`encoding` is what the client and the server agreed to count columns in: utf-8, utf-16 or utf-32."""
        self._uri, self.root, self._encoding = folder_uri.rstrip("/"), root, encoding

    def item(self, hit: Hit) -> SearchItem:
        """A hit as an item of `meaning/search`."""
        line, first, last = hit.selection
        return {
            "location": self.location(hit),
            "selectionRange": types.Range(
                types.Position(line, self._column(hit.head, first)),
                types.Position(line, self._column(hit.head, last)),
            ),
            "name": hit.name,
            "containerName": hit.container or None,
            "kind": _KINDS[hit.kind],
            "language": hit.language,
            "score": hit.score,
            "preview": hit.preview,
        }

    def symbol(self, hit: Hit) -> types.WorkspaceSymbol:
        """A hit as an item of `workspace/symbol`."""
        return types.WorkspaceSymbol(
            self.location(hit), hit.name, _KINDS[hit.kind], container_name=hit.container or None
        )

    def location(self, hit: Hit) -> types.Location:
        """All lines of a hit, the end of its last one included: up to the start of the next.

        The URI begins as the client spells its folder, so that it is the one of the client's own documents.
        """
        return types.Location(
            f"{self._uri}/{quote(os.fsencode(hit.path))}",
            types.Range(types.Position(hit.start_line, 0), types.Position(hit.end_line + 1, 0)),
        )

    def _column(self, head: str, column: int) -> int:
        """A column in code points -> in the client's units. `head` is the line up to there, or nothing if in ASCII."""
        before = head[:column]
        if not before or self._encoding == types.PositionEncodingKind.Utf32:
            return column
        if self._encoding == types.PositionEncodingKind.Utf8:
            return len(before.encode())
        return len(before.encode("utf-16-le")) // 2
