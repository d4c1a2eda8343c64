"""A short flood; the long one is `python -m tests.bench.flood`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.bench.flood import flood
from tests.bench.flood_messages import PLAN, Messages


@pytest.mark.slow
def test_a_server_that_is_sent_anything_lives_and_is_right(tmp_path: Path) -> None:
    figures = flood(tmp_path, number=3_000, seed=0)
    assert figures["failures"] == []
    assert figures["received"]["results"] > 100
    assert figures["received"]["errors"] > 100
    assert figures["resident_mb"][-1] < figures["resident_mb"][0] + 50


def test_the_same_seed_sends_the_same(tmp_path: Path) -> None:
    one, same, other = (list(islice(Messages(tmp_path, seed), 500)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_every_kind_of_message_can_be_made(tmp_path: Path) -> None:
    for kind, _ in PLAN:
        stream = Messages(tmp_path, seed=0)
        assert all(isinstance(kind(stream).data, bytes) for _ in range(50))
