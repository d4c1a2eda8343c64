"""A stamp is trusted once the file can no longer change behind its back."""

from __future__ import annotations

import time

import pytest

from server.index.stamp import UNSETTLED, seen_stamp, stamp_of
from server.workspace.discover import FoundFile

HOUR = 3600


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
def test_a_stamp_is_trusted_when_its_times_are_past(modified: int, changed: int, settled: bool) -> None:
    now = time.time_ns()
    found = FoundFile("a.py", 1, now + modified * 10**9, now + changed * 10**9)
    assert stamp_of(found) == (seen_stamp(found) if settled else UNSETTLED)
