"""Order: the better first, the repeats of a file later, nothing hidden."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.search.candidates import Candidate, Terms
from server.search.features import FEATURES, feature_matrix
from server.search.rank import Ranking, is_symbol, order


def candidate(path: str, line: int = 0) -> Candidate:
    return Candidate(
        line, path, "python", "f", "", "function", line, line + 1, (line, 4, 5), "", "def f()", b"",
        ("f", "", "", "", ""), 0.0, 0.0, 0.0, 0.0, "", b"",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["retry", "parseCron", "http::Client", "a.b_c", "main()", "std::vector", "$scope"])
def test_a_name_is_a_symbol(text: str) -> None:
    assert is_symbol(text)


@pytest.mark.parametrize("text", ["retry a request", "how are commands invoked", "a b"])
def test_a_description_is_not(text: str) -> None:
    assert not is_symbol(text)


def test_repeats_of_a_file_give_way_to_other_files() -> None:
    candidates = [candidate("a", 0), candidate("a", 5), candidate("b", 0)]
    ranked = order(candidates, np.array([1.0, 0.9, 0.8], np.float32), 0.2, 10)
    assert [(c.path, c.start_line) for c, _ in ranked] == [("a", 0), ("b", 0), ("a", 5)]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-1, 1, width=32)), max_size=30), st.floats(0, 2))
def test_the_order_hides_nothing_and_scores_fall(rows: list[tuple[str, float]], repeat: float) -> None:
    candidates = [candidate(path, line) for line, (path, _) in enumerate(rows)]
    scores = np.array([score for _, score in rows], np.float32)
    ranked = order(candidates, scores, repeat, len(rows))
    assert sorted(c.unit for c, _ in ranked) == sorted(c.unit for c in candidates)
    values = [score for _, score in ranked]
    assert all(a >= b - 1e-5 for a, b in pairwise(values))
    seen: dict[str, int] = {}
    for c, score in ranked:
        taken = seen.get(c.path, 0)
        assert score == pytest.approx(float(scores[c.unit]) - repeat * taken, abs=1e-4)
        seen[c.path] = taken + 1


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
    terms = Terms({"rout": 1.0}, ("rout",), ("routing",), {"rout": 1.0})
    signals = dict(zip(FEATURES, feature_matrix([candidate(path)], terms)[0], strict=True))
    assert signals["stem_precision"] == precision


def test_the_shipped_weights_name_known_signals_and_trust_the_model() -> None:
    ranking = Ranking.shipped()
    one = [candidate("a")]
    dense = np.zeros((1, len(FEATURES)), np.float32)
    dense[0, [FEATURES.index(name) for name in ("dense", "dense_code", "file_dense", "file_dense_mean")]] = 1
    assert ranking.scores(False, one, dense)[0] > 0
