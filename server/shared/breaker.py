"""Whether to use what failed, or does not pay."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FIRST_BREAK = 30.0
"""Seconds that a cache is left alone after a failure; twice as long after each further one."""
LONGEST_BREAK = 15 * 60.0

PATIENCE = 1.0
"""Seconds that may be spent on asking before it has to pay."""
SHARE = 0.2
"""Of the time that is spent on embedding, what asking may cost though nothing is found: a new model's first index."""
USUAL_COST = 0.001
"""Seconds that embedding a text is taken to cost before any was embedded here."""


class Breaker:
    """Opens at a failure, and closes by itself after a while. Thread safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0
        self.reason: str | None = None
        """Why it is open, or was until somebody tried again."""

    @property
    def closed(self) -> bool:
        """Whether to try."""
        return self._clock() >= self._until

    def failed(self, reason: str) -> None:
        """Leave it alone for a while."""
        with self._lock:
            if not self.closed:  # by a call that began before
                return
            self.reason = reason
            self._until = self._clock() + min(LONGEST_BREAK, FIRST_BREAK * 2**self._failures)
            self._failures = min(self._failures + 1, 10)

    def worked(self) -> None:
        """It is well again. To be told by a call that began while this was closed."""
        with self._lock:
            if self.closed:
                self._failures, self.reason = 0, None


class Account:
    """Whether asking costs less time than it saves. Not thread safe."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self._left = PATIENCE

    def asked(self, seconds: float, found: int) -> None:
        """So many vectors came, after so long."""
        self._add(found * (USUAL_COST if self._cost is None else self._cost) - seconds)

    def computed(self, seconds: float, texts: int) -> None:
        """So many were embedded here instead."""
        self._cost = seconds / texts
        self._add(SHARE * seconds)

    def overdrawn(self) -> bool:
        """Whether it has not paid; then the account begins anew."""
        if self._left > 0:
            return False
        self._left = PATIENCE
        return True

    def _add(self, seconds: float) -> None:
        self._left = min(PATIENCE, self._left + seconds)
