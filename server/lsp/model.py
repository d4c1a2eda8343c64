"""The models that the settings name, for all folders."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ..embed.bundle import Bundle, resolve_model
from ..embed.embedder import Embedder
from ..embed.pace import Pace
from ..settings import Settings


class Model:
    """A model, loaded when it is first needed and then shared by all folders."""

    def __init__(self, name: str, settings: Settings) -> None:
        """`name` as a setting has it: see `resolve_model`."""
        self.name = name
        self.problem: str | None = None
        """Why it cannot be used beside the one that answers."""
        self._settings = settings
        self._lock = threading.Lock()
        self._bundle: Bundle | None = None
        self._embedder: Embedder | None = None
        self._pace: Pace | None = None

    def bundle(self) -> Bundle:
        """The bundle, checked once. Raises ModelError."""
        with self._lock:
            if self._bundle is None:
                self._bundle = Bundle.load(resolve_model(self.name))
            return self._bundle

    def embedder(self) -> Embedder:
        """The embedder. Raises ModelError."""
        bundle = self.bundle()
        with self._lock:
            if self._embedder is None:
                self._embedder = Embedder(bundle, self._settings.threads, self._settings.device)
            return self._embedder

    def pace(self) -> Pace:
        """The embedder, with what is known of its speed. Raises ModelError."""
        embedder = self.embedder()
        with self._lock:
            self._pace = self._pace or Pace(embedder)
            return self._pace

    @property
    def loaded(self) -> Pace | None:
        """The same if it is there already: for who cannot wait for a large model."""
        return self._pace


@dataclass(frozen=True)
class Models:
    """What the settings ask for."""

    answering: Model
    refining: Model | None

    @classmethod
    def of(cls, settings: Settings, known: Iterable[Model] = ()) -> Models:
        """Those among the `known` are taken, which may be loaded already, but for what could not be used: it may have
        been repaired. Others are not loaded yet."""
        by_name = {model.name: model for model in known if not model.problem}
        answering = by_name.get(settings.model) or Model(settings.model, settings)
        if settings.refine_model in ("", settings.model):
            return cls(answering, None)
        return cls(answering, by_name.get(settings.refine_model) or Model(settings.refine_model, settings))
