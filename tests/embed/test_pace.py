"""How much is embedded at once follows how fast the model is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder, Vectors
from server.embed.pace import Pace

from .tiny import write_bundle

TEXTS = [("w1 w2 w3 w4", ())] * 10


class Slow(Embedder):
    """Takes `per_text` seconds for each text, by a clock of its own."""

    now = 0.0
    per_text = 0.1

    def embed_code(self, texts: Sequence[tuple[str, Sequence[int]]]) -> list[Vectors]:
        self.now += self.per_text * len(texts)
        return super().embed_code(texts)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow(Bundle.load(write_bundle(tmp_path)), threads=1)
    monkeypatch.setattr("server.embed.pace.time.perf_counter", lambda: slow.now)
    return slow


def test_the_first_run_is_small_and_the_others_fill_their_time(slow: Slow) -> None:
    pace = Pace(slow)
    assert [len(pace.embed_code(TEXTS, 0.55, least=0)) for _ in range(3)] == [1, 5, 5]


def test_what_does_not_fit_is_left_unless_it_has_to_be(slow: Slow) -> None:
    pace = Pace(slow)
    pace.embed_code(TEXTS, 1, least=0)
    assert pace.embed_code(TEXTS, 0.05, least=0) == []
    assert len(pace.embed_code(TEXTS, 0.05, least=1)) == 1
    assert len(pace.embed_code(TEXTS, -1, least=2)) == 2


def test_without_any_time_not_even_the_first_run_is_made(slow: Slow) -> None:
    assert Pace(slow).embed_code(TEXTS, 0, least=0) == []


def test_a_model_that_has_become_faster_gets_more(slow: Slow) -> None:
    pace = Pace(slow)
    pace.embed_code(TEXTS, 1, least=0)
    slow.per_text = 0.01
    counts = [len(pace.embed_code(TEXTS * 10, 1, least=0)) for _ in range(8)]
    assert counts == sorted(counts)
    assert counts[-1] > 3 * counts[0]


def test_the_vectors_are_the_embedders(slow: Slow) -> None:
    [found] = Pace(slow).embed_code([("w1 w2", ())], 1, least=0)
    np.testing.assert_array_equal(found, slow.embed_code([("w1 w2", ())])[0])
