"""One workspace folder, as requests see it: where it stands, and a way to search in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..embed.bundle import ModelError
from ..index.buffers import Buffers
from ..index.database import StoreError
from ..index.index import Index
from ..index.workers import Workers
from ..search.searcher import Searcher
from ..settings import Settings
from ..workspace.overlay import Overlay
from ..workspace.watch import Mode
from .model import Model

EXPECTED = (ModelError, StoreError, OSError)
"""What can go wrong without a fault of ours; the message tells the user all."""


@dataclass(eq=False)
class _Reader:
    """A searcher with a connection of its own, and how many searches use it now."""

    searcher: Searcher
    users: int = 0


class Folder:
    """One workspace folder. Searches share it with the indexing thread."""

    def __init__(
        self,
        uri: str,
        path: Path,
        settings: Settings,
        model: Model,
        overlay: Overlay,
        workers: Workers,
        lost: Callable[[Folder], None],
        stale: Callable[[Folder, str], None],
    ) -> None:
        """`lost` hears that another index is in the place of the one that was, and may hold nothing yet; `stale`, that
        a search met a file (relative, with `/`) that is not as it was indexed."""
        self.uri, self.path = uri, path
        self.state = "waiting"
        """`waiting`, `indexing`, `ready` or `failed`."""
        self.problem: str | None = None
        """Why it `failed`."""
        self.problems: list[str] = []
        """What was wrong with single files, or with the index, the newest last."""
        self.done = self.total = 0
        """Files of the update that runs."""
        self.totals = (0, 0, 0)
        """Files, units and pending files after the last update."""
        self.retired = False
        """Whether the folder left the workspace, or its settings changed."""
        self.watched = False
        """Whether changes are seen from now on. An update that begins before would have to be done again."""
        self.watch: Mode = "watching"
        self.unwatched: str | None = None
        """Why not all changes of its files are seen as they happen."""
        self.stirred = 0
        """How often something was heard of its files."""
        self._settings, self._model, self._overlay, self._workers = settings, model, overlay, workers
        self._lost, self._stale = lost, stale
        self._lock = threading.Lock()
        self._reader: _Reader | None = None

    @contextmanager
    def reading(self) -> Iterator[Searcher]:
        """A searcher, valid inside of the block. Raises ModelError, StoreError or OSError."""
        self._let_go()
        reader = self._taken() or self._taken(_Reader(self._searcher()))
        assert reader
        try:
            yield reader.searcher
        finally:
            with self._lock:
                reader.users -= 1
                if not reader.users and (self.retired or reader is not self._reader):
                    reader.searcher.close()
                    self._reader = None if reader is self._reader else self._reader

    def _taken(self, new: _Reader | None = None) -> _Reader | None:
        """The reader for one more search: the one that is there, else `new`. (One is opened outside of the lock, which
        the event loop takes as well: a damaged or busy disk may keep it for long.)"""
        with self._lock:
            reader = self._reader = self._reader or new
            if reader:
                reader.users += 1
        if new and reader is not new:  # another search was faster
            new.searcher.close()
        return reader

    def _let_go(self) -> None:
        """See whether another process built the index anew, or the cache was emptied."""
        with self._lock:
            lost = self._reader and self._reader.searcher.index.store.replaced()
            if lost:
                self._drop_reader()
        if lost:
            self.state = "waiting"
            self._lost(self)

    def follow(self) -> None:
        """Let searches have what is new without having to wait for it."""
        with suppress(*EXPECTED), self.reading() as searcher:
            searcher.index.vectors.follow()

    def _searcher(self) -> Searcher:
        index = self.open()
        buffers = Buffers(index, self._workers, lambda: self._overlay.below(self.path), lambda: self.stirred)
        return Searcher(index, buffers, stale=self._met_stale)

    def _met_stale(self, path: str) -> None:
        if self.state == "ready":  # else somebody is at it
            self._stale(self, path)

    def open(self) -> Index:
        """A new connection to the folder's index. Raises ModelError, StoreError or OSError."""
        if not self.path.is_dir():
            raise NotADirectoryError(f"{self.path}: no such folder")
        return Index.open(self.path, self._model.bundle(), self._settings, self._model.embedder())

    def reopen(self) -> None:
        """Let later searches connect anew; those that run keep what they have."""
        with self._lock:
            self._drop_reader()

    def _drop_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader and not reader.users:
            reader.searcher.close()

    def retire(self) -> None:
        """Stop the folder's update, and close its index when nobody uses it any more."""
        self.retired = True
        self.reopen()

    def relative(self, path: Path) -> str | None:
        """A path in this folder as the index names it; None for any other."""
        return path.relative_to(self.path).as_posix() if path.is_relative_to(self.path) else None

    def pending(self, known: int) -> int:
        """Files that are still to be taken up: `known` to the index, or at least one while nobody has looked."""
        unseen = self.state in ("waiting", "indexing") and self.total == 0
        return max(known, self.total - self.done, int(unseen))
