"""What ranking knows of a candidate: one number a signal, in a matrix [candidates, FEATURES]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..index.segment import field_of
from ..parse import KINDS
from .candidates import Candidates, Terms
from .path_signals import SORTS, path_signals

Matrix = npt.NDArray[np.float32]
Column = npt.NDArray[Any]

FEATURES = (
    "dense",
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
    "file_doc",
    "file_defines",
    "exact",
    "exact_case",
)
"""Each is 0 when it says nothing. `*_dense` are cosines, `lexical` and `file_lexical` shares of the best, those of a
field shares of the query's word weight that the field covers, `file_cover` and `file_doc` what the bodies and the doc
comments of a file's candidates cover together; `*_precision` shares of the field that the query covers."""

_TYPES = frozenset({"class", "struct", "enum", "interface", "trait", "object", "impl", "extension", "type"})
_IS_TYPE = np.array([kind in _TYPES for kind in KINDS])
MODULE, TEXT = KINDS.index("module"), KINDS.index("text")

FILE_BEST = 3
"""A file's mean cosine is that of so many of its best units: one lucky unit is not a file about the subject."""


def feature_matrix(candidates: Candidates, terms: Terms) -> Matrix:
    """The signals of all candidates, row by row, columns as FEATURES names them."""
    files, numbers = np.unique(candidates.files, return_inverse=True)
    of_files = {
        **_path_signals_of([candidates.paths.get(file, "") for file in files.tolist()], terms),
        **_file_signals(candidates, terms, numbers, len(files)),
    }
    columns = _unit_signals(candidates, terms) | {name: column[numbers] for name, column in of_files.items()}
    matrix = np.empty((len(candidates), len(FEATURES)), np.float32)
    for number, name in enumerate(FEATURES):
        matrix[:, number] = columns[name]
    return matrix


def _unit_signals(candidates: Candidates, terms: Terms) -> dict[str, Column]:
    names = field_of(candidates.counts, "name")
    return {
        "dense": candidates.dense,
        "dense_path": candidates.path_cosine,
        "lexical": _share(candidates.lexical),
        "name": (names > 0) @ terms.weights,
        "name_precision": names.sum(axis=1) / np.maximum(candidates.name_lengths, 1),
        **{field: (field_of(candidates.counts, field) > 0) @ terms.weights for field in ("container", "doc", "body")},
        "type_kind": _IS_TYPE[candidates.kinds],
        "module_kind": candidates.kinds == MODULE,
        "text_kind": candidates.kinds == TEXT,
        "size": np.log2(candidates.lines.astype(np.float32)) / 10,
        "exact": candidates.named > 0,
        "exact_case": candidates.named > 1,
    }


def _path_signals_of(paths: Sequence[str], terms: Terms) -> dict[str, Column]:
    """What the path of each file says by itself."""
    signals = [path_signals(path) for path in paths]
    weights = dict(zip(terms.stems, terms.weights.tolist(), strict=True))
    asked = frozenset(terms.stems)
    words = np.zeros((3, len(paths)))
    for place, each in enumerate(signals):
        if asked.isdisjoint(each.stem) and asked.isdisjoint(each.folders):
            continue  # as most are
        stem = asked & each.stem
        words[0, place] = sum([weights[word] for word in stem])
        words[1, place] = len(stem) / max(1, len(each.stem))
        words[2, place] = sum([weights[word] for word in asked & each.folders])
    sorts = np.array([each.sorts for each in signals], np.uint8)
    return {
        **dict(zip(("stem", "stem_precision", "folders"), words, strict=True)),
        **{name: sorts >> number & 1 for number, name in enumerate(SORTS)},
    }


def _file_signals(
    candidates: Candidates, terms: Terms, numbers: npt.NDArray[np.int64], files: int
) -> dict[str, Column]:
    """What the candidates of each file say together: a file about the subject has several that fit. `numbers` says
    which of the `files` each candidate is of."""
    order = np.lexsort((-candidates.dense, numbers))
    dense, numbers = candidates.dense[order], numbers[order]
    starts = np.searchsorted(numbers, np.arange(files))
    among_best = np.arange(len(order)) - starts[numbers] < FILE_BEST
    cover, doc = (_covered(field_of(candidates.counts, field)[order], starts, terms) for field in ("body", "doc"))
    defining = (candidates.named > 0) & (candidates.kinds != MODULE) & (candidates.kinds != TEXT)
    return {
        "file_dense": dense[starts],
        "file_dense_mean": np.bincount(numbers, dense * among_best, files) / FILE_BEST,
        "file_lexical": _share(np.bincount(numbers, candidates.lexical[order], files)),
        "file_cover": cover,
        "file_doc": doc,
        "file_defines": np.bincount(numbers, defining[order], files) > 0,
    }


def _covered(counts: Column, starts: Column, terms: Terms) -> Column:
    """Of the query's word weight, what the rows [units, terms] from each start to the next have together."""
    words = counts > 0
    return (np.logical_or.reduceat(words, starts, axis=0) if len(starts) else words) @ terms.weights


def _share(values: Column) -> Column:
    """Of the best."""
    return values / (float(values.max(initial=0.0)) or 1.0)
