"""What a path says by itself: the words of a file's name and folders, and whether it is of a sort seldom looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..index.words import stems

_TEST_FOLDER = re.compile(
    r"(^|/)(tests?|testing|specs?|__tests__|testdata|fixtures?|mocks?|__mocks__|e2e|bench(marks?)?|test_[^/]*)/"
)
_TEST_NAME = re.compile(
    r"test_|conftest\.py$|.*[_.-](test|tests|spec|bench|mock)\.[^/]+$|.*(Test|Tests|Spec)\.[a-z]+$", re.DOTALL
)
_EXAMPLE = re.compile(r"(^|/)(examples?|samples?|demos?|docs?|tutorials?|playground|snippets)/", re.IGNORECASE)
_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|third[_-]?party|3rdparty|external|extern|deps|_vendor|contrib)/", re.IGNORECASE
)
_NAMELESS = frozenset({"__init__", "default", "index", "init", "lib", "main", "mod", "package"})
"""Files of these names are about what their folder is called: `routing/mod.rs`, `router/index.ts`."""
_DECLARATION = re.compile(r"\.(d\.[cm]?ts|pyi|h|hh|hpp|hxx|mli|hs-boot)$")

SORTS = ("test", "example", "vendored", "declaration")
"""What a file may be; each is a bit of `PathSignals.sorts`, the first the lowest."""
_TEST_BIT, _EXAMPLE_BIT, _VENDORED_BIT, _DECLARATION_BIT = (1 << number for number in range(len(SORTS)))


@dataclass(frozen=True, slots=True)
class _FolderSignals:
    """What the folders of a path say, for all files in them."""

    words: frozenset[str]
    """Their stems."""
    last: frozenset[str]
    """Those of the last one."""
    sorts: int


@dataclass(frozen=True, slots=True)
class PathSignals:
    """What a path says."""

    stem: frozenset[str]
    """Stems of the file's own name, or of its folder's if that says no more."""
    folders: frozenset[str]
    """Stems of the folders it lies in."""
    sorts: int
    """A bit for each of SORTS that it is."""


@lru_cache(maxsize=1 << 16)
def path_signals(path: str) -> PathSignals:
    """Of a path, relative, with `/`. (A search looks at some hundred of them, in a large index always at others.)"""
    folders, _, name = path.rpartition("/")
    own = name.split(".", 1)[0] or name
    around = _folder_signals(folders)
    return PathSignals(
        around.last if folders and own.lower() in _NAMELESS else frozenset(stems(own)),
        around.words,
        around.sorts | _TEST_BIT * bool(_TEST_NAME.match(name)) | _DECLARATION_BIT * bool(_DECLARATION.search(name)),
    )


@lru_cache(maxsize=1 << 14)
def _folder_signals(folders: str) -> _FolderSignals:
    return _FolderSignals(
        frozenset(stems(folders)),
        frozenset(stems(folders.rpartition("/")[2])),
        _TEST_BIT * bool(_TEST_FOLDER.search(f"{folders}/"))
        | _EXAMPLE_BIT * bool(_EXAMPLE.search(f"{folders}/"))
        | _VENDORED_BIT * bool(_VENDORED.search(f"{folders}/")),
    )


def by_the_way(path: str) -> bool:
    """Whether a file is a test, an example or somebody else's code."""
    return bool(path_signals(path).sorts & (_TEST_BIT | _EXAMPLE_BIT | _VENDORED_BIT))
