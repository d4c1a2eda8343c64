"""One workspace folder, as requests see it: where it stands, and a way to search in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..embed.bundle import ModelError
from ..index.buffers import Buffers
from ..index.database import DamagedStore, StoreError
from ..index.index import Index
from ..index.workers import Workers
from ..search.refine import Refiner
from ..search.searcher import Searcher
from ..settings import Settings
from ..workspace.overlay import Overlay
from ..workspace.watch import Mode
from .model import Model, Models

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
        models: Models,
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
        self.lacking: dict[Model, int] = {}
        """How many texts have no vector yet, of further models that are not complete."""
        self.troubles: dict[Model, str] = {}
        """What keeps a further model's vectors from being complete, here and for now."""
        self.missed: list[str] = []
        """Files of which the latest search found candidates that the refining model has no vector of."""
        self.settings = settings
        self._overlay, self._workers = overlay, workers
        self._models = models
        self._stand_in: Model | None = None
        """Answers until the model of the settings has a vector for everything."""
        self._opened = False
        self._lost, self._stale = lost, stale
        self._lock = threading.Lock()
        self._reader: _Reader | None = None
        self._dropped = 0
        """How often readers were told to connect anew."""

    @contextmanager
    def reading(self) -> Iterator[Searcher]:
        """A searcher, valid inside of the block. Raises ModelError, StoreError or OSError."""
        self._let_go()
        reader = self._taken()
        while reader is None:
            dropped = self._dropped
            reader = self._taken(_Reader(self._searcher()), dropped)
        try:
            yield reader.searcher
        finally:
            with self._lock:
                reader.users -= 1
                if not reader.users and (self.retired or reader is not self._reader):
                    reader.searcher.close()
                    self._reader = None if reader is self._reader else self._reader

    def _taken(self, new: _Reader | None = None, dropped: int = 0) -> _Reader | None:
        """The reader for one more search: the one that is there, else `new`, unless readers were `dropped` while it
        was opened: it may know another model. (One is opened outside of the lock, which the event loop takes as well: a
        damaged or busy disk may keep it for long.)"""
        with self._lock:
            reader = self._reader = self._reader or (new if dropped == self._dropped else None)
            if reader:
                reader.users += 1
        if new and reader is not new:
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
        return Searcher(index, buffers, refiner=self._refiner(index), stale=self._met_stale)

    def _refiner(self, index: Index) -> Refiner | None:
        if (model := self._models.refining) is None:
            return None
        seconds = self.settings.refine_budget / 1000
        return Refiner(index, lambda: model.loaded, seconds, self._unsaved, self._note_missed)

    def _unsaved(self, path: str) -> str | None:
        buffer = self._overlay.below(self.path).get(path)
        return buffer.text if buffer else None

    def _note_missed(self, paths: Sequence[str]) -> None:
        self.missed = [*paths]

    def _met_stale(self, path: str) -> None:
        if self.state == "ready":  # else somebody is at it
            self._stale(self, path)

    def open(self) -> Index:
        """A new connection to the folder's index. Raises ModelError, StoreError or OSError."""
        self.check_there()
        while True:
            model = self.answering
            index = Index.open(self.path, model.bundle(), self.settings, model.embedder())
            try:
                self._look_for_stand_in(index)
            except BaseException:
                index.close()
                raise
            if model is self.answering:
                return index
            index.close()

    def check_there(self) -> None:
        """Raises NotADirectoryError if the folder is gone."""
        if not self.path.is_dir():
            raise NotADirectoryError(f"{self.path}: no such folder")

    def _look_for_stand_in(self, index: Index) -> None:
        """When the folder is opened first: whether the model that answered before can do so until this one can."""
        if self._opened:
            return
        stand_in = None
        with suppress(DamagedStore, ModelError):  # The next update builds what is damaged anew.
            if earlier := index.earlier_model():
                earlier_one = Model(str(earlier), self.settings)
                earlier_one.embedder()
                stand_in = earlier_one
        with self._lock:
            if not self._opened:
                self._opened, self._stand_in = True, stand_in

    # -- models

    @property
    def answering(self) -> Model:
        """The model that answers now."""
        return self._stand_in or self._models.answering

    def further_models(self) -> list[Model]:
        """The models whose vectors are wanted beside those of the one that answers, the more urgent first."""
        with self._lock:
            next_one = [self._models.answering] if self._stand_in else []
            return next_one + ([self._models.refining] if self._models.refining else [])

    @property
    def backfill(self) -> tuple[str, int] | None:
        """A wanted model whose vectors are being computed: its id, and how many texts have none yet."""
        for model in self.further_models():
            left = self.lacking.get(model)
            if left and not model.problem:
                return model.bundle().id, left
        return None

    @property
    def model_problem(self) -> str | None:
        """Why a wanted model is not used, or not yet."""
        problems = (model.problem or self.troubles.get(model) for model in self.further_models())
        return next(filter(None, problems), None)

    def switch(self, models: Models, settings: Settings) -> None:
        """The settings name others now. What answers goes on until the new one can, if there is something to answer
        from."""
        with self._lock:
            before, self._models, self.settings = self.answering, models, settings
            keeps = self.state in ("ready", "indexing") and before.name != models.answering.name
            self._stand_in = before if keeps else None
            self.lacking, self.troubles = {}, {}
            self._drop_reader()

    def take_over(self, model: Model) -> bool:
        """Let a model answer that can now; False if it is not the next one to."""
        with self._lock:
            if not self._stand_in or model is not self._models.answering:
                return False
            self._stand_in = None
            self._drop_reader()
            return True

    def reopen(self) -> None:
        """Let later searches connect anew; those that run keep what they have."""
        with self._lock:
            self._drop_reader()

    def _drop_reader(self) -> None:
        self._dropped += 1
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
