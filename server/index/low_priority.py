"""Work that gives way to all else in this process, and on this machine."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Step = TypeVar("Step")

NICENESS = 10

WAITS_AT_MOST = 0.05
"""Seconds that one step of the work waits for searches, so that somebody who searches without a pause does not stop
it."""


class RightOfWay:
    """Searches go first: while one runs, work that can wait does, between its small steps.

    Python's threads share one interpreter lock, and the system's priorities know nothing of who waits for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._searches = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Whatever is inside goes before the work that can wait."""
        with self._changed:
            self._searches += 1
        try:
            yield
        finally:
            with self._changed:
                self._searches -= 1
                self._changed.notify_all()

    def given(self, steps: Iterable[Step], every: int = 1) -> Iterator[Step]:
        """`steps` of work that can wait, which gives way after `every` so many."""
        for done, step in enumerate(steps):
            if done and done % every == 0:
                self.give()
            yield step

    def give(self) -> None:
        """Wait while searches run, WAITS_AT_MOST."""
        if self._searches:
            with self._changed:
                self._changed.wait_for(lambda: not self._searches, WAITS_AT_MOST)


right_of_way = RightOfWay()
"""The process's, as the interpreter lock is."""


def low_priority_thread() -> ThreadPoolExecutor:
    """A thread for calls that do not hold Python's interpreter lock (one that does would keep searches from it while it
    waits for its turn). The threads that they start are of the same priority."""
    return ThreadPoolExecutor(1, "meaning-background", _give_way)


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere the priority is the whole process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
