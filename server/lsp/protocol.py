"""The types of our own requests: how their parameters are read, and what they answer.

Parameters come as JSON has them; whatever is wrong is refused by the name of its field (InvalidParams, -32602).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from ..search.query import MAX_LIMIT

SEARCH = "meaning/search"
SIMILAR = "meaning/similar"
STATUS = "meaning/status"
REINDEX = "meaning/reindex"
INDEX_CHANGED = "meaning/indexChanged"
SEARCH_COMMAND = "meaning.search"
REINDEX_COMMAND = "meaning.reindex"

WORKSPACE, ORG = SCOPES = ("workspace", "org")
"""What is searched: the workspace folders, or all that was published to the organisation's index."""

Token = int | str
"""A progress token."""
LARGEST_COUNT = 2**31 - 1
"""The protocol's `uinteger` goes no further."""
Value = TypeVar("Value")


@dataclass(frozen=True)
class SearchParams:
    """`meaning/search`. What is None is not asked for."""

    query: str
    limit: int | None
    languages: frozenset[str]
    paths: tuple[str, ...]
    kinds: frozenset[str]
    repositories: tuple[str, ...]
    """With the scope `org` alone."""
    workspace_folder: str | None
    scope: str
    """One of SCOPES."""
    work_done_token: Token | None
    partial_result_token: Token | None

    @classmethod
    def read(cls, params: Any) -> SearchParams:
        """From JSON; raises JsonRpcInvalidParams."""
        fields = _Fields(params)
        return cls(
            fields.required("query", _text),
            fields.optional("limit", _limit),
            frozenset(fields.optional("languages", _texts) or ()),
            fields.optional("paths", _texts) or (),
            frozenset(fields.optional("kinds", _texts) or ()),
            fields.optional("repositories", _texts) or (),
            fields.optional("workspaceFolder", _text),
            fields.optional("scope", _scope) or WORKSPACE,
            fields.optional("workDoneToken", _token),
            fields.optional("partialResultToken", _token),
        )


@dataclass(frozen=True)
class SimilarParams:
    """`meaning/similar`: code like the function at a place."""

    uri: str
    line: int
    limit: int | None
    work_done_token: Token | None
    partial_result_token: Token | None

    @classmethod
    def read(cls, params: Any) -> SimilarParams:
        """From JSON; raises JsonRpcInvalidParams."""
        fields = _Fields(params)
        position = _Fields(fields.required("position", _object), "position.")
        position.required("character", _count)
        return cls(
            _Fields(fields.required("textDocument", _object), "textDocument.").required("uri", _text),
            position.required("line", _count),
            fields.optional("limit", _limit),
            fields.optional("workDoneToken", _token),
            fields.optional("partialResultToken", _token),
        )


@dataclass(frozen=True)
class ReindexParams:
    """`meaning/reindex`: one workspace folder, or all."""

    workspace_folder: str | None
    work_done_token: Token | None

    @classmethod
    def read(cls, params: Any) -> ReindexParams:
        """From JSON; raises JsonRpcInvalidParams."""
        fields = _Fields({} if params is None else params)
        return cls(fields.optional("workspaceFolder", _text), fields.optional("workDoneToken", _token))


def checked_token(name: str, value: Any) -> Token | None:
    """A token of one of the protocol's own requests, whose types let anything pass. Raises JsonRpcInvalidParams."""
    return _Fields({name: value}).optional(name, _token)


class SearchItem(TypedDict):
    """One hit."""

    location: types.Location
    selectionRange: types.Range
    name: str
    containerName: str | None
    kind: types.SymbolKind
    language: str
    score: float
    preview: str


class OrgItem(SearchItem):
    """One hit of the scope `org`. A file that no workspace folder has is at a URI `meaning-org:`, which nobody can
    open; `preview` is what there is of it."""

    repository: str


class SearchResult(TypedDict):
    """The answer to `meaning/search` and `meaning/similar`."""

    items: Sequence[SearchItem | OrgItem]
    pending: int
    """Files known to be changed and not indexed yet."""
    indexed: int
    """Units in the index."""
    model: str
    tookMs: float


class BackfillStatus(TypedDict):
    """A further model whose vectors are computed in the background."""

    model: str
    left: int
    """Texts that have none yet."""


class FolderStatus(TypedDict):
    """How a workspace folder's index is; also what `meaning/indexChanged` tells."""

    uri: str
    state: str
    """`waiting`, `indexing`, `ready` or `failed`."""
    done: int
    total: int
    """Files of the update that runs."""
    files: int
    units: int
    pending: int
    problem: str | None
    watch: str
    """Whether changes of its files are seen as they happen: `watching`, `partly watching` or `rescanning`."""
    model: str | None
    """The id of the model that answers now."""
    backfill: BackfillStatus | None
    """What is done for another model: the one that is going to answer, or the one that refines."""


class StatusResult(TypedDict):
    """The answer to `meaning/status`."""

    version: str
    model: str | None
    """The id of the model that the settings name; None if it cannot be used, and `problem` says why."""
    problem: str | None
    folders: list[FolderStatus]


class FolderReport(TypedDict):
    """The outcome of one folder's update."""

    uri: str
    files: int
    units: int
    embedded: int
    reused: int
    removed: int
    seconds: float
    pending: int
    fetched: int
    """Embeddings that came from the shared cache."""


class ReindexResult(TypedDict):
    """The answer to `meaning/reindex`."""

    folders: list[FolderReport]


class _Fields:
    """The fields of an object of the parameters."""

    def __init__(self, values: Any, place: str = "") -> None:
        if not isinstance(values, dict):
            raise JsonRpcInvalidParams(f"params are {_shown(values)}, they should be an object")
        self._values, self._place = values, place

    def required(self, name: str, read: Callable[[Any], Value]) -> Value:
        if name not in self._values:
            raise JsonRpcInvalidParams(f"`{self._place}{name}` is missing")
        return self._read(name, read)

    def optional(self, name: str, read: Callable[[Any], Value]) -> Value | None:
        return None if self._values.get(name) is None else self._read(name, read)

    def _read(self, name: str, read: Callable[[Any], Value]) -> Value:
        try:
            return read(self._values[name])
        except ValueError as wanted:
            found = _shown(self._values[name])
            raise JsonRpcInvalidParams(f"`{self._place}{name}` is {found}, it should be {wanted}") from None


def _shown(value: Any) -> str:
    """A value as an error shows it: itself if it is short, else its type."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"a {type(value).__name__}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("a list of strings")
    return tuple(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
        raise ValueError(f"a whole number from 0 to {LARGEST_COUNT}")
    return value


def _limit(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"a whole number from 1 to {MAX_LIMIT}")
    return value


def _scope(value: Any) -> str:
    if value not in SCOPES:
        raise ValueError(" or ".join(map(repr, SCOPES)))
    return str(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("an object")
    return value


def _token(value: Any) -> Token:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("a string or a whole number")
    return value
