"""The workspace folders: each one's index, and the one thread that keeps all of them up to date.

A folder has two connections to its index: the indexing thread writes through one, searches read through the other,
so that a search never waits for a transaction.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..embed.bundle import Bundle, ModelError, resolve_model
from ..embed.embedder import Embedder
from ..index.database import StoreError
from ..index.index import Index
from ..index.report import IndexReport, Progress
from ..search.searcher import Searcher
from ..settings import Settings
from ..workspace.watch import ChangeSet, Mode, Watcher
from .convert import path_of

RETRY_SECONDS = 5.0
"""How soon an index that another process was writing is looked at again: it may be done, or gone."""

EXPECTED = (ModelError, StoreError, OSError)
"""What can go wrong without a fault of ours; the message tells the user all."""

log = logging.getLogger(__name__)


class Model:
    """The model of the settings, loaded when it is first needed and then shared by all folders."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._bundle: Bundle | None = None
        self._embedder: Embedder | None = None

    def bundle(self) -> Bundle:
        """The bundle, checked once. Raises ModelError."""
        with self._lock:
            if self._bundle is None:
                self._bundle = Bundle.load(resolve_model(self._settings.model))
            return self._bundle

    def embedder(self) -> Embedder:
        """The embedder. Raises ModelError."""
        bundle = self.bundle()
        with self._lock:
            if self._embedder is None:
                self._embedder = Embedder(bundle, self._settings.threads)
            return self._embedder


@dataclass
class Job:
    """A wish that a folder's index be updated; cancelling `done` takes it back."""

    progress: Progress
    given_up: Callable[[], bool]
    """Whether the user, rather than the request, took it back."""
    done: Future[IndexReport] = field(default_factory=Future)


@dataclass(eq=False)
class _Reader:
    """A searcher with a connection of its own, and how many searches use it now."""

    searcher: Searcher
    users: int = 0

    def close(self) -> None:
        self.searcher.index.close()


class Folder:
    """One workspace folder. Searches share it with the indexing thread."""

    def __init__(self, uri: str, path: Path, settings: Settings, model: Model) -> None:
        self.uri, self.path = uri, path
        self.state = "waiting"
        """`waiting`, `indexing`, `ready` or `failed`."""
        self.problem: str | None = None
        self.done = self.total = 0
        """Files of the update that runs."""
        self.retired = False
        """Whether the folder left the workspace, or its settings changed."""
        self.watched = False
        """Whether changes are seen from now on. An update that begins before would have to be done again."""
        self.watch: Mode = "watching"
        self.unwatched: str | None = None
        """Why not all changes of its files are seen as they happen."""
        self._settings, self._model = settings, model
        self._lock = threading.Lock()
        self._reader: _Reader | None = None

    @contextmanager
    def reading(self) -> Iterator[Searcher]:
        """A searcher, valid inside of the block. Raises ModelError, StoreError or OSError."""
        with self._lock:
            if self._reader and self._reader.searcher.index.store.replaced():  # another process built it anew
                self._drop_reader()
            reader = self._reader = self._reader or _Reader(Searcher(self.open()))
            reader.users += 1
        try:
            yield reader.searcher
        finally:
            with self._lock:
                reader.users -= 1
                if not reader.users and (self.retired or reader is not self._reader):
                    reader.close()
                    self._reader = None if reader is self._reader else self._reader

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
            reader.close()

    def retire(self) -> None:
        """Stop the folder's update, and close its index when nobody uses it any more."""
        self.retired = True
        self.reopen()

    def pending(self, known: int) -> int:
        """Files that are still to be taken up: `known` to the index, or at least one while nobody has looked."""
        unseen = self.state in ("waiting", "indexing") and self.total == 0
        return max(known, self.total - self.done, int(unseen))


class Folders:
    """All workspace folders. Every public method returns at once."""

    def __init__(
        self, settings: Settings, changed: Callable[[Folder], None], background: Callable[[Folder], Job]
    ) -> None:
        """`changed` hears, in another thread, that a folder's index or state changed; `background` makes the job
        of an update that no request asked for."""
        self.settings = settings
        self.model = Model(settings)
        self._told, self._background = changed, background
        self._folders: dict[str, Folder] = {}
        self._watchers: dict[Folder, Watcher] = {}
        self._jobs: dict[Folder, list[Job]] = {}
        self._retries: dict[Folder, float] = {}
        self._stirred = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="meaning-index", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Folder]:
        return iter(tuple(self._folders.values()))

    def set(self, uris: Iterable[str]) -> None:
        """The folders are these now. One that is not on this file system is left out."""
        wanted = {uri: path for uri in uris if not self._closed and (path := path_of(uri))}
        for uri in self._folders.keys() - wanted.keys():
            gone = self._folders.pop(uri)
            gone.retire()
            self._watchers.pop(gone).close(patience=0)
            self.update(gone)  # Which no longer can be, and so closes the connection that the thread has.
        for uri, path in wanted.items():
            if uri not in self._folders:
                folder = self._folders[uri] = Folder(uri, path, self.settings, self.model)
                self._watchers[folder] = self._watch(folder)

    def _watch(self, folder: Folder) -> Watcher:
        """Have the folder updated now, and whenever its files change."""

        def changed(_: ChangeSet) -> None:
            folder.watched = True
            if not folder.retired:
                self.update(folder)

        def mode_changed(mode: Mode, reason: str | None) -> None:
            folder.watch, folder.unwatched = mode, reason
            self._told(folder)

        return Watcher(folder.path, self.settings, changed, mode_changed)

    def configure(self, settings: Settings) -> None:
        """Take up changed settings; the model and the folders are opened anew where they depend on them."""
        if settings == replace(self.settings, limit=settings.limit, workspace_symbol=settings.workspace_symbol):
            self.settings = settings
            return
        uris = tuple(self._folders)
        self.set(())
        self.settings = settings
        self.model = Model(settings)
        self.set(uris)

    def named(self, uri: str) -> Folder | None:
        """The folder with this URI, however it is spelled."""
        path = path_of(uri)
        return next((folder for folder in self if folder.path == path), None)

    def holding(self, path: Path) -> Folder | None:
        """The innermost folder that holds a path."""
        holders = [folder for folder in self if path.is_relative_to(folder.path)]
        return max(holders, key=lambda folder: len(folder.path.parts), default=None)

    def update(self, folder: Folder, job: Job | None = None) -> None:
        """Have the folder's index updated soon. Wishes that come while one is waiting are fulfilled together."""
        with self._stirred:
            if job is not None or folder not in self._jobs:
                self._jobs.setdefault(folder, []).append(job or self._background(folder))
            self._stirred.notify()

    def close(self, patience: float) -> None:
        """Stop indexing and close every index; waits for each thread up to `patience` seconds."""
        with self._stirred:
            self._closed = True
            self._stirred.notify()
        watchers = tuple(self._watchers.values())
        self.set(())
        self._thread.join(patience)
        for watcher in watchers:
            watcher.close(patience)

    # -- the indexing thread

    def _work(self) -> None:
        writers: dict[Folder, Index] = {}
        while wanted := self._next():
            self._update(*wanted, writers)
            for gone in [each for each in writers if each.retired]:
                writers.pop(gone).close()
        for index in writers.values():
            index.close()

    def _next(self) -> tuple[Folder, list[Job]] | None:
        """Waits for the next folder to update; None when there will be no more."""
        with self._stirred:
            while not self._closed:
                now = time.monotonic()
                for folder in [folder for folder, due in self._retries.items() if due <= now]:
                    del self._retries[folder]
                    self._jobs.setdefault(folder, [self._background(folder)])
                if first := next((folder for folder in self._jobs if folder.watched or folder.retired), None):
                    self._retries.pop(first, None)
                    return first, self._jobs.pop(first)
                self._stirred.wait(min(self._retries.values()) - now if self._retries else None)
        return None

    def _update(self, folder: Folder, jobs: list[Job], writers: dict[Folder, Index]) -> None:
        def cancelled() -> bool:
            return self._closed or folder.retired or all(job.done.cancelled() or job.given_up() for job in jobs)

        def progress(done: int, total: int) -> None:
            folder.done, folder.total = done, total
            for job in jobs:
                job.progress(done, total)

        if cancelled():
            for job in jobs:
                job.done.cancel()
            return
        folder.state = "indexing"
        self._told(folder)
        outcome = self._outcome(folder, writers, progress, cancelled)
        folder.done = folder.total = 0
        if isinstance(outcome, IndexReport):
            folder.state, folder.problem = "ready", None
            if outcome.pending and not cancelled():
                with self._stirred:
                    self._retries[folder] = time.monotonic() + RETRY_SECONDS
        else:
            folder.state, folder.problem = "failed", str(outcome) or type(outcome).__name__
        self._told(folder)
        for job in jobs:
            with suppress(InvalidStateError):  # Taken back meanwhile.
                if isinstance(outcome, IndexReport):
                    job.done.set_result(outcome)
                else:
                    job.done.set_exception(outcome)

    def _outcome(
        self, folder: Folder, writers: dict[Folder, Index], progress: Progress, cancelled: Callable[[], bool]
    ) -> IndexReport | Exception:
        """Update the index, through a connection that stays open for the next time unless it failed."""
        try:
            index = writers[folder] = writers.get(folder) or folder.open()
            store = index.store
            report = index.update(progress, cancelled, workers=self.settings.threads)
            if index.store is not store:  # It was damaged, and is another file now.
                folder.reopen()
        except Exception as error:  # Whatever it is, the other folders and the searches go on.
            log.warning("%s: not indexed: %s", folder.path, error, exc_info=not isinstance(error, EXPECTED))
            if broken := writers.pop(folder, None):
                broken.close()
            return error
        if report.embedded or report.removed:
            log.info("%s: %s", folder.path, report)
        return report
