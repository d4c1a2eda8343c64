"""What an update has to do, and in which portions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from ..workspace.discover import FoundFile
from .prepare import PreparedFile
from .store import FileRow
from .version import units_version
from .workers import Outcome, Task, Workers

BATCH_UNITS = 2_000
"""Units of one transaction: what a kill can cost, and about what one write takes 0.2 s for."""

FIRST_BATCH_UNITS = 250
"""Units of the first transaction, each next one has twice as many: whoever prepares files and whoever embeds them work
at the same time from the beginning."""

BATCH_SECONDS = 0.5
"""A transaction waits no longer for more units: what is urgent waits for it."""

EDITED_FILES = 4
"""So few files that change at once are somebody's own work of just now."""


@dataclass
class Plan:
    """What the tree has that the database has not."""

    changed: list[tuple[FoundFile, FileRow | None]] = field(default_factory=list)
    removed: list[FileRow] = field(default_factory=list)
    renewed: set[str] = field(default_factory=set)
    """Paths whose units get new ids, since vectors of the model come to them only now."""
    whole: bool = False
    """Whether all of the tree was compared."""

    @property
    def edited(self) -> bool:
        """Whether this is what somebody writes just now, so that nobody else can have embedded it before."""
        return not self.whole and self.size <= EDITED_FILES

    @property
    def new(self) -> bool:
        """Whether there are files that the database has not seen."""
        return any(row is None for _, row in self.changed)

    @property
    def size(self) -> int:
        """Files to do."""
        return len(self.changed) + len(self.removed)

    @property
    def tasks(self) -> list[Task]:
        """What is to be prepared: each file with the digest of a content that need not be."""
        return [(found, self._known_digest(row)) for found, row in self.changed]

    def _known_digest(self, row: FileRow | None) -> bytes | None:
        """None for new files, and where known content is prepared again: its units are renewed, or other code made
        them."""
        if row is None or row.path in self.renewed or row.maker != units_version():
            return None
        return row.digest

    @cached_property
    def known(self) -> dict[str, FileRow]:
        """The changed files that the database has already, by path."""
        return {row.path: row for _, row in self.changed if row}


@dataclass
class Run:
    """One update: what it was given, and what it has done."""

    workers: Workers | None
    cancelled: Callable[[], bool]
    urgent: Callable[[], Collection[str]] | None
    attended: list[Collection[str]] = field(default_factory=list)
    """What was urgent until now, the newest last."""
    embedded: int = 0
    fetched: int = 0
    removed: int = 0


def among(path: str, changes: Sequence[Collection[str]]) -> bool:
    """Whether a file is in one of these sets of changed paths, or below a folder that is."""
    places = {"", path, *map(str, PurePosixPath(path).parents)}
    return any(not places.isdisjoint(paths) for paths in changes)


def batches(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """The outcomes in the portions that are written together."""
    batch: list[Outcome] = []
    units, begun, enough = 0, time.monotonic(), min(FIRST_BATCH_UNITS, BATCH_UNITS)
    for outcome in outcomes:
        batch.append(outcome)
        units += 1 + (len(outcome[1].units) if isinstance(outcome[1], PreparedFile) else 0)
        if units >= enough or time.monotonic() - begun >= BATCH_SECONDS:
            yield batch
            batch, units, begun, enough = [], 0, time.monotonic(), min(2 * enough, BATCH_UNITS)
    if batch:
        yield batch
