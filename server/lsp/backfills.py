"""The thread that computes vectors of models beside the one that answers: of the one that is going to, and of the one
that refines.

It works while a folder has nothing else to do, at low priority, and what it has done stays.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from weakref import WeakKeyDictionary

from ..embed.bundle import ModelError
from ..index.backfill import Backfill
from ..index.database import DamagedStore
from ..index.index import Index
from ..index.low_priority import low_priority_thread
from ..index.workers import Workers
from ..search.path_signals import by_the_way
from .folder import EXPECTED, Folder
from .model import Model

AGAIN_SECONDS = 60.0
"""How soon what could not be done is tried again: another process may be at it, or a file was changing."""

QUIET_SECONDS = 0.5
"""Without news, before it begins."""

TELL_SECONDS = 2.0
"""How often is told how far it is."""

log = logging.getLogger(__name__)


class Backfills:
    """One thread for all folders. Every public method returns at once, but for `close`."""

    def __init__(
        self,
        folders: Callable[[], Iterable[Folder]],
        workers: Workers,
        told: Callable[[Folder], None],
        update: Callable[[Folder], None],
    ) -> None:
        """`told` hears that a folder's status changed, and `update` that all of a folder is to be looked at: it has
        another model now, or is damaged."""
        self._folders, self._workers, self._told, self._update = folders, workers, told, update
        self._stirred = threading.Condition()
        self._news = self._closed = False
        self._last_told: WeakKeyDictionary[Folder, tuple[tuple[str, int] | None, str | None]] = WeakKeyDictionary()
        """What was told last of a folder."""
        self._background = low_priority_thread()
        self._thread = threading.Thread(target=self._work, name="meaning-backfill", daemon=True)
        self._thread.start()

    def stir(self) -> None:
        """A folder is up to date, or its models changed: there may be something to do."""
        with self._stirred:
            self._news = True
            self._stirred.notify()

    def close(self, patience: float) -> None:
        """Stop, and wait up to `patience` seconds for it."""
        with self._stirred:
            self._closed = True
            self._stirred.notify()
        self._thread.join(patience)
        self._background.shutdown(wait=False, cancel_futures=True)

    def _work(self) -> None:
        left = False
        while self._next(left):
            left = False
            for folder in self._folders():
                left = not self._serve(folder) or left
                self._tell_news(folder)

    def _next(self, left: bool) -> bool:
        """Waits until there may be something to do; False when there will not be any more."""
        with self._stirred:
            self._stirred.wait_for(lambda: self._news or self._closed, AGAIN_SECONDS if left else None)
            while self._news and not self._closed:  # until it is quiet: what is missing is looked for in all the index
                self._news = False
                self._stirred.wait(QUIET_SECONDS)
            return not self._closed

    def _serve(self, folder: Folder) -> bool:
        """Do what there is to do for a folder; False if something is left that nobody would stir for."""
        done = True
        for model in folder.further_models():
            if self._stopped(folder):
                return True  # it stirs when it is ready again
            if model.problem:  # it would be the same again, until the settings name another
                continue
            try:
                complete = self._fill(folder, model)
            except ModelError as error:
                model.problem = f"the model {model.name} is not used: {error}"
                continue
            except DamagedStore:
                self._update(folder)  # which builds the index anew
                return True
            except EXPECTED as error:
                complete = False
                folder.troubles[model] = f"{model.name}: its vectors are not complete: {error}"
            except Exception:  # Whatever it is, searches and updates go on.
                log.exception("%s: no vectors of %s", folder.path, model.name)
                complete = False
            if complete and folder.take_over(model):
                self._told(folder)
                self._update(folder)
            done = done and complete
        return done

    def _stopped(self, folder: Folder) -> bool:
        return self._closed or folder.retired or folder.state != "ready"

    def _fill(self, folder: Folder, model: Model) -> bool:
        """Whether nothing is missing now."""
        bundle = model.bundle()
        # Threads of its arithmetic have the priority of the one that makes them.
        embedder = self._background.submit(model.embedder).result()
        told_at = 0.0

        def progress() -> None:
            nonlocal told_at
            folder.lacking[model] = backfill.left
            if time.monotonic() - told_at >= TELL_SECONDS:
                self._tell_news(folder)
                told_at = time.monotonic()

        def stopped() -> bool:
            return self._stopped(folder) or model not in folder.further_models()

        with closing(Index.open(folder.path, bundle, folder.settings, embedder)) as index:
            index.embeddings.note_use(answers=False)
            backfill = Backfill(
                index, model.pace(), self._workers, self._background, stopped, folder.missed.copy, by_the_way
            )
            complete = backfill.run(progress)
            folder.troubles.pop(model, None)
            folder.lacking[model] = backfill.left
        return complete

    def _tell_news(self, folder: Folder) -> None:
        """Tell how far a folder's further models are, and what is wrong with them, if that is news."""
        news = folder.backfill, folder.model_problem
        before, self._last_told[folder] = self._last_told.get(folder, (None, None)), news
        if news == before:
            return
        if news[1] and news[1] != before[1]:
            log.warning("%s: %s", folder.path, news[1])
        self._told(folder)
