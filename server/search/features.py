"""What ranking knows of a candidate: one number a signal, in a matrix [candidates, FEATURES]."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

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
    "file_dense",
    "file_dense_mean",
    "file_lexical",
    "file_cover",
    "file_defines",
    "exact",
    "exact_case",
    "type_kind",
    "module_kind",
    "text_kind",
    "size",
    "test",
    "example",
    "vendored",
    "declaration",
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
_DECLARATION = re.compile(r"\.(d\.[cm]?ts|pyi|h|hh|hpp|hxx|mli|hs-boot)$")


def feature_matrix(candidates: Sequence[Candidate], terms: Terms) -> Matrix:
    """The signals of all candidates, row by row, columns as FEATURES names them."""
    files = _FileSignals(candidates, terms)
    best_lexical = max((c.lexical for c in candidates), default=0.0) or 1.0
    typed = frozenset(terms.identifiers)
    lowered = frozenset(name.lower() for name in typed)
    rows = [_row(c, terms, files, best_lexical, typed, lowered) for c in candidates]
    return np.array(rows, np.float32).reshape(-1, len(FEATURES))


def _row(
    c: Candidate,
    terms: Terms,
    files: _FileSignals,
    best_lexical: float,
    typed: frozenset[str],
    lowered: frozenset[str],
) -> tuple[float, ...]:
    weights = terms.weights
    name, container, doc, _, body = (frozenset(field.split()) for field in c.words)
    stem, folders = path_stems(c.path)
    return (
        c.dense,
        c.code_cosine,
        c.path_cosine,
        c.lexical / best_lexical,
        _cover(weights, name),
        _precision(weights, name),
        _cover(weights, container),
        _cover(weights, doc),
        _cover(weights, body),
        _cover(weights, stem),
        _precision(weights, stem),
        _cover(weights, folders),
        files.dense[c.path],
        files.dense_mean[c.path],
        files.lexical[c.path],
        files.cover[c.path],
        files.defines[c.path],
        c.name.lower() in lowered,
        c.name in typed,
        c.kind in TYPE_KINDS,
        c.kind == "module",
        c.kind == "text",
        math.log2(1 + c.end_line - c.start_line) / 10,
        bool(_TEST.search(c.path)),
        bool(_EXAMPLE.search(c.path)),
        bool(_VENDORED.search(c.path)),
        bool(_DECLARATION.search(c.path)),
    )


class _FileSignals:
    """What a file's candidates say together, by path: a file about the subject has several that fit."""

    def __init__(self, candidates: Sequence[Candidate], terms: Terms) -> None:
        dense: dict[str, list[float]] = defaultdict(list)
        lexical: dict[str, float] = defaultdict(float)
        covered: dict[str, set[str]] = defaultdict(set)
        self.defines: dict[str, float] = defaultdict(float)
        lowered = frozenset(name.lower() for name in terms.identifiers)
        for c in candidates:
            dense[c.path].append(c.dense)
            lexical[c.path] += c.lexical
            covered[c.path].update(terms.weights.keys() & c.words[4].split())
            if c.name.lower() in lowered and c.kind not in ("module", "text"):
                self.defines[c.path] = 1.0
        most = max(lexical.values(), default=0.0) or 1.0
        self.dense = {path: max(values) for path, values in dense.items()}
        self.dense_mean = {path: sum(sorted(values)[-FILE_BEST:]) / FILE_BEST for path, values in dense.items()}
        self.lexical = {path: value / most for path, value in lexical.items()}
        self.cover = {path: _cover(terms.weights, words) for path, words in covered.items()}


def path_stems(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """Stems of a file's own name, and of the folders it lies in."""
    pure = PurePosixPath(path)
    return frozenset(stems(pure.stem)), frozenset(stems(" ".join(pure.parts[:-1])))


def _cover(weights: dict[str, float], words: Iterable[str]) -> float:
    return sum(weights[word] for word in weights.keys() & words)


def _precision(weights: dict[str, float], words: frozenset[str]) -> float:
    return len(weights.keys() & words) / len(words) if words else 0.0
