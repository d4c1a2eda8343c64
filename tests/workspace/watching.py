"""A watcher whose change sets are kept, and what the kernel says that it watches."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from server.settings import Settings
from server.workspace.watch import ChangeSet, Mode, Watcher

PATIENCE = 30.0
"""Seconds after which a test that waits has failed."""
FENCE = "fence-"
"""How the files begin that `Seen.fence` writes. Each has a name of its own, for it may be told twice: when it is there,
and when it is written."""


class Seen:
    """What a watcher told."""

    fences = 1
    """How many it takes: where trees are compared, one comparison may catch a fence and miss what came before it."""

    def __init__(self) -> None:
        self.sets: list[ChangeSet] = []
        self.modes: list[tuple[Mode, str | None]] = []
        self._arrived = threading.Condition()
        self._fences = itertools.count()

    def take(self, change: ChangeSet) -> None:
        with self._arrived:
            self.sets.append(change)
            self._arrived.notify_all()

    def take_mode(self, mode: Mode, reason: str | None) -> None:
        with self._arrived:
            self.modes.append((mode, reason))
            self._arrived.notify_all()

    @property
    def paths(self) -> set[str]:
        """All that changed, as far as it is known."""
        return {path for change in self.sets for path in change.paths}

    def until(self, reached: Callable[[], object]) -> None:
        with self._arrived:
            assert self._arrived.wait_for(reached, PATIENCE), (self.sets, self.modes)

    def until_changed(self, *paths: str) -> set[str]:
        """Waits for these paths; returns all that changed since the last time but for fences, and forgets it."""
        self.until(lambda: self.paths.issuperset(paths))
        with self._arrived:
            changed = self.paths
            self.sets.clear()
        return {path for path in changed if not path.startswith(FENCE)}

    def until_changed_within(self, folder: str) -> set[str]:
        """Waits for a folder as a whole, by itself or as part of everything."""
        self.until(lambda: not self.paths.isdisjoint(("", folder)))
        return self.until_changed()

    def fence(self, root: Path) -> set[str]:
        """All that changed since the last time until now."""
        changed: set[str] = set()
        for _ in range(self.fences):
            name = f"{FENCE}{next(self._fences)}"
            (root / name).write_text("")
            changed |= self.until_changed(name)
        return changed


@contextmanager
def watching(root: Path, settings: Settings | None = None) -> Iterator[Seen]:
    """A watcher that has its watches in place, and has told so."""
    seen = Seen()
    watcher = Watcher(root, settings or Settings(), seen.take, seen.take_mode)
    try:
        seen.until_changed("")
        yield seen
    finally:
        watcher.close(PATIENCE)


def watched(root: Path) -> list[str]:
    """The folders at or below `root` that this process watches, by the kernel's own account."""
    accounts = [_text(info) for info in Path("/proc/self/fdinfo").iterdir()]
    inodes = {int(found, 16) for found in re.findall(r"^inotify .*ino:(\w+)", "".join(accounts), re.MULTILINE)}
    folders = [root, *(entry for entry in root.rglob("*") if entry.is_dir() and not entry.is_symlink())]
    return sorted(folder.relative_to(root).as_posix() for folder in folders if folder.stat().st_ino in inodes)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # It was closed meanwhile.
        return ""


def eventually(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)
