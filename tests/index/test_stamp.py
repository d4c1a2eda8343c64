"""A stamp is trusted once the file can no longer change behind its back."""

from __future__ import annotations

import time

import pytest

from server.index.stamp import UNSETTLED, seen_stamp, stamp_of
from server.workspace.discover import FoundFile

HOUR = 3600.0


@pytest.mark.parametrize(
    ("modified", "changed", "settled"),
    [
        (-HOUR, -HOUR, True),
        (0, 0, False),
        (-HOUR, 0, False),  # the old time was put back
        (-1, -HOUR, False),
        (HOUR, -HOUR, True),  # from an archive
        (1, -HOUR, False),  # a clock that is a little ahead
        (HOUR, HOUR, False),  # a clock that is far ahead
    ],
)
def test_a_stamp_is_trusted_when_its_times_are_past(modified: float, changed: float, settled: bool) -> None:
    assert _is_trusted(modified, changed, step=10**6) == settled


@pytest.mark.parametrize(("changed", "settled"), [(0, False), (-0.02, False), (-0.2, True), (-1, True), (0.2, False)])
def test_where_time_is_fine_a_moment_is_enough(changed: float, settled: bool) -> None:
    assert _is_trusted(changed, changed, step=1) == settled


def _is_trusted(modified: float, changed: float, step: int) -> bool:
    """Of a file on a file system that counts in `step` nanoseconds, with times so many seconds from now."""
    now = time.time_ns()
    times = [(now + int(seconds * 10**9)) // step * step for seconds in (modified, changed)]
    found = FoundFile("a.py", 1, *(each + (step == 1 and each % 10**6 == 0) for each in times))
    assert stamp_of(found) in (seen_stamp(found), UNSETTLED)
    return stamp_of(found) == seen_stamp(found)
