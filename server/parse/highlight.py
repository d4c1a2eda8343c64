"""What stands where in a line of code, for who shows it in colours: as much as every grammar tells in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter

from .grammar import TooHardError, parse_tree
from .languages import Language

LARGEST = 300_000
"""Bytes of a file that is parsed for its colours; a larger one is shown without."""

_NUMBER = re.compile(r"(^|_)(integer|float|number|decimal|int)(_|$)")
_TEXT = re.compile(r"string|char_literal|character|heredoc|regex|rune_literal|template_literal")
_TYPES = frozenset({"type_identifier", "primitive_type", "predefined_type", "builtin_type", "integral_type"})
_WORD = re.compile(rb"[A-Za-z_@#][A-Za-z_]*")


class Span(NamedTuple):
    """A stretch of one line, in bytes of its UTF-8."""

    start: int
    end: int
    style: str
    """`comment`, `string`, `number`, `keyword` or `type`."""


def spans(text: str, language: Language, first: int, last: int) -> dict[int, list[Span]]:
    r"""The spans of the lines from `first` to `last` (from 0, inclusive) of a file, by line and in order.

    Lines of `text` end with \n. Nothing for a text without a grammar, or one that its grammar does not get through.
    """
    data = text.encode("utf-8", "replace")
    if language.grammar is None or len(data) > LARGEST:
        return {}
    try:
        tree = parse_tree(language.mend(data) if language.mend else data, language)
    except TooHardError:
        return {}
    lines = data.split(b"\n")
    found: dict[int, list[Span]] = {}
    for node, style in _styled(tree.root_node, data, language, first, last):
        (start_line, start), (end_line, end) = node.start_point, node.end_point
        for line in range(max(start_line, first), min(end_line, last) + 1):
            from_ = start if line == start_line else 0
            to = end if line == end_line else len(lines[line])
            if from_ < to:
                found.setdefault(line, []).append(Span(from_, to, style))
    return found


def _styled(
    root: tree_sitter.Node, data: bytes, language: Language, first: int, last: int
) -> Iterator[tuple[tree_sitter.Node, str]]:
    """The outermost nodes that have a style, in the order of the text."""
    todo = [root]
    while todo:
        node = todo.pop()
        if node.end_point[0] < first or node.start_point[0] > last:
            continue
        if style := _style(node, data, language):
            yield node, style
        else:
            todo += reversed(node.children)


def _style(node: tree_sitter.Node, data: bytes, language: Language) -> str | None:
    kind = node.type
    if not node.is_named:
        whole_word = node.child_count == 0 and _WORD.fullmatch(data, node.start_byte, node.end_byte)
        return "keyword" if whole_word else None
    if kind in language.comments or "comment" in kind:
        return "comment"
    if _TEXT.search(kind):
        return "string"
    if node.child_count == 0 and _NUMBER.search(kind):
        return "number"
    return "type" if kind in _TYPES else None
