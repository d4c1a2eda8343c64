"""The model that the settings name, for all folders."""

from __future__ import annotations

import threading

from ..embed.bundle import Bundle, resolve_model
from ..embed.embedder import Embedder
from ..settings import Settings


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
