"""The index of one workspace, kept true: compare the tree with the database, apply what changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

from filelock import FileLock, Timeout

from ..embed.bundle import Bundle
from ..embed.embedder import Embedder
from ..settings import Settings
from ..workspace.discover import FoundFile, discover
from .database import DamagedStore, StoreError
from .folder import LOCK, index_folder, make_index_folder, set_aside
from .memory import give_back
from .prepare import Embeddable, PreparedFile, Unreadable
from .report import IndexReport, Progress
from .stamp import seen_stamp, stamp_of
from .store import FileRow, Store
from .vectors import VectorIndex, Vectors
from .version import units_version
from .workers import Outcome, prepare_all

BATCH_UNITS = 2_000
"""Units of one transaction: what a kill can cost, and about what one write takes 0.2 s for."""

OPEN_PATIENCE = 5.0
"""Seconds that an index waits to be opened while another process may be mending it."""

SPARE_EMBEDDINGS = 50_000
"""Embeddings that are kept though nothing uses them now: 25 MB at 256 numbers each."""

KEPT_PROBLEMS = 20
"""Troubles that `status` remembers."""


@dataclass(frozen=True)
class Status:
    """What `status` tells."""

    root: str
    index: str
    files: int
    units: int
    pending: int
    model: str
    problems: tuple[str, ...]
    """What was wrong lately: damage, unreadable files, a disk that refuses. The newest last."""


@dataclass
class _Plan:
    """What the tree has that the database has not."""

    changed: list[tuple[FoundFile, FileRow | None]] = field(default_factory=list)
    removed: list[FileRow] = field(default_factory=list)
    renewed: set[str] = field(default_factory=set)
    """Paths whose units get new ids, since vectors of the model come to them only now."""

    @property
    def size(self) -> int:
        return len(self.changed) + len(self.removed)

    @cached_property
    def known(self) -> dict[str, FileRow]:
        """The changed files that the database has already, by path."""
        return {row.path: row for _, row in self.changed if row}


class Index:
    """One workspace's files, units, full text and vectors. `open` makes one."""

    def __init__(self, root: Path, folder: Path, store: Store, bundle: Bundle, settings: Settings) -> None:
        self.root, self.folder, self.store, self.bundle, self.settings = root, folder, store, bundle, settings
        self.vectors = VectorIndex(store, folder, bundle.id, bundle.dim, settings.threads)
        self._problems: dict[str, None] = {}

    @classmethod
    def open(cls, root: Path, bundle: Bundle, settings: Settings, embedder: Embedder | None = None) -> Index:
        """The index of the folder `root`, empty if there was none. A damaged database is set aside and begun anew.

        `embedder` may be shared between indexes; without one it is made when it is first needed. Raises StoreError.
        """
        root = root.resolve()
        folder = index_folder(settings.cache_dir.absolute(), root)
        make_index_folder(folder)
        store, problem = _open_or_begin_anew(folder)
        index = cls(root, folder, store, bundle, settings)
        if embedder is not None:
            index.embedder = embedder
        if problem:
            index._note(problem)
        return index

    @cached_property
    def embedder(self) -> Embedder:
        """The model, loaded when it is first needed. Raises ModelError."""
        return Embedder(self.bundle, self.settings.threads)

    def close(self) -> None:
        """Give back the database; a closed index answers nothing any more."""
        self.store.close()

    # -- reading

    def status(self) -> Status:
        """Totals and troubles."""
        totals = self.store.totals()
        problems = [*self._problems, *([self.vectors.problem] if self.vectors.problem else [])]
        return Status(
            str(self.root),
            str(self.folder),
            totals.files,
            totals.units,
            self.pending(),
            self.bundle.id,
            tuple(problems),
        )

    def pending(self) -> int:
        """Files known to have changed that are not taken up yet."""
        known = self.store.meta("pending") or "0"
        if not known.isdecimal():
            raise self.store.damaged(f"{known!r} files are pending")
        return int(known)

    # -- writing

    def update(
        self,
        progress: Progress = lambda *_: None,
        cancelled: Callable[[], bool] = lambda: False,
        workers: int = 1,
        patience: float = 0,
    ) -> IndexReport:
        """Make the index equal to the tree on disk.

        Written in batches; what a batch has written stays when the rest is cancelled or killed, and the next update
        goes on from there. While another process writes, waits up to `patience` seconds, then leaves the work to
        it. Raises StoreError when the disk refuses, ModelError when the model cannot run.
        """
        start = time.monotonic()
        if reason := self.store.read_only:
            raise StoreError(f"{self.folder}: cannot write the index ({reason}); choose another folder by --cache-dir")
        make_index_folder(self.folder)  # the user may have emptied the cache
        try:
            with _writing(self.folder, patience):
                embedded, removed = self._update(progress, cancelled, workers)
        except Timeout:
            return self._report(start, 0, 0, self._plan().size)
        return self._report(start, embedded, removed, self.pending())

    def _update(self, progress: Progress, cancelled: Callable[[], bool], workers: int) -> tuple[int, int]:
        if self.store.replaced():
            self._reopen()
        try:
            if self.store.distrusted:
                raise self.store.damaged("damage was found in it")
            self._forget_old_units()
            return self._apply(self._plan(), progress, cancelled, workers)
        except DamagedStore as error:
            self.store.close()
            self._note(_begun_anew(error, set_aside(self.folder)))
            self._reopen()
            self._forget_old_units()
            return self._apply(self._plan(), progress, cancelled, workers)

    def _forget_old_units(self) -> None:
        """Units that another version of the parser made are made again; their embeddings wait for equal texts."""
        if self.store.meta("units version") != units_version():
            with self.store.transaction():
                self.store.remove_all()
                self.store.set_meta("units version", units_version())

    def _reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.folder)
        self.vectors = VectorIndex(self.store, self.folder, self.bundle.id, self.bundle.dim, self.settings.threads)

    def _plan(self) -> _Plan:
        """Compare stamps; no file's content is read."""
        known = self.store.files()
        plan = _Plan(renewed=self.store.stale_files(self.bundle.id))
        for found in discover(self.root, self.settings, self._passed_over):
            row = known.pop(found.path, None)
            fresh = row and row.stamp == seen_stamp(found)
            if not fresh or found.path in plan.renewed:
                plan.changed.append((found, row))
        plan.removed = list(known.values())
        return plan

    def _apply(self, plan: _Plan, progress: Progress, cancelled: Callable[[], bool], workers: int) -> tuple[int, int]:
        total, done, embedded = plan.size, len(plan.removed), 0
        if total:
            progress(0, total)
        if plan.removed:
            with self.store.transaction():
                for row in plan.removed:
                    self.store.remove(row.id)
                self.store.set_meta("pending", str(total - done))
        tasks = [(found, row.digest if row and found.path not in plan.renewed else None) for found, row in plan.changed]
        for batch in _batches(prepare_all(self.root, tasks, workers, cancelled)):
            done += len(batch)
            embedded += self._write(batch, plan, total - done)
            progress(done, total)
        if done == total:
            self._settle(embedded)
        return embedded, len(plan.removed)

    def _write(self, batch: Sequence[Outcome], plan: _Plan, pending: int) -> int:
        """One transaction: the batch's files with their vectors. Returns the number of code embeddings computed."""
        prepared = [outcome for _, outcome in batch if isinstance(outcome, PreparedFile)]
        code = self._embed(list(chain.from_iterable(file.texts for file in prepared)))
        paths = self._embed([file.path_text for file in prepared if file.units])
        known = plan.known
        with self.store.transaction():
            for key, vectors in chain(code.items(), paths.items()):
                self.store.put_embedding(self.bundle.id, key, vectors)
            for found, outcome in batch:
                row = known.get(found.path)
                if row and (isinstance(outcome, Unreadable) or found.path in plan.renewed):
                    self.store.remove(row.id)
                if isinstance(outcome, PreparedFile):
                    self.store.put(outcome.state, outcome.units)
                elif isinstance(outcome, Unreadable):
                    self._note(f"{self.root / found.path}: not read ({outcome.reason})")
                elif row:
                    self.store.touch(row.id, stamp_of(found))
            self.store.set_meta("pending", str(pending))
        return len(code)

    def _embed(self, texts: Sequence[Embeddable]) -> dict[bytes, Vectors]:
        """The vectors of those texts whose vectors are not known, each text once."""
        wanted = {text.key: text for text in texts}
        for key in self.store.embedded(self.bundle.id, wanted):
            del wanted[key]
        if not wanted:
            return {}
        vectors = self.embedder.embed_code([(text.text, text.breaks) for text in wanted.values()])
        return dict(zip(wanted, vectors, strict=True))

    def _settle(self, embedded: int) -> None:
        """The tree is taken up in whole: say so, drop what is too old, and let the vectors follow."""
        if self.pending():  # left by an update that was killed, of files that are gone since
            with self.store.transaction():
                self.store.set_meta("pending", "0")
        if embedded:
            with self.store.transaction():
                self.store.drop_embeddings(SPARE_EMBEDDINGS)
        try:
            self.vectors.compact()
        except (OSError, RuntimeError, StoreError) as error:  # usearch tells a full disk by RuntimeError
            self._note(f"{self.folder}: the vectors stay in memory ({error})")
        if embedded >= BATCH_UNITS:
            give_back()

    def _report(self, start: float, embedded: int, removed: int, pending: int) -> IndexReport:
        totals = self.store.totals()
        seconds = round(time.monotonic() - start, 3)
        return IndexReport(totals.files, totals.units, embedded, totals.units - embedded, removed, seconds, pending)

    # -- troubles

    def _passed_over(self, path: str, error: OSError) -> None:
        self._note(f"{self.root / path}: not read ({error.strerror or error})")

    def _note(self, problem: str) -> None:
        self._problems.pop(problem, None)
        self._problems[problem] = None
        while len(self._problems) > KEPT_PROBLEMS:
            del self._problems[next(iter(self._problems))]


@contextmanager
def _writing(folder: Path, patience: float) -> Iterator[None]:
    """The one process that writes. Raises Timeout while another one is, StoreError if nobody can."""
    lock = FileLock(folder / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise
    except OSError as error:
        raise StoreError(f"{folder}: cannot write the index ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()


def _open_or_begin_anew(folder: Path) -> tuple[Store, str | None]:
    """The folder's store, and what was wrong with the database that stood there if it was damaged."""
    try:
        return Store.open(folder), None
    except DamagedStore as damage:
        first = damage
    try:
        with _writing(folder, OPEN_PATIENCE):
            try:
                return Store.open(folder), None  # another process was faster
            except DamagedStore as error:
                return _begin_anew(folder, error)
    except Timeout:
        raise StoreError(f"{first}; another process has the folder, try again") from None


def _begin_anew(folder: Path, error: DamagedStore) -> tuple[Store, str]:
    problem = _begun_anew(error, set_aside(folder))
    return Store.open(folder), problem


def _begun_anew(error: DamagedStore, aside: Path) -> str:
    return f"{error}; kept as {aside.name}, the index is built anew"


def _batches(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    batch: list[Outcome] = []
    units = 0
    for outcome in outcomes:
        batch.append(outcome)
        units += 1 + (len(outcome[1].units) if isinstance(outcome[1], PreparedFile) else 0)
        if units >= BATCH_UNITS:
            yield batch
            batch, units = [], 0
    if batch:
        yield batch
