"""A text -> its units."""

from __future__ import annotations

from collections.abc import Sequence

import tree_sitter

from .clauses import join_clauses
from .definitions import Comments, find_comments, find_definitions, module_docs
from .grammar import TooHardError, matches, parse_tree
from .languages import Language, settled
from .mend import without_long_lines
from .ownership import Piece, assign_lines
from .recovery import recovered
from .source import split_lines
from .unit import Unit
from .windows import windows

LONG_TEXT = 1000
"""Code points; only longer texts have `breaks`. About 250 tokens: no model's limit is below."""
_LONG_NODE = 8
"""Lines; a statement that is longer is a place to look for more statements."""


def parse(text: str, language: Language | None, stem: str) -> list[Unit]:
    """The units of a file in the order of their first own lines; every line that is not blank is in exactly one.

    Never raises. A text without a language, and one that its grammar does not get through within bounds, becomes
    windows of lines. `stem` is the file's name without its extension: the name of what has none.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    lines = split_lines(text)
    language = settled(language, text)
    if language is not None and language.grammar is not None:
        try:
            return _parsed(lines, language, stem)
        except TooHardError:
            pass
    return windows(lines, stem, headings=language is not None and language.name == "markdown")


def _parsed(lines: list[str], language: Language, stem: str) -> list[Unit]:
    data = "\n".join([*lines, ""]).encode("utf-8")
    mended = without_long_lines(language.mend(data) if language.mend else data)
    tree = recovered(mended, parse_tree(mended, language), language)
    found = matches(tree, language)
    stripped = [line.rstrip() for line in lines]
    comments = find_comments(found, data)
    definitions = find_definitions(found, data, language)
    if language.clauses:
        definitions = join_clauses(definitions, comments, stripped)
    pieces = assign_lines(definitions, comments, stripped)
    return _Writer(stripped, tree, language, comments, module_docs(found, data), stem).units(pieces)


class _Writer:
    """Writes the pieces of one file as units."""

    def __init__(
        self,
        lines: Sequence[str],
        tree: tree_sitter.Tree,
        language: Language,
        comments: Comments,
        docs: dict[int, str],
        stem: str,
    ):
        self._lines = lines
        self._tree = tree
        self._language = language
        self._comments = comments
        self._docs = docs
        self._stem = stem
        self._statements: frozenset[int] | None = None

    def units(self, pieces: Sequence[Piece]) -> list[Unit]:
        return [self._unit(piece) for piece in pieces]

    def _unit(self, piece: Piece) -> Unit:
        definition = piece.definition
        if definition is None:
            return self._module(piece)
        head = [f"{definition.container}.{definition.name}" if definition.container else definition.name]
        # In broken code a name may be a blank between two quotes.
        if members := ", ".join(dict.fromkeys(filter(None, map(str.strip, piece.members)))):
            head.append(members)
        text, breaks = self._text(head, piece)
        return Unit(
            name=definition.name,
            container=definition.container,
            kind=definition.kind,
            start_line=piece.first_line,
            end_line=piece.last_line,
            selection=definition.selection,
            signature=definition.signature,
            doc=piece.doc,
            spans=tuple(piece.spans),
            text=text,
            breaks=breaks,
        )

    def _module(self, piece: Piece) -> Unit:
        text, breaks = self._text([], piece)
        line = self._lines[piece.first_line]
        return Unit(
            name=self._stem,
            container="",
            kind="module",
            start_line=piece.first_line,
            end_line=piece.last_line,
            selection=(piece.first_line, len(line) - len(line.lstrip()), len(line)),
            signature="",
            doc=next((doc for row, doc in self._docs.items() if piece.first_line <= row <= piece.last_line), ""),
            spans=tuple(piece.spans),
            text=text,
            breaks=breaks,
        )

    def _text(self, head: list[str], piece: Piece) -> tuple[str, tuple[int, ...]]:
        """The text to embed and its breaks: `head`, then the piece's own lines."""
        numbers = [number for first, last in piece.spans for number in range(first, last + 1)]
        own = dedent([self._lines[number] for number in numbers])
        while own and not own[-1]:
            own.pop()
        first = next((index for index, line in enumerate(own) if line), 0)
        text = "\n".join([line.rstrip() for line in head] + own[first:])
        return text, self._breaks(len(head), text, numbers[first:]) if len(text) > LONG_TEXT else ()

    def _breaks(self, head: int, text: str, numbers: Sequence[int]) -> tuple[int, ...]:
        if self._statements is None:
            self._statements = statement_lines(self._tree, self._language, self._comments)
        breaks: list[int] = []
        offset = 0
        for index, line in enumerate(text.split("\n")):
            if index > head and numbers[index - head] in self._statements:
                breaks.append(offset)
            offset += len(line) + 1
        return tuple(breaks)


def dedent(lines: Sequence[str]) -> list[str]:
    """The lines without the white space that all of them, but for blank ones, begin with."""
    margins = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    margin = _common_prefix(min(margins), max(margins)) if margins else 0
    return [line[margin:] for line in lines] if margin else list(lines)


def _common_prefix(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def statement_lines(tree: tree_sitter.Tree, language: Language, comments: Comments) -> frozenset[int]:
    """The lines on which statements or members start, those inside of short statements left out, and so is one
    right below a comment that stands with it."""
    blocks = frozenset(language.blocks)
    found: set[int] = set()
    todo = [(tree.root_node, True)]
    while todo:
        node, is_block = todo.pop()
        for child in node.named_children:
            row = child.start_point[0]
            if is_block and row - 1 not in comments.by_last_line:
                found.add(row)
            if child.end_point[0] - row >= _LONG_NODE:
                todo.append((child, child.type in blocks))
    return frozenset(found)
