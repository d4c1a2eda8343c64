"""All workspace folders, and the one thread that keeps their indexes up to date.

A folder has two connections to its index: the indexing thread writes through one, searches read through the other,
so that a search never waits for a transaction.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path

from ..index.index import WHOLE, Index
from ..index.report import IndexReport, Progress
from ..index.workers import Workers
from ..settings import Settings
from ..workspace.ignore import Ignores
from ..workspace.overlay import Overlay
from ..workspace.watch import ChangeSet, Mode, Watcher
from .backfills import Backfills
from .convert import path_of
from .folder import EXPECTED, Folder
from .model import Models
from .progress import WORTH_SHOWING

PATIENCE = 0.2
"""Seconds to wait for another process that writes: an edit, which both of us saw, takes it less."""
FOLLOW_SECONDS = 1.0
"""How soon an index that another process was writing is looked at again: it may be done, or gone."""
RETRY_SECONDS = 5.0
"""How soon an update that failed is tried again: there may be room on the disk by then."""
REST = 10
"""Trying again and again rests so many times as long as it works."""

_LIGHT = frozenset({"limit", "org_index", "workspace_symbol"})
"""Settings on which nothing hangs that is open."""
_OF_MODELS = frozenset({"model", "refine_model", "refine_budget"})
"""Settings that change while what is there goes on."""

log = logging.getLogger(__name__)


@dataclass
class Job:
    """A wish that a folder's index be updated; cancelling `done` takes it back."""

    progress: Progress
    given_up: Callable[[], bool]
    """Whether the user, rather than the request, took it back."""
    done: Future[IndexReport] = field(default_factory=Future)

    def end(self, outcome: IndexReport | Exception) -> None:
        """Tell who waits."""
        with suppress(InvalidStateError):  # Taken back meanwhile.
            if isinstance(outcome, IndexReport):
                self.done.set_result(outcome)
            else:
                self.done.set_exception(outcome)


@dataclass
class _Wish:
    """What is to be done for a folder."""

    paths: set[str] = field(default_factory=set)
    """Where its files may have changed, as in a ChangeSet."""
    jobs: list[Job] = field(default_factory=list)
    """Who waits for it."""
    own: bool = False
    """Whether it is ours, too, so that no request can take it back."""

    @property
    def small(self) -> bool:
        """Whether it is an edit or the like, which goes before the work that takes time."""
        return not self.jobs and "" not in self.paths

    def join(self, other: _Wish) -> None:
        """Fulfil both together."""
        self.paths |= other.paths
        self.jobs += other.jobs
        self.own |= other.own


class Folders:
    """All workspace folders. Every public method returns at once."""

    def __init__(
        self,
        settings: Settings,
        overlay: Overlay,
        changed: Callable[[Folder], None],
        background: Callable[[Folder], Job],
    ) -> None:
        """`overlay` holds the open documents. `changed` hears, in another thread, that a folder's index or state
        changed; `background` makes the job of an update that no request asked for."""
        self.settings = settings
        self.models = Models.of(settings)
        self._overlay, self._told, self._background = overlay, changed, background
        self._workers = Workers(settings.threads)
        self._backfills = Backfills(lambda: self, self._workers, changed, self.update)
        self._folders: dict[str, Folder] = {}
        self._watchers: dict[Folder, Watcher] = {}
        self._wishes: dict[Folder, _Wish] = {}
        self._retries: dict[Folder, tuple[float, _Wish]] = {}
        """What is tried again, and when."""
        self._stirred = threading.Condition()
        self._closed = False
        self._writers: dict[Folder, Index] = {}
        """The indexing thread's."""
        self._thread = threading.Thread(target=self._work, name="meaning-index", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Folder]:
        return iter(tuple(self._folders.values()))

    def set(self, uris: Iterable[str]) -> None:
        """The folders are these now. One that is not on this file system is left out; one whose name leads to another
        place now, for there is a link in it, is another folder."""
        wanted = {uri: path for uri in uris if not self._closed and (path := _root_of(uri))}
        for uri in [uri for uri, folder in self._folders.items() if folder.path != wanted.get(uri)]:
            gone = self._folders.pop(uri)
            gone.retire()
            self._watchers.pop(gone).close(patience=0)
            self.update(gone)  # Which no longer can be, and so closes the connection that the thread has.
        for uri, path in wanted.items():
            if uri not in self._folders:
                folder = Folder(
                    uri, path, self.settings, self.models, self._overlay, self._workers, self.update, self.changed
                )
                self._folders[uri] = folder
                self._watchers[folder] = self._watch(folder)

    def _watch(self, folder: Folder) -> Watcher:
        """Have the folder updated now, and whenever its files change."""

        def changed(changes: ChangeSet) -> None:
            folder.watched = True
            if not folder.retired:
                self._wish(folder, _Wish({*changes.paths}, own=True))

        def mode_changed(mode: Mode, reason: str | None) -> None:
            folder.watch, folder.unwatched = mode, reason
            self._told(folder)

        return Watcher(folder.path, self.settings, changed, mode_changed)

    def configure(self, settings: Settings) -> None:
        """Take up changed settings. Folders are opened anew where they depend on them; another model takes over when it
        can."""
        before, self.settings = self.settings, settings
        changed = {each.name for each in fields(settings) if getattr(settings, each.name) != getattr(before, each.name)}
        if not changed <= _LIGHT | _OF_MODELS:
            uris = tuple(self._folders)
            self.set(())
            self.models = Models.of(settings)
            self.set(uris)
        elif changed & _OF_MODELS:
            known = [self.models.answering, *filter(None, [self.models.refining]), *(each.answering for each in self)]
            self.models = Models.of(settings, known)
            for folder in self:
                folder.switch(self.models, settings)
                self.update(folder)
            self._backfills.stir()  # to tell what is not wanted any more, even where no update succeeds

    def named(self, uri: str) -> Folder | None:
        """The folder with this URI, however it is spelled."""
        path = _root_of(uri)
        return next((folder for folder in self if folder.path == path), None)

    def holding(self, path: Path) -> Folder | None:
        """The innermost folder that holds a path."""
        holders = [folder for folder in self if folder.relative(path) is not None]
        return max(holders, key=lambda folder: len(folder.path.parts), default=None)

    def changed(self, folder: Folder, path: str) -> None:
        """A file or a folder (relative, with `/`) may have changed: have it looked at soon."""
        above = path.rpartition("/")[0]
        self._wish(folder, _Wish({above if Ignores.depends_on(path) else path}, own=True))

    def update(self, folder: Folder, job: Job | None = None) -> None:
        """Have all of the folder looked at soon. Wishes that come while one is waiting are fulfilled together."""
        self._wish(folder, _Wish({*WHOLE}, [job] if job else [], own=job is None))

    def _wish(self, folder: Folder, wish: _Wish) -> None:
        with self._stirred:
            folder.stirred += 1
            self._wishes.setdefault(folder, _Wish()).join(wish)
            self._stirred.notify()

    def close(self, patience: float) -> None:
        """Stop indexing and close every index; waits for each thread up to `patience` seconds."""
        with self._stirred:
            self._closed = True
            self._stirred.notify()
        watchers = tuple(self._watchers.values())
        self.set(())
        self._thread.join(patience)
        self._backfills.close(patience)
        for watcher in watchers:
            watcher.close(patience)
        self._workers.close()

    # -- the indexing thread

    def _work(self) -> None:
        while wanted := self._next():
            self._fulfil(*wanted)
            for gone in [each for each in self._writers if each.retired]:
                self._writers.pop(gone).close()
        for index in self._writers.values():
            index.close()

    def _next(self) -> tuple[Folder, _Wish] | None:
        """Waits for the next folder to update; None when there will be no more."""
        with self._stirred:
            while not self._closed:
                now = time.monotonic()
                for folder in [folder for folder, (due, _) in self._retries.items() if due <= now]:
                    self._wishes.setdefault(folder, _Wish())
                waiting = [folder for folder in self._wishes if folder.watched or folder.retired]
                if waiting:
                    first = min(waiting, key=lambda folder: not self._wishes[folder].small)
                    return first, self._take(first)
                first_due = min((due for due, _ in self._retries.values()), default=None)
                self._stirred.wait(None if first_due is None else first_due - now)
        return None

    def _take(self, folder: Folder) -> _Wish:
        wish = self._wishes.pop(folder)
        if folder in self._retries:
            wish.join(self._retries.pop(folder)[1])
        return wish

    def _take_small(self, running: Folder) -> Collection[str]:
        """In the midst of a folder's update: the edits of other folders are taken up, those of this one returned."""
        while True:
            with self._stirred:
                small = [each for each, wish in self._wishes.items() if wish.small and each not in self._retries]
                if running in small:
                    return self._take(running).paths
                other = next((each for each in small if each.state == "ready" and not each.retired), None)
                if other is None:
                    return ()
                wish = self._take(other)
            self._fulfil(other, wish, alone=False)

    def _fulfil(self, folder: Folder, wish: _Wish, alone: bool = True) -> None:
        """Update the folder. If not `alone`, another folder's update waits for this one."""
        jobs = [*wish.jobs, *([self._background(folder)] if wish.own else [])]

        def cancelled() -> bool:
            return self._closed or folder.retired or all(job.done.cancelled() or job.given_up() for job in jobs)

        worked = threading.Event()

        def progress(done: int, total: int) -> None:
            worked.set()
            folder.done, folder.total = done, total
            if total >= WORTH_SHOWING:
                # What is left after the last file is to put the vectors in order, which is nothing to wait for.
                self._set_state(folder, "indexing" if done < total else "ready")
                folder.follow()
            for job in jobs:
                job.progress(done, total)

        if cancelled():
            for job in jobs:
                job.done.cancel()
            return
        if folder.state == "waiting":
            self._set_state(folder, "indexing")
        start = time.monotonic()
        urgent = (lambda: self._take_small(folder)) if alone else tuple
        outcome = self._outcome(folder, wish.paths, progress, cancelled, urgent)
        took = time.monotonic() - start
        folder.done = folder.total = 0
        if isinstance(outcome, IndexReport):
            self._is_ready(folder, outcome, news=worked.is_set())
            if outcome.pending and not cancelled():  # Another process writes; its work is ours, too.
                self._retry(folder, wish, max(FOLLOW_SECONDS, REST * took))
                jobs = jobs[len(wish.jobs) :]
        else:
            self._set_state(folder, "failed", str(outcome) or type(outcome).__name__)
            self._retry(folder, _Wish(wish.paths, own=True), max(RETRY_SECONDS, REST * took))
        for job in jobs:
            job.end(outcome)

    def _is_ready(self, folder: Folder, report: IndexReport, news: bool) -> None:
        totals = (report.files, report.units, report.pending)
        self._set_state(folder, "ready", news=news or totals != folder.totals)
        folder.totals = totals
        self._backfills.stir()

    def _set_state(self, folder: Folder, state: str, problem: str | None = None, news: bool = False) -> None:
        """Tell of it if it is news, and be it for another reason."""
        if news or (state, problem) != (folder.state, folder.problem):
            folder.state, folder.problem = state, problem
            self._told(folder)

    def _retry(self, folder: Folder, wish: _Wish, seconds: float) -> None:
        with self._stirred:
            self._retries[folder] = (time.monotonic() + seconds, wish)

    def _writer(self, folder: Folder) -> Index:
        """The indexing thread's connection, with the model that answers now."""
        index = self._writers.get(folder)
        if index and index.bundle.fingerprint != folder.answering.bundle().fingerprint:
            self._writers.pop(folder).close()
            index = None
        index = self._writers[folder] = index or folder.open()
        return index

    def _outcome(
        self,
        folder: Folder,
        paths: Collection[str],
        progress: Progress,
        cancelled: Callable[[], bool],
        urgent: Callable[[], Collection[str]],
    ) -> IndexReport | Exception:
        """Update the index, through a connection that stays open for the next time unless it failed."""
        try:
            folder.check_there()
            index = self._writer(folder)
            store = index.store
            report = index.update(progress, cancelled, self._workers, PATIENCE, paths, urgent)
            if index.store is not store:  # It was damaged, and is another file now.
                folder.reopen()
            folder.problems = index.problems
        except Exception as error:  # Whatever it is, the other folders and the searches go on.
            if str(error) != folder.problem:
                log.warning("%s: not indexed: %s", folder.path, error, exc_info=not isinstance(error, EXPECTED))
            if broken := self._writers.pop(folder, None):
                broken.close()
            folder.reopen()  # Connections share what SQLite knows of a file: that its disk was read-only, too.
            return error
        if report.embedded or report.removed:
            log.info("%s: %s", folder.path, report)
        return report


def _root_of(uri: str) -> Path | None:
    """The folder of a URI, links resolved, as the index and the documents know it."""
    path = path_of(uri)
    return path and Path(os.path.realpath(path))
