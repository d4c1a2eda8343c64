"""When a cache is left alone, and for how long."""

from __future__ import annotations

import pytest

from server.shared.breaker import FIRST_BREAK, LONGEST_BREAK, PATIENCE, Account, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_failure_is_a_longer_break() -> None:
    breaker = Breaker(clock := Clock())
    breaks = []
    for _ in range(8):
        assert breaker.closed
        breaker.failed("down")
        begun = clock.now
        while not breaker.closed:
            clock.now += 1
        breaks.append(clock.now - begun)
    assert breaks[:3] == [FIRST_BREAK, 2 * FIRST_BREAK, 4 * FIRST_BREAK]
    assert breaks[-2:] == [LONGEST_BREAK, LONGEST_BREAK]


def test_what_works_again_is_trusted_again() -> None:
    breaker = Breaker(clock := Clock())
    for _ in range(4):
        breaker.failed("down")
        clock.now += LONGEST_BREAK
    assert breaker.reason == "down"
    breaker.worked()
    assert breaker.reason is None
    breaker.failed("down")
    clock.now += FIRST_BREAK
    assert breaker.closed


def test_calls_that_were_under_way_change_nothing() -> None:
    breaker = Breaker(clock := Clock())
    breaker.failed("down")
    breaker.failed("also down")
    breaker.worked()
    assert not breaker.closed
    assert breaker.reason == "down"
    clock.now += FIRST_BREAK
    assert breaker.closed


def test_asking_has_to_pay() -> None:
    account = Account()
    account.computed(seconds=1, texts=1000)
    for _ in range(100):
        account.asked(seconds=0.1, found=200)
        assert not account.overdrawn()
    for _ in range(int(PATIENCE / 0.1)):
        assert not account.overdrawn()
        account.asked(seconds=0.1001, found=0)
    assert account.overdrawn()
    assert not account.overdrawn()


@pytest.mark.parametrize(("seconds", "pays"), [(0.01, True), (0.1, False)])
def test_an_empty_cache_may_cost_a_part_of_what_embedding_does(seconds: float, pays: bool) -> None:
    account = Account()
    overdrawn = []
    for _ in range(50):
        account.asked(seconds, found=0)
        account.computed(seconds=0.2, texts=500)
        overdrawn.append(account.overdrawn())
    assert any(overdrawn) != pays
