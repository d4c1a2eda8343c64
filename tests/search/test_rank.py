"""Order: the better first, the repeats of a file later, nothing hidden."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.index.words import FIELD_BITS, FIELDS
from server.parse import KINDS
from server.search.candidates import Candidates, weigh
from server.search.features import FEATURES, feature_matrix
from server.search.rank import Ranking, is_symbol, order


def candidates(*paths: str) -> Candidates:
    """Units of these files; their ids are their places from 1."""
    names = dict(enumerate(dict.fromkeys(paths)))
    files = {path: file for file, path in names.items()}
    number = len(paths)
    nothing = np.zeros(number, np.float32)
    return Candidates(
        units=np.arange(1, number + 1),
        files=np.array([files[path] for path in paths], np.int64),
        kinds=np.full(number, KINDS.index("function"), np.uint8),
        lines=np.ones(number, np.uint16),
        name_lengths=np.ones(number, np.uint8),
        counts=np.zeros((number, 0), np.uint16),
        lexical=nothing,
        named=np.zeros(number, np.uint8),
        dense=nothing,
        path_cosine=nothing,
        paths=names,
    )


@pytest.mark.parametrize("text", ["retry", "parseCron", "http::Client", "a.b_c", "main()", "std::vector", "$scope"])
def test_a_name_is_a_symbol(text: str) -> None:
    assert is_symbol(text)


@pytest.mark.parametrize("text", ["retry a request", "how are commands invoked", "a b"])
def test_a_description_is_not(text: str) -> None:
    assert not is_symbol(text)


def test_repeats_of_a_file_give_way_to_other_files() -> None:
    ranked = order(candidates("a", "a", "b"), np.array([1.0, 0.9, 0.8], np.float32), 0.2, 10)
    assert [unit for unit, _ in ranked] == [1, 3, 2]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-1, 1, width=32)), max_size=30), st.floats(0, 2))
def test_the_order_hides_nothing_and_scores_fall(rows: list[tuple[str, float]], repeat: float) -> None:
    scores = np.array([score for _, score in rows], np.float32)
    ranked = order(candidates(*(path for path, _ in rows)), scores, repeat, len(rows))
    assert sorted(unit for unit, _ in ranked) == [*range(1, len(rows) + 1)]
    values = [score for _, score in ranked]
    assert all(a >= b - 1e-5 for a, b in pairwise(values))
    seen: dict[str, int] = {}
    for unit, score in ranked:
        path, own = rows[unit - 1]
        taken = seen.get(path, 0)
        assert score == pytest.approx(own - repeat * taken, abs=1e-4)
        seen[path] = taken + 1


def test_the_name_of_a_module_which_is_its_files_puts_it_before_none_of_its_units() -> None:
    module, function = KINDS.index("module"), KINDS.index("function")
    found = replace(candidates("cookies.go", "cookies.go"), kinds=np.array([module, function], np.uint8))
    signals = np.zeros((2, len(FEATURES)), np.float32)
    signals[0, [FEATURES.index("name"), FEATURES.index("exact")]] = 1
    signals[1, FEATURES.index("dense")] = 0.1
    for symbol in (False, True):
        scores = Ranking.shipped().scores(symbol, found, signals)
        assert scores[1] > scores[0]


@pytest.mark.parametrize(
    ("path", "precision"),
    [
        ("routing/mod.rs", 1),
        ("src/routing/index.ts", 1),
        ("routing/__init__.py", 1),
        ("lua/routing/init.lua", 1),
        ("routing/method.rs", 0),
        ("mod.rs", 0),
    ],
)
def test_a_file_without_a_name_of_its_own_goes_by_its_folders(path: str, precision: float) -> None:
    terms = weigh("routing", ["rout"], np.ones(1, np.int64), 1, 1.0)
    found = replace(candidates(path), counts=np.zeros((1, 1), np.uint16))
    signals = dict(zip(FEATURES, feature_matrix(found, terms)[0], strict=True))
    assert signals["stem_precision"] == precision


def test_a_file_is_told_by_the_doc_comments_of_its_units_together() -> None:
    terms = weigh("retry upload", ["retri", "upload"], np.ones(2, np.int64), 4, 1.0)
    found = candidates("a.py", "b.py", "a.py", "b.py")
    for field, signal in (("doc", "file_doc"), ("body", "file_cover")):
        once = 1 << FIELD_BITS * FIELDS.index(field)
        counts = np.array([[once, 0], [once, 0], [0, once], [once, 0]], np.uint16)
        signals = feature_matrix(replace(found, counts=counts), terms)[:, FEATURES.index(signal)]
        assert signals.tolist() == pytest.approx([1, 0.5, 1, 0.5])


def test_the_shipped_weights_name_known_signals_and_trust_the_model() -> None:
    ranking = Ranking.shipped()
    one = candidates("a")
    dense = np.zeros((1, len(FEATURES)), np.float32)
    dense[0, [FEATURES.index(name) for name in ("dense", "file_dense", "file_dense_mean")]] = 1
    assert ranking.scores(False, one, dense)[0] > 0
