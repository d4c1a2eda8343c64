"""What ranking knows of a candidate: one number a signal, in a matrix [candidates, FEATURES]."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..index.words import stems
from .candidates import Candidate, Terms

Matrix = npt.NDArray[np.float32]

FEATURES = (
    "dense",
    "dense_code",
    "dense_path",
    "lexical",
    "name",
    "name_precision",
    "container",
    "doc",
    "body",
    "stem",
    "stem_precision",
    "folders",
    "type_kind",
    "module_kind",
    "text_kind",
    "size",
    "test",
    "example",
    "vendored",
    "declaration",
    "file_dense",
    "file_dense_mean",
    "file_lexical",
    "file_cover",
    "file_defines",
    "exact",
    "exact_case",
)
"""Each is 0 when it says nothing. `*_dense` are cosines, `lexical` and `file_lexical` shares of the best, those of a
field shares of the query's word weight that the field covers; `*_precision` shares of the field that the query
covers."""

TYPE_KINDS = frozenset({"class", "struct", "enum", "interface", "trait", "object", "impl", "extension", "type"})

FILE_BEST = 3
"""A file's mean cosine is that of so many of its best units: one lucky unit is not a file about the subject."""

_TEST = re.compile(
    r"(^|/)(tests?|testing|specs?|__tests__|testdata|fixtures?|mocks?|__mocks__|e2e|bench(marks?)?)/"
    r"|(^|/)(test_[^/]*|conftest\.py$|[^/]*[_.-](test|tests|spec|bench|mock)\.[^/]+$|[^/]*(Test|Tests|Spec)\.[a-z]+$)"
)
_EXAMPLE = re.compile(r"(^|/)(examples?|samples?|demos?|docs?|tutorials?|playground|snippets)/", re.IGNORECASE)
_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|third[_-]?party|3rdparty|external|extern|deps|_vendor|contrib)/", re.IGNORECASE
)
_NAMELESS = frozenset({"__init__", "default", "index", "init", "lib", "main", "mod", "package"})
"""Files of these names are about what their folder is called: `routing/mod.rs`, `router/index.ts`."""
_DECLARATION = re.compile(r"\.(d\.[cm]?ts|pyi|h|hh|hpp|hxx|mli|hs-boot)$")


@dataclass(frozen=True, slots=True)
class _PathSignals:
    """What a path says by itself."""

    stem: frozenset[str]
    """Stems of the file's own name, or of its folder's if that says no more."""
    folders: frozenset[str]
    """Stems of the folders it lies in."""
    flags: tuple[bool, bool, bool, bool]
    """Test, example, vendored, declaration."""


@lru_cache(maxsize=1 << 16)
def _path_signals(path: str) -> _PathSignals:
    folders, _, name = path.rpartition("/")
    own = name.split(".", 1)[0] or name
    return _PathSignals(
        frozenset(stems(folders.rpartition("/")[2] if own.lower() in _NAMELESS and folders else own)),
        frozenset(stems(folders)),
        (
            bool(_TEST.search(path)),
            bool(_EXAMPLE.search(path)),
            bool(_VENDORED.search(path)),
            bool(_DECLARATION.search(path)),
        ),
    )


def by_the_way(path: str) -> bool:
    """Whether a file is a test, an example or somebody else's code: seldom what is looked for."""
    return any(_path_signals(path).flags[:3])


def feature_matrix(candidates: Sequence[Candidate], terms: Terms) -> Matrix:
    """The signals of all candidates, row by row, columns as FEATURES names them."""
    lowered = frozenset(name.lower() for name in terms.identifiers)
    bodies = [frozenset(terms.weights.keys() & c.words[4].split()) for c in candidates]
    files = _file_signals(candidates, bodies, terms, lowered)
    most = max((c.lexical for c in candidates), default=0.0) or 1.0
    rows = [
        (*_unit_signals(c, body, terms, most), *files[c.path], *_named_signals(c, terms.identifiers, lowered))
        for c, body in zip(candidates, bodies, strict=True)
    ]
    return np.array(rows, np.float32).reshape(-1, len(FEATURES))


def _unit_signals(c: Candidate, body: frozenset[str], terms: Terms, most: float) -> tuple[float, ...]:
    weights = terms.weights
    name = c.words[0].split()
    path = _path_signals(c.path)
    return (
        c.dense,
        c.code_cosine,
        c.path_cosine,
        c.lexical / most,
        _cover(weights, name),
        _precision(weights, name),
        _cover(weights, c.words[1].split()),
        _cover(weights, c.words[2].split()),
        _cover(weights, body),
        _cover(weights, path.stem),
        _precision(weights, path.stem),
        _cover(weights, path.folders),
        c.kind in TYPE_KINDS,
        c.kind == "module",
        c.kind == "text",
        math.log2(1 + c.end_line - c.start_line) / 10,
        *path.flags,
    )


def _named_signals(c: Candidate, identifiers: Sequence[str], lowered: frozenset[str]) -> tuple[bool, bool]:
    return c.name.lower() in lowered, c.name in identifiers


def _file_signals(
    candidates: Sequence[Candidate], bodies: Sequence[frozenset[str]], terms: Terms, lowered: frozenset[str]
) -> dict[str, tuple[float, ...]]:
    """What a file's candidates say together, by path: a file about the subject has several that fit."""
    dense: dict[str, list[float]] = defaultdict(list)
    lexical: dict[str, float] = defaultdict(float)
    covered: dict[str, set[str]] = defaultdict(set)
    defining: set[str] = set()
    for c, body in zip(candidates, bodies, strict=True):
        dense[c.path].append(c.dense)
        lexical[c.path] += c.lexical
        covered[c.path] |= body
        if c.name.lower() in lowered and c.kind not in ("module", "text"):
            defining.add(c.path)
    most = max(lexical.values(), default=0.0) or 1.0
    return {
        path: (
            max(values),
            sum(sorted(values)[-FILE_BEST:]) / FILE_BEST,
            lexical[path] / most,
            _cover(terms.weights, covered[path]),
            path in defining,
        )
        for path, values in dense.items()
    }


def _cover(weights: dict[str, float], words: Collection[str]) -> float:
    """Share of the query's weight that the words have."""
    return sum([weight for word, weight in weights.items() if word in words])


def _precision(weights: dict[str, float], words: Collection[str]) -> float:
    """Share of the words that the query has."""
    return sum([word in weights for word in words]) / len(words) if words else 0.0
