"""Changes of a workspace folder, as they happen: many events become one set of paths that may have changed.

A change set says where to look, and never what is there: the disk says that. So an event too many does no harm, and
whenever events may be missing the set is simply everything.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..settings import Settings
from .mounts import shared_mount

QUIET_SECONDS = 0.05
"""A set is given when nothing has happened for so long: more than the gaps within a checkout or a save."""
LATEST_SECONDS = 1.0
"""A set is given so long after its first event even if there are always more."""
RESCAN_SECONDS = 30.0
"""How often everything is looked at where not all changes are told: finding nothing costs a core a second for
100,000 files, and an editor tells of its own changes."""
RETURN_SECONDS = 0.5
"""How often a workspace folder that is gone is looked for."""
MOST_PATHS = 10_000
"""A set of more paths becomes everything, which is then no more to look at."""
NEVER = math.inf

Mode = Literal["watching", "partly watching", "rescanning"]
"""Whether all changes are told as they happen, some, or none. What is not told is found by looking at everything."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChangeSet:
    """What may have changed, come or gone."""

    paths: frozenset[str]
    """Files and folders, relative with `/`. A folder stands for all that is, or was, below it; "" is the workspace
    folder."""

    @property
    def everything(self) -> bool:
        """Whether it is the whole folder that has to be looked at."""
        return "" in self.paths


EVERYTHING = ChangeSet(frozenset({""}))


class _Eyes(Protocol):
    """What tells of changes; see `FolderWatches` and `TreeWatch`."""

    @property
    def gap(self) -> str | None: ...
    def wait(self, timeout: float | None) -> Set[str]: ...
    def settle(self) -> None: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class Pending:
    """The changes that are not given yet."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._first = self._last = 0.0

    def add(self, paths: Set[str], now: float) -> None:
        """These changed, too. Times are in seconds of a clock that never goes back."""
        if not paths:
            return
        if not self._paths:
            self._first = now
        self._last = now
        self._paths |= paths
        if len(self._paths) > MOST_PATHS:
            self._paths = set(EVERYTHING.paths)

    def due(self) -> float:
        """When they are to be given."""
        return min(self._last + QUIET_SECONDS, self._first + LATEST_SECONDS) if self._paths else NEVER

    def take(self) -> ChangeSet:
        """All of them; after that there are none."""
        taken = ChangeSet(frozenset(self._paths))
        self._paths = set()
        return taken


class Watcher:
    """Watches one workspace folder, in a thread of its own, until `close`."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        on_change: Callable[[ChangeSet], None],
        on_mode: Callable[[Mode, str | None], None] = lambda *_: None,
    ) -> None:
        """Returns at once. Both callbacks are called in the watcher's thread, and may not wait.

        `on_change` first gets everything, as soon as the watches are in place: what changed before is in no later set.
        `on_mode` hears of each new mode, and why it is not `watching`.
        """
        self.mode: Mode = "watching"
        self.reason: str | None = None
        self._root, self._settings = Path(os.path.realpath(root)), settings
        self._on_change, self._on_mode = on_change, on_mode
        self._lock = threading.Lock()
        self._eyes: _Eyes | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meaning-watch", daemon=True)
        self._thread.start()

    def close(self, patience: float | None = None) -> None:
        """Stop watching; waits up to `patience` seconds for the thread, without one until it has ended."""
        self._closed.set()
        with self._lock:
            if self._eyes:
                self._eyes.wake()
        self._thread.join(patience)

    # -- the thread

    def _run(self) -> None:
        while not self._closed.is_set():
            self._try()

    def _try(self) -> None:
        try:
            self._use(self._open())
        except Exception as error:
            if not isinstance(error, OSError):  # A fault of ours.
                log.exception("%s: not watched", self._root)
            self._tell("rescanning", str(getattr(error, "strerror", None) or error))
            self._on_change(EVERYTHING)
            self._pause(gone=getattr(error, "filename", None) == str(self._root))

    def _pause(self, gone: bool) -> None:
        """Wait for the next rescan, or for the workspace folder if it is gone."""
        end = time.monotonic() + RESCAN_SECONDS
        while (left := end - time.monotonic()) > 0 and not (gone and self._root.is_dir()):
            if self._closed.wait(min(left, RETURN_SECONDS) if gone else left):
                break

    def _use(self, eyes: _Eyes) -> None:
        """Give changes until there is no folder to watch any more. (Another one may be in its place by then.)"""
        with self._lock:
            self._eyes = eyes
        try:
            self._give_changes(eyes)
        except FileNotFoundError as error:
            log.debug("%s: %s", self._root, error)
        finally:
            with self._lock:
                self._eyes = None
            eyes.close()

    def _open(self) -> _Eyes:
        if sys.platform == "linux":
            from .watch_folders import FolderWatches

            return FolderWatches(self._root, self._settings, self._closed.is_set)
        from .watch_tree import TreeWatch

        return TreeWatch(self._root, self._settings)

    def _give_changes(self, eyes: _Eyes) -> None:
        shared = shared_mount(self._root)
        elsewhere = shared and f"{shared[0]} ({shared[1]}) does not tell of changes that are made elsewhere"
        self._on_change(EVERYTHING)
        pending = Pending()
        now = time.monotonic()
        rescan = now + RESCAN_SECONDS
        while not self._closed.is_set():
            gap = eyes.gap or elsewhere
            self._tell("partly watching" if gap else "watching", gap)
            alarm = min(pending.due(), rescan if gap else NEVER)
            changed = eyes.wait(None if alarm == NEVER else max(0.0, alarm - now))
            now = time.monotonic()
            pending.add(changed, now)
            if gap and rescan <= now:
                pending.add(EVERYTHING.paths, now)
                rescan = now + RESCAN_SECONDS
            if pending.due() <= now:
                eyes.settle()
                self._on_change(pending.take())

    def _tell(self, mode: Mode, reason: str | None) -> None:
        if (mode, reason) != (self.mode, self.reason):
            self.mode, self.reason = mode, reason
            self._on_mode(mode, reason)
