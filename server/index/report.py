"""What an update of the index tells: its progress and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The outcome of one update, as `index --json` prints it."""

    files: int
    """Files in the index after the update."""
    units: int
    """Units in the index after the update."""
    embedded: int
    """Embeddings computed by this update."""
    reused: int
    """Units whose embedding was known already."""
    removed: int
    """Files that left the index."""
    seconds: float
    pending: int
    """Files left to do: greater than 0 when the update was cancelled or another process is writing."""
    fetched: int = 0
    """Embeddings that came from the shared cache."""


class Progress(Protocol):
    """Called from the indexing thread as files are done."""

    def __call__(self, done: int, total: int) -> None:
        """So many files of so many are done."""
