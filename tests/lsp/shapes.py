"""What goes over the wire is what `server.lsp.protocol` says it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from lsprotocol.types import SymbolKind

from server.lsp import protocol

SHAPES: Mapping[str, Any] = {
    protocol.SEARCH: protocol.SearchResult,
    protocol.SIMILAR: protocol.SearchResult,
    protocol.STATUS: protocol.StatusResult,
    protocol.REINDEX: protocol.ReindexResult,
    protocol.INDEX_CHANGED: protocol.FolderStatus,
}
"""Of the answers to our requests, and of our notification."""

_IN_JSON: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (float, int),
    NoneType: (NoneType,),
    SymbolKind: (int,),
}
"""What is not named here, like a Location, is an object."""


def misfit(value: Any, kind: Any, place: str) -> str | None:
    """Where a value from JSON is not of a type, and what it should be; None if it is."""
    if is_typeddict(kind):
        return _misfit_of_object(value, get_type_hints(kind), place)
    if get_origin(kind) is UnionType:
        wrong = [misfit(value, each, place) for each in get_args(kind)]
        return None if None in wrong else " or ".join(filter(None, wrong))
    if get_origin(kind) in (list, Sequence):
        [inner] = get_args(kind)
        many = enumerate(value) if isinstance(value, list) else [("", None)]
        return next(filter(None, (misfit(each, inner, f"{place}[{i}]") for i, each in many)), None)
    return None if isinstance(value, _IN_JSON.get(kind, (dict,))) else f"{place} is {value!r}, no {kind}"


def _misfit_of_object(value: Any, fields: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, dict) or value.keys() != fields.keys():
        return f"{place} is {value!r}, no object with {', '.join(fields)}"
    return next(filter(None, (misfit(value[name], kind, f"{place}.{name}") for name, kind in fields.items())), None)
