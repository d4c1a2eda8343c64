"""The index of one workspace, kept true: compare the tree with the database, apply what changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, starmap
from pathlib import Path

from filelock import Timeout

from ..embed.bundle import Bundle, ModelError
from ..embed.embedder import Embedder
from ..settings import Settings
from ..shared.cache import SharedCache
from ..workspace.discover import discover
from .database import DamagedStore, StoreError
from .embeddings import Embeddings, drop_unused, last_to_answer
from .folder import index_folder, make_index_folder, set_aside
from .low_priority import right_of_way
from .memory import give_back
from .opening import begun_anew, open_or_begin_anew, writing
from .paths import Paths
from .plan import BATCH_UNITS, Plan, Run, among, batches
from .postings import Postings
from .prepare import Embeddable, PreparedFile, Unreadable
from .report import IndexReport, Progress
from .stamp import seen_stamp, stamp_of
from .store import FileRow, Store
from .vectors import VectorIndex, Vectors
from .version import units_version
from .workers import Outcome, Task, Workers, prepare_here

WHOLE = ("",)
"""Where everything may have changed: in the workspace folder."""

SPARE_EMBEDDINGS = 50_000
"""Embeddings that are kept though nothing uses them now: 25 MB at 256 numbers each."""

SWEPT_AT = 1_000
"""Embeddings that small updates compute until unused ones are looked for."""

EMBED_TEXTS = 250
"""Texts that are embedded at once: with more of one length there is less padding, with fewer a search waits less."""

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


class Index:
    """One workspace's files, units, full text and vectors. `open` makes one."""

    def __init__(self, root: Path, folder: Path, store: Store, bundle: Bundle, settings: Settings) -> None:
        self.root, self.folder, self.store, self.bundle, self.settings = root, folder, store, bundle, settings
        self.embeddings = Embeddings(store, bundle)
        self.vectors = VectorIndex(store, folder, bundle, settings.threads)
        self.postings = Postings(store, folder)
        self.paths = Paths(store, self.embeddings, self.vectors, bundle.dim)
        self.shared = SharedCache(settings.shared_cache, bundle)
        self._problems: dict[str, str] = {}
        """By what they are about: a file's path, or a part of the index."""
        self._complete = False
        """Whether all of the tree was taken up since the database was opened, so that changes can follow it."""
        self._verified = False
        """Whether all that is stored was looked at, which takes seconds and so is done once, where others wait for
        nothing; what an answer takes is looked at each time."""
        self._left = 0
        """Files that the running update has still to take up."""
        self._unswept = 0
        """Embeddings computed since unused ones were dropped."""

    @classmethod
    def open(cls, root: Path, bundle: Bundle, settings: Settings, embedder: Embedder | None = None) -> Index:
        """The index of the folder `root`, empty if there was none. A damaged database is set aside and begun anew.

        `embedder` may be shared between indexes; without one it is made when it is first needed. Raises StoreError.
        """
        root = root.resolve()
        folder = index_folder(settings.cache_dir.absolute(), root)
        make_index_folder(folder)
        store, problem = open_or_begin_anew(folder)
        index = cls(root, folder, store, bundle, settings)
        if embedder is not None:
            index.embedder = embedder
        if problem:
            index._note("database", problem)
        return index

    @cached_property
    def embedder(self) -> Embedder:
        """The model, loaded when it is first needed. Raises ModelError."""
        return Embedder(self.bundle, self.settings.threads, self.settings.device)

    def close(self) -> None:
        """Give back the database; a closed index answers nothing any more."""
        self.store.close()

    # -- reading

    def earlier_model(self) -> Path | None:
        """The bundle of the model that answered before this one, if that is still there and lacks less of what is
        indexed: it can answer in the meantime."""
        earlier = last_to_answer(self.store)
        lacking = len(self.embeddings.missing())
        if earlier is None or earlier[0] == self.bundle.fingerprint or not lacking:
            return None
        with suppress(ModelError):
            bundle = Bundle.load(earlier[1])
            if bundle.fingerprint == earlier[0] and len(Embeddings(self.store, bundle).missing()) < lacking:
                return earlier[1]
        return None

    def status(self) -> Status:
        """Totals and troubles."""
        totals = self.store.totals()
        problems = dict.fromkeys(starmap(self._of_file, self.store.problems(KEPT_PROBLEMS)))
        return Status(
            str(self.root),
            str(self.folder),
            totals.files,
            totals.units,
            self.pending(),
            self.bundle.id,
            tuple(problems | dict.fromkeys(self.problems)),
        )

    @property
    def problems(self) -> list[str]:
        """What was wrong since the index was opened, the newest last."""
        return [
            *self._problems.values(),
            *filter(None, (self.vectors.problem, self.postings.problem, self.shared.problem)),
        ]

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
        workers: Workers | None = None,
        patience: float = 0,
        within: Collection[str] = WHOLE,
        urgent: Callable[[], Collection[str]] | None = None,
    ) -> IndexReport:
        """Make the index equal to the tree on disk, where nothing but `within` (as in a ChangeSet) has changed since
        the last update.

        Written in batches; what a batch has written stays when the rest is cancelled or killed, and the next update
        goes on from there. Between batches `urgent` may tell of further changes, which go first; without it, the
        update is all that this process is for. While another process writes, waits up to `patience` seconds, then
        leaves the work to it. Files are prepared in this process if there are no `workers`. Raises StoreError when
        the disk refuses, ModelError when the model cannot run.
        """
        start = time.monotonic()
        if reason := self.store.read_only:
            raise StoreError(f"{self.folder}: cannot write the index ({reason}); choose another folder by --cache-dir")
        make_index_folder(self.folder)  # the user may have emptied the cache
        run = Run(workers, cancelled, urgent)
        try:
            with writing(self.folder, patience):
                self._left = 0
                self._update(within, run, progress)
        except Timeout:
            return self._report(start, run, self._plan(within if self._complete else WHOLE).size)
        if urgent is None:
            self.shared.flush()
        return self._report(start, run, self.pending())

    def _update(self, within: Collection[str], run: Run, progress: Progress) -> None:
        if self.store.replaced():
            self._reopen()
        try:
            if self.store.distrusted:
                raise self.store.damaged("damage was found in it")
            self._take_up(within, run, progress)
        except DamagedStore as error:
            self.store.close()
            self._note("database", begun_anew(error, set_aside(self.folder)))
            self._reopen()
            self._take_up(WHOLE, run, progress)

    def _take_up(self, within: Collection[str], run: Run, progress: Progress) -> None:
        """Plan and apply. All of the tree, if it is not known that the rest was taken up before."""
        if not self._complete or self.pending():
            within = WHOLE
        self._apply(self._plan(within), run, progress)
        if not self._left:
            self._complete = self._complete or "" in within
            self._settle(run, whole="" in within)

    def _reopen(self) -> None:
        self.store.close()
        self._complete = False
        self.store = Store.open(self.folder)
        self.embeddings = Embeddings(self.store, self.bundle)
        self.vectors = VectorIndex(self.store, self.folder, self.bundle, self.settings.threads)
        self.postings = Postings(self.store, self.folder)
        self.paths = Paths(self.store, self.embeddings, self.vectors, self.bundle.dim)

    def _plan(self, within: Collection[str]) -> Plan:
        """Compare stamps; no file's content is read."""
        known = self.store.files() if "" in within else self.store.files_within(within)
        plan = Plan(renewed={*self.embeddings.missing(within)}, whole="" in within)
        for found in discover(self.root, self.settings, self._passed_over, within):
            row = known.pop(found.path, None)
            fresh = row and row.stamp == seen_stamp(found) and row.maker == units_version()
            if not fresh or found.path in plan.renewed:
                plan.changed.append((found, row))
        plan.removed = list(known.values())
        return plan

    def _apply(self, plan: Plan, run: Run, progress: Progress) -> None:
        total, done, before = plan.size, 0, len(run.attended)
        self._left += total
        if total:
            progress(0, total)
        if plan.removed:
            self._remove(plan.removed)
            done = len(plan.removed)
            run.removed += done
        outcomes = self._prepared(plan.tasks, run)
        if plan.new and not self.settings.shared_cache:  # which may know all that is new
            with suppress(ModelError):  # told when it is needed
                _ = self.embedder  # which takes as long to be there as the first outcome
        for batch in batches(outcomes):
            done += len(batch)
            # What was urgent meanwhile was read later than this: it stands.
            latest = [each for each in batch if not among(each[0].path, run.attended[before:])]
            self._left -= len(batch) - len(latest)
            self._write(latest, plan, run)
            progress(done, total)
            if done < total:
                self._attend(run)

    def _attend(self, run: Run) -> None:
        """Between two steps of what takes time: searches, and what is urgent."""
        right_of_way.give()
        if run.urgent and not run.cancelled() and (paths := run.urgent()):
            run.attended.append(paths)
            self._apply(self._plan(paths), run, lambda *_: None)

    def _prepared(self, tasks: Sequence[Task], run: Run) -> Iterator[Outcome]:
        if run.workers:
            return run.workers.prepare_all(self.root, tasks, run.cancelled)
        return prepare_here(self.root, tasks, run.cancelled)

    def _remove(self, rows: Sequence[FileRow]) -> None:
        self._left -= len(rows)
        with self.store.transaction():
            for row in rows:
                self.store.remove(row.id)
                self._problems.pop(row.path, None)
            self.store.set_meta("pending", str(self._left))

    def _write(self, batch: Sequence[Outcome], plan: Plan, run: Run) -> None:
        """One transaction: the batch's files with their vectors."""
        prepared = [outcome for _, outcome in batch if isinstance(outcome, PreparedFile)]
        code, fetched = self._embed(list(chain.from_iterable(file.texts for file in prepared)), not plan.edited)
        paths, _ = self._embed([file.path_text for file in prepared if file.units], not plan.edited)
        run.embedded += len(code) - fetched
        run.fetched += fetched
        known = plan.known
        self._left -= len(batch)
        with self.store.transaction():
            for key, vectors in right_of_way.given(chain(code.items(), paths.items()), every=20):
                self.embeddings.put(key, vectors)
            for found, outcome in right_of_way.given(batch):
                row = known.get(found.path)
                if row and (isinstance(outcome, Unreadable) or found.path in plan.renewed):
                    self.store.remove(row.id)
                self._problems.pop(found.path, None)
                if isinstance(outcome, PreparedFile):
                    self.store.put(outcome.state, outcome.units)
                    if outcome.state.problem:
                        self._note_file(found.path, outcome.state.problem)
                elif isinstance(outcome, Unreadable):
                    self._note_file(found.path, f"not read ({outcome.reason})")
                elif row:
                    self.store.touch(row.id, stamp_of(found))
            self.store.set_meta("pending", str(self._left))

    def _embed(self, wanting: Sequence[Embeddable], ask: bool) -> tuple[dict[bytes, Vectors], int]:
        """The vectors of those texts whose vectors are not known, each text once, and how many of them came from the
        shared cache, if that is to be asked."""
        wanted = {text.key: text for text in wanting}
        for key in self.embeddings.known(wanted):
            del wanted[key]
        found = self.shared.fetch(wanted) if ask else {}
        fetched = len(found)
        texts = [text for key, text in wanted.items() if key not in found]
        for start in right_of_way.given(range(0, len(texts), EMBED_TEXTS)):
            found.update(self._computed(texts[start : start + EMBED_TEXTS]))
        return found, fetched

    def _computed(self, texts: Sequence[Embeddable]) -> dict[bytes, Vectors]:
        """The model's vectors; the shared cache has them, too, then."""
        embedder, begun = self.embedder, time.perf_counter()
        vectors = embedder.embed_code([(text.text, text.breaks) for text in texts])
        computed = {text.key: value for text, value in zip(texts, vectors, strict=True)}
        self.shared.give(computed, time.perf_counter() - begun)
        return computed

    def _settle(self, run: Run, whole: bool) -> None:
        """All is taken up: say so, drop what is too old, and let the vectors follow."""
        if self.pending():  # left by an update that was killed, of files that are gone since
            with self.store.transaction():
                self.store.set_meta("pending", "0")
        self._unswept += run.embedded
        if self._unswept >= SWEPT_AT or (run.embedded and whole):
            with self.store.transaction():
                drop_unused(self.store, SPARE_EMBEDDINGS)
            self._unswept = 0
        self.embeddings.note_use(answers=True)
        between = (lambda: self._attend(run)) if run.urgent else None
        for name, derived in (("vectors", self.vectors), ("full text", self.postings)):
            self._problems.pop(name, None)
            try:
                derived.compact(between)
            except (OSError, RuntimeError, StoreError) as error:  # usearch tells a full disk by RuntimeError
                self._note(name, f"{self.folder}: the {name} stays in memory ({error})")
        if run.urgent and not self._verified:
            self.store.verify(lambda: self._attend(run))
            self._verified = True
        if run.embedded >= BATCH_UNITS:
            give_back()

    def _report(self, start: float, run: Run, pending: int) -> IndexReport:
        totals = self.store.totals()
        reused = max(0, totals.units - run.embedded - run.fetched)
        seconds = round(time.monotonic() - start, 3)
        return IndexReport(totals.files, totals.units, run.embedded, reused, run.removed, seconds, pending, run.fetched)

    # -- troubles

    def _passed_over(self, path: str, error: OSError) -> None:
        self._note_file(path, f"not read ({error.strerror or error})")

    def _note_file(self, path: str, problem: str) -> None:
        self._note(path, self._of_file(path, problem))

    def _of_file(self, path: str, problem: str) -> str:
        return f"{self.root / path}: {problem}"

    def _note(self, subject: str, problem: str) -> None:
        self._problems.pop(subject, None)
        self._problems[subject] = problem
        while len(self._problems) > KEPT_PROBLEMS:
            del self._problems[next(iter(self._problems))]
