"""A second try at a text of which one line spoils the rest.

A half-written line in an editor, or syntax that a grammar does not know, can make an error of all that follows. With
that line blanked the grammar gets through the others, at the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import tree_sitter

from .definitions import DEFINING
from .grammar import matches, parse_tree
from .languages import Language

_SPOILT_SHARE = 0.2
"""Of a text's lines; with less of it inside of errors the grammar has recovered well enough by itself."""
_SPOILT_LINES = 8
"""The same for short texts."""
_SUSPECTS = 8
"""Lines that are tried in one round."""
_ROUNDS = 2
"""Rounds: lines that are blanked, at most."""
_MAX_BYTES = 64_000
"""Longer texts stay as they are: each try takes as long as the first."""
_MAX_PIECES = 1000
"""An error in more pieces is no single line's fault, and takes long to parse."""


def recovered(data: bytes, tree: tree_sitter.Tree, language: Language) -> tree_sitter.Tree:
    """`tree`, or the tree of `data` without a line or two, if that has more definitions. Raises TooHardError."""
    if not tree.root_node.has_error or len(data) > _MAX_BYTES:
        return tree
    if sum(error.child_count for error in _errors(tree)) > _MAX_PIECES:
        return tree
    bound = max(_SPOILT_LINES, int(_SPOILT_SHARE * data.count(b"\n")))
    for _ in range(_ROUNDS):
        if _spoilt_lines(tree) <= bound:
            break
        best = _definitions(tree, language)
        better = None
        for line in islice(_suspects(data, tree), _SUSPECTS):
            changed = _without_line(data, line)
            other = parse_tree(changed, language)
            if (count := _definitions(other, language)) > best:
                best, better = count, (changed, other)
                if not other.root_node.has_error:
                    return other
        if better is None:
            break
        data, tree = better
    return tree


def _definitions(tree: tree_sitter.Tree, language: Language) -> int:
    found = matches(tree, language)
    return len({nodes[0].id for _, captures in found for capture, nodes in captures.items() if capture in DEFINING})


def _spoilt_lines(tree: tree_sitter.Tree) -> int:
    """How many lines the errors of a tree span."""
    return sum(error.end_point[0] - error.start_point[0] + 1 for error in _errors(tree))


def _errors(tree: tree_sitter.Tree) -> Iterator[tree_sitter.Node]:
    """The outermost errors, in the order of the text."""
    todo = [tree.root_node]
    while todo:
        node = todo.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            todo.extend(reversed(node.children))


def _suspects(data: bytes, tree: tree_sitter.Tree) -> Iterator[int]:
    """Lines that may be at fault, the likeliest first: where the grammar was stopped, and the code right before."""
    lines = data.split(b"\n")
    seen: set[int] = set()
    for error in _errors(tree):
        for row in _stops(error):
            before = next((line for line in range(row - 1, -1, -1) if lines[line].strip()), row)
            for line in (row, before):
                if line not in seen:
                    seen.add(line)
                    yield line


def _stops(error: tree_sitter.Node) -> Iterator[int]:
    """The lines of an error's tokens: what the grammar could make no part of anything."""
    todo = [error]
    while todo:
        node = todo.pop()
        if not node.children:
            yield node.start_point[0]
        elif node.is_error:
            todo += reversed(node.children)


def _without_line(data: bytes, line: int) -> bytes:
    lines = data.split(b"\n")
    lines[line] = b" " * len(lines[line])
    return b"\n".join(lines)
