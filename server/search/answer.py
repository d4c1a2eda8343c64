"""What a search takes and gives: the types that the command line and the language server share."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Query:
    """A question and its filters. Filters that stand in the text (`lang:go path:src/ kind:method`) are not in
    `text` any more; see `server.search.query.parse_query`."""

    text: str
    limit: int = 10
    languages: frozenset[str] = field(default_factory=frozenset)
    paths: tuple[str, ...] = ()
    """Globs or folder prefixes relative to the workspace folder; one of them has to match."""
    kinds: frozenset[str] = field(default_factory=frozenset)
    only: str | None = None
    """`dense` or `lexical` to rank by one side alone."""
    repositories: tuple[str, ...] = ()
    """Names of workspaces, or globs; one of them has to match. For the organisation's index alone."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One found unit. Lines count from 0 and `end_line` is inclusive; columns are code points."""

    path: str
    """Relative to the workspace folder, with `/`."""
    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    """Where the name stands: line, first column, column after the last."""
    head: str
    """The line of the name, up to the name's end, if it holds more than ASCII: for who counts columns differently."""
    name: str
    container: str
    kind: str
    language: str
    score: float
    """Greater is better; comparable within one answer only."""
    preview: str
    """The signature, or the first line that is not blank."""
    repository: str = ""
    """The workspace that the hit is in, where many are searched in the organisation's index; else empty."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first, and how far they can be relied on."""

    hits: tuple[Hit, ...]
    pending: int
    """Files known to be changed and not indexed yet."""
    indexed: int
    """Units in the index."""
    model: str
    """The id of the model's bundle."""
    took_ms: float
