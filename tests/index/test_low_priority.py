"""Work that can wait does, while somebody searches."""

from __future__ import annotations

import threading
import time

import pytest

from server.index import low_priority
from server.index.low_priority import RightOfWay


def test_work_rests_between_its_steps_while_a_search_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_priority, "WAITS_AT_MOST", 60.0)
    way, done, first = RightOfWay(), [], threading.Event()

    def work() -> None:
        for step in way.given(range(3)):
            done.append(step)
            first.set()

    with way.taken():
        worker = threading.Thread(target=work)
        worker.start()
        first.wait(60)
        time.sleep(0.05)  # not for anything to happen: for it not to
        assert done == [0]
    worker.join(60)
    assert done == [0, 1, 2]


def test_searches_without_an_end_do_not_stop_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_priority, "WAITS_AT_MOST", 0.01)
    way = RightOfWay()
    with way.taken():
        assert list(way.given(range(5), every=2)) == [0, 1, 2, 3, 4]


def test_what_takes_few_steps_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_priority, "WAITS_AT_MOST", 3600.0)
    way = RightOfWay()
    with way.taken():
        assert list(way.given("ab", every=2)) == ["a", "b"]
