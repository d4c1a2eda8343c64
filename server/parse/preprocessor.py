"""C's conditional compilation, made such that a grammar can read it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    rb"""^[ \t]*\#[ \t]*(?P<directive>if|el|endif)(?:[^\n\\]|\\.)*"""  # `el` is else, elif and elifdef
    rb"""|(?P<brace>[{}])"""
    rb"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.){1,4}'|//[^\n]*|/\*.*?\*/""",
    re.MULTILINE | re.DOTALL,
)


@dataclass(slots=True)
class _Branch:
    directive: tuple[int, int]
    end: int = 0
    balance: int = 0
    """Opening braces less closing ones."""


@dataclass(slots=True)
class _Conditional:
    branches: list[_Branch] = field(default_factory=list)


def one_branch(source: bytes) -> bytes:
    """`source` with one branch left of each conditional that opens or closes a brace in one branch and not within it.

    Such braces fit together only after the preprocessor chose; the grammar, which sees all branches, loses the function
    and often the rest of the file. Directives and the other unbalanced branches become spaces.
    """
    if b"#" not in source:
        return source
    gone: list[tuple[int, int]] = []
    open_: list[_Conditional] = []
    for token in _TOKEN.finditer(source):
        if brace := token["brace"]:
            if open_:
                open_[-1].branches[-1].balance += 1 if brace == b"{" else -1
        elif directive := token["directive"]:
            if directive == b"if":
                open_.append(_Conditional())
            if not open_:
                continue
            branches = open_[-1].branches
            if branches:
                branches[-1].end = token.start()
            branches.append(_Branch(token.span()))
            if directive == b"endif":
                closed = open_.pop().branches
                gone += _unbalanced(closed)
                if open_:
                    open_[-1].branches[-1].balance += closed[0].balance
    return _blanked(source, gone)


def _unbalanced(branches: list[_Branch]) -> list[tuple[int, int]]:
    """What has to go of a conditional, its `#endif` the last of the branches."""
    if not any(branch.balance for branch in branches):
        return []
    rest = [(branch.directive[1], branch.end) for branch in branches[1:] if branch.balance]
    return [branch.directive for branch in branches] + rest


def _blanked(source: bytes, spans: list[tuple[int, int]]) -> bytes:
    if not spans:
        return source
    text = bytearray(source)
    for start, end in spans:
        text[start:end] = re.sub(rb"[^\n]", b" ", source[start:end])
    return bytes(text)
