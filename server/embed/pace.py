"""How much a model embeds in a given time: from a few functions a second to thousands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate

from .embedder import Embedder, Vectors

LATEST = 0.3
"""Share of the last run in what is expected of the next one."""


class Pace:
    """An embedder that learns how fast it is. Thread safe."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._rate: float | None = None
        """Characters a second."""

    def embed_code(self, texts: Sequence[tuple[str, Sequence[int]]], seconds: float, least: int) -> list[Vectors]:
        """The vectors of as many of the first texts as are likely to take no longer, but of `least` at least. One that
        nothing is known of yet is taken for fast enough, unless there is no time at all."""
        lengths = accumulate(1 + len(text) for text, _ in texts)
        likely = int(seconds > 0) if self._rate is None else sum(length <= seconds * self._rate for length in lengths)
        some = texts[: max(likely, least)]
        if not some:
            return []
        start = time.perf_counter()
        vectors = self.embedder.embed_code(some)
        rate = sum(1 + len(text) for text, _ in some) / max(time.perf_counter() - start, 1e-6)
        self._rate = rate if self._rate is None else (1 - LATEST) * self._rate + LATEST * rate
        return vectors
