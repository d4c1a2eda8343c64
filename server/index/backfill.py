"""The vectors of a further model for what an index holds, computed a little at a time while nobody waits for them.

For a model that is going to answer, which cannot before it knows every unit, and for one that refines. What is done is
kept, whatever stops the rest. An index is brought up to date by `Index.update` alone: a file that has changed since
has its turn after that.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from filelock import FileLock, Timeout

from ..embed.pace import Pace
from ..workspace.discover import FoundFile
from .index import Index
from .low_priority import right_of_way
from .opening import writing
from .prepare import Embeddable, PreparedFile
from .vectors import Vectors
from .workers import Workers

LOCK = "backfill.lock"
"""Held by the one process that does this for an index."""

SLICE_SECONDS = 0.3
"""Of embedding, after which others have their turn."""

TEXTS_AT_ONCE = 40
"""Files are prepared together until they lack so many; then others may be asked for."""

PATIENCE = 1.0
"""Seconds to wait for who writes."""


class Backfill:
    """Fills one index, opened with the model whose vectors are wanted."""

    def __init__(
        self,
        index: Index,
        pace: Pace,
        workers: Workers,
        background: ThreadPoolExecutor,
        stopped: Callable[[], bool],
        asked: Callable[[], Iterable[str]] = tuple,
        rank: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """`pace` is of the index's embedder, which runs in the `background`. `asked` tells paths that somebody would
        have liked to have, which go first; the others go by `rank` of their path, then the latest changed first."""
        self._index, self._pace, self._workers, self._background = index, pace, workers, background
        self._stopped, self._asked, self._rank = stopped, asked, rank
        self._left: dict[str, int] = {}
        """Texts without a vector by file, the next one first."""

    @property
    def left(self) -> int:
        """Texts that have no vector yet."""
        return sum(self._left.values())

    def run(self, progress: Callable[[], None]) -> bool:
        """Compute what is missing until it is `stopped`; `progress` is called before each step. Returns whether nothing
        is missing now. If another process is at it, it is left to that one. Raises StoreError and ModelError."""
        try:
            with FileLock(self._index.folder / LOCK, timeout=0, mode=0o600):
                self._plan()
                while self._left and not self._stopped():
                    progress()
                    self._fill(self._next())
        except Timeout:
            pass
        self._left = self._index.embeddings.missing()
        return not self._left

    def _plan(self) -> None:
        missing = self._index.embeddings.missing()
        changed = {path: _changed_at(row.stamp) for path, row in self._index.store.files_within(missing).items()}
        order = sorted(missing, key=lambda path: (self._rank(path), -changed.get(path, 0)))
        self._left = {path: missing[path] for path in order}

    def _next(self) -> list[str]:
        """The files of the next step."""
        asked = [path for path in dict.fromkeys(self._asked()) if path in self._left]
        chosen: list[str] = []
        texts = 0
        for path in asked or self._left:
            chosen.append(path)
            texts += self._left[path]
            if texts >= TEXTS_AT_ONCE:
                break
        return chosen

    def _fill(self, paths: Sequence[str]) -> None:
        """Embed what these files lack; those that are not as they were indexed are passed over."""
        rows = self._index.store.files_within(paths)
        tasks = [(found, None) for path in paths if path in rows and (found := self._found(path))]
        for found, prepared in self._workers.prepare_all(self._index.root, tasks, self._stopped):
            if isinstance(prepared, PreparedFile) and prepared.state.digest == rows[found.path].digest:
                self._embed([*prepared.texts, prepared.path_text])
            if self._stopped():
                return
        for path in paths:
            self._left.pop(path, None)

    def _found(self, path: str) -> FoundFile | None:
        try:
            status = os.lstat(self._index.root / path)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return FoundFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def _embed(self, texts: Sequence[Embeddable]) -> None:
        wanted = {text.key: text for text in texts}
        for key in self._index.embeddings.known(wanted):
            del wanted[key]
        shared = self._index.shared
        self._store(found := shared.fetch(wanted))
        waiting = [text for key, text in wanted.items() if key not in found]
        while waiting and not self._stopped():
            right_of_way.give()
            some, begun = [(text.text, text.breaks) for text in waiting], time.perf_counter()
            vectors = self._background.submit(self._pace.embed_code, some, SLICE_SECONDS, 1).result()
            done, waiting = waiting[: len(vectors)], waiting[len(vectors) :]
            computed = {text.key: value for text, value in zip(done, vectors, strict=True)}
            shared.give(computed, time.perf_counter() - begun)
            self._store(computed)

    def _store(self, vectors: Mapping[bytes, Vectors]) -> None:
        while vectors and not self._stopped():
            with suppress(Timeout):  # whoever writes may do so for minutes
                with writing(self._index.folder, PATIENCE), self._index.store.transaction():
                    for key, value in vectors.items():
                        self._index.embeddings.put(key, value)
                return


def _changed_at(stamp: str) -> int:
    """A file's time of change in its stamp; the latest of all for one that had none to trust."""
    parts = stamp.split()
    return int(parts[1]) if len(parts) == 3 and parts[1].lstrip("-").isdecimal() else 1 << 62
