"""Grammars and queries, loaded when first needed, and parsing within bounds."""

from __future__ import annotations

import time
from functools import cache
from importlib import import_module
from pathlib import Path

import tree_sitter

from ..installation import shipped
from .languages import Language

Match = tuple[int, dict[str, list[tree_sitter.Node]]]

MAX_BYTES = 8_000_000
"""Larger texts are not parsed."""
MAX_SECONDS = 1.5
"""CPU time for a parse. A megabyte of sane code takes a tenth of it; CPU time, not the wall clock, so that a busy
machine does not change the outcome."""
_SMALL_BYTES = 32_000
"""Up to here not even a hostile text takes long, and the parse is not watched: watching costs a third."""
_WIDE_ERROR = 20_000
_MAX_DEPTH = 10_000
_MAX_STATES = 1_024
"""Patterns that may be half matched at one time; sane code has some dozens. More come of expressions nested some
thousand deep, and the time goes with their number times the depth."""

_QUERIES = Path(__file__).parent / "queries"


class TooHardError(Exception):
    """The grammar did not get through the text within its bounds."""


@cache
def _grammar(language: Language) -> tree_sitter.Language:
    assert language.grammar is not None
    module, function = language.grammar
    return tree_sitter.Language(getattr(import_module(module), function)())


@cache
def _query(language: Language) -> tree_sitter.Query:
    with shipped(_QUERIES):
        parts = [(_QUERIES / f"{name}.scm").read_text(encoding="utf-8") for name in language.queries]
        parts += [f"({node_type}) @comment" for node_type in language.comments]
        parts += [f"({node_type}) @skip" for node_type in language.skipped]
        query: tree_sitter.Query = tree_sitter.Query(_grammar(language), "\n".join(parts))
        return query


def parse_tree(data: bytes, language: Language) -> tree_sitter.Tree:
    """The syntax tree of a UTF-8 text. Raises TooHardError."""
    parser = tree_sitter.Parser(_grammar(language))
    if len(data) <= _SMALL_BYTES:
        return parser.parse(data)
    if len(data) > MAX_BYTES:
        raise TooHardError(f"{len(data)} bytes, more than {MAX_BYTES}")
    end = time.thread_time() + MAX_SECONDS
    try:
        tree = parser.parse(
            lambda offset, _point: data[offset : offset + _SMALL_BYTES],
            progress_callback=lambda _offset, _has_error: time.thread_time() > end,
        )
    except ValueError:
        raise TooHardError(f"the parse takes more than {MAX_SECONDS} s") from None
    if _is_beyond_queries(tree.root_node):
        raise TooHardError(f"an error of more than {_WIDE_ERROR} tokens, or more than {_MAX_DEPTH} levels")
    # Only a tree parsed from bytes knows its text, which predicates need; parsing again over the old tree is cheap.
    return parser.parse(data, tree)


def matches(tree: tree_sitter.Tree, language: Language) -> list[Match]:
    """What the language's query finds in the tree."""
    return tree_sitter.QueryCursor(_query(language), match_limit=_MAX_STATES).matches(tree.root_node)


def _is_beyond_queries(root: tree_sitter.Node) -> bool:
    """Whether a query would take seconds: it is quadratic in the tokens of an error node, and does not come to an end
    in a tree of more than 65,535 levels. (The binding can watch a query too, but crashes then: tree-sitter 0.26.1.)"""
    todo = [(root, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > _MAX_DEPTH or (node.is_error and node.child_count > _WIDE_ERROR):
            return True
        room = _MAX_DEPTH - depth
        todo += [(child, depth + 1) for child in node.children if child.has_error or child.descendant_count > room]
    return False
