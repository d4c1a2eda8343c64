"""The pattern language of .gitignore, as git reads it: one file's lines in, a verdict on a path out.

Matched to git's own behaviour, oddities included (the tests ask git). Two things differ on purpose: `?` and a
character class take one character, where git takes one byte, and case always counts (git's `core.ignorecase`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

_NEVER = "(?!)"
_STAR = "[^/]*"
_ANY = ".*"
_PARTS = f"(?:{_ANY}/)?"
_LOOSE = "[^/]*?{}"
_CHUNK = "(?>[^/]*?{})" if sys.version_info >= (3, 11) else _LOOSE
"""A `*` and what follows it up to the next one. The first place where that fits is as good as any later one, so no
way back is needed: with it, a hostile `*a*a*a*a*a` would take minutes on one name."""

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _InvalidError(Exception):
    """The pattern can match nothing: an unclosed bracket, an unknown class, a backslash at the end."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line that is a pattern."""

    glob: str
    excludes: bool
    """False for a line with `!`, which brings back."""
    folders_only: bool
    by_name: bool
    """Whether it is held against the last part of the path alone."""


class Patterns:
    """The patterns of one ignore file; paths are relative to the folder that the file governs."""

    def __init__(self, lines: Iterable[str]) -> None:
        rules = [rule for line in lines if (rule := _parse(line))]
        self._excludes = [rule.excludes for rule in rules]
        self._names, self._paths = (
            tuple(
                _Matcher({i: r.glob for i, r in enumerate(rules) if r.by_name is by_name and is_dir >= r.folders_only})
                for is_dir in (False, True)
            )
            for by_name in (True, False)
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Patterns:
        """The patterns of an ignore file with this content."""
        return cls(data.decode("utf-8-sig", "surrogateescape").split("\n"))

    def __bool__(self) -> bool:
        return bool(self._excludes)

    def verdict(self, path: str, name: str, is_dir: bool) -> bool | None:
        """True if ignored, False if brought back, None if no line speaks of it. `name` is the last part of `path`.

        Speaks of this path alone: that a folder above is ignored is for the caller to know.
        """
        last = max(self._names[is_dir].last(name), self._paths[is_dir].last(path))
        return self._excludes[last] if last >= 0 else None


class _Matcher:
    """Many globs held against a text at once; the one with the greatest number wins, as the last line does in git."""

    def __init__(self, globs: dict[int, str]) -> None:
        self._literals: dict[str, int] = {}
        wild: dict[int, str] = {}
        for number, glob in globs.items():
            if _literal_length(glob) == len(glob):
                self._literals[glob] = number
            else:
                wild[number] = _to_regex(glob)
        # Alternatives are tried in order: the last line stands first, and the group that matched tells which it was.
        self._numbers = sorted(wild, reverse=True)
        self._regex = re.compile("|".join(f"({wild[n]})" for n in self._numbers), re.DOTALL) if wild else None

    def last(self, text: str) -> int:
        """The greatest number among the globs that match, -1 if none does."""
        literal = self._literals.get(text, -1)
        if self._regex and (match := self._regex.fullmatch(text)):
            assert match.lastindex
            return max(literal, self._numbers[match.lastindex - 1])
        return literal


def _parse(line: str) -> _Rule | None:
    line = _trim(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    excludes = not line.startswith("!")
    glob = line if excludes else line[1:]
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    by_name = "/" not in glob
    return _Rule(glob.removeprefix("/"), excludes, folders_only, by_name)


def _trim(line: str) -> str:
    """Without the spaces at its end, but for one behind a backslash."""
    trimmed = line.rstrip(" ")
    backslashes = len(trimmed) - len(trimmed.rstrip("\\"))
    return trimmed + " " if backslashes % 2 and len(line) > len(trimmed) else trimmed


def _literal_length(glob: str) -> int:
    special = re.search(r"[*?\[\\]", glob)
    return special.start() if special else len(glob)


def _to_regex(glob: str) -> str:
    try:
        return _translate(glob)
    except _InvalidError:
        return _NEVER


def _translate(glob: str) -> str:
    """A regular expression for the whole text; without capturing groups, for they tell the lines apart."""
    chunks = [""]  # the regex up to the first `*`, then what follows each one
    starts = (0, _literal_length(glob))  # git compares the literal start first, and what is left starts anew
    at = 0
    while at < len(glob):
        after = at + len(glob[at:]) - len(glob[at:].lstrip("*"))
        if after == at:
            piece, at = _one(glob, at)
            chunks[-1] += piece
        elif after - at > 1 and (at in starts or glob[at - 1] == "/") and re.match(r"\\?/|\Z", glob[after:]):
            piece, at = (_PARTS, after + 1) if glob.startswith("/", after) else (_ANY, after)
            chunks[-1] += piece
        else:
            chunks.append("")
            at = after
    first, *rest = chunks
    if not rest:
        return first
    *middle, last = rest
    return first + "".join((_LOOSE if _ANY in chunk else _CHUNK).format(chunk) for chunk in middle) + _STAR + last


def _one(glob: str, at: int) -> tuple[str, int]:
    """The regex for one character at `at`, and where the next begins."""
    char = glob[at]
    if char == "?":
        return "[^/]", at + 1
    if char == "[":
        return _bracket(glob, at + 1)
    if char == "\\":
        return re.escape(_at(glob, at + 1)), at + 2
    return re.escape(char), at + 1


def _at(glob: str, at: int) -> str:
    if at >= len(glob):
        raise _InvalidError
    return glob[at]


def _bracket(glob: str, at: int) -> tuple[str, int]:
    """The regex for a bracket expression whose inside begins at `at`, and where the next character begins."""
    negated = _at(glob, at) in "!^"
    at += negated
    members = ""
    low = ""  # what a `-` would start a range from
    first = True
    while first or _at(glob, at) != "]":
        first = False
        char = _at(glob, at)
        if char == "-" and low and _at(glob, at + 1) != "]":
            at += 1 + (glob[at + 1] == "\\")
            high = _at(glob, at)
            members += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
            low = ""
        elif named := re.compile(r"\[:([^\]]*):\]").match(glob, at):
            if named[1] not in _CLASSES:
                raise _InvalidError
            members += _CLASSES[named[1]]
            low = ""
            at = named.end() - 1
        else:
            at += char == "\\"
            low = _at(glob, at)
            members += re.escape(low)
        at += 1
    if not members:
        return ("[^/]" if negated else _NEVER), at + 1
    return f"(?!/)[{'^' if negated else ''}{members}]", at + 1
