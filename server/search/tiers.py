"""The second tier that the settings name, for who works on one folder alone (the command line, an agent's server)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from ..embed.bundle import Bundle, resolve_model
from ..embed.embedder import Embedder
from ..embed.pace import Pace
from ..index.backfill import Backfill
from ..index.index import Index
from ..index.workers import Workers
from .path_signals import by_the_way
from .refine import Refiner


def refiner_of(index: Index) -> Refiner | None:
    """The refiner of an index, its model loaded; None if the settings name none. Raises ModelError."""
    bundle = refining_bundle(index)
    if bundle is None:
        return None
    settings = index.settings
    pace = Pace(Embedder(bundle, settings.threads, settings.device))
    return Refiner(index, lambda: pace, settings.refine_budget / 1000)


def fill(index: Index, workers: Workers, progress: Callable[[int, int], None]) -> int:
    """Compute what the refining model's vectors lack, and tell how many texts are left: another process is at it, or
    files were changing. `progress` hears texts done and all of them. Raises ModelError and StoreError."""
    bundle = refining_bundle(index)
    if bundle is None:
        return 0
    settings = index.settings
    embedder = Embedder(bundle, settings.threads, settings.device)
    with ThreadPoolExecutor(1) as here, closing(Index.open(index.root, bundle, settings, embedder)) as refining:
        refining.embeddings.note_use(answers=False)
        total = sum(refining.embeddings.missing().values())
        backfill = Backfill(refining, Pace(embedder), workers, here, stopped=lambda: False, rank=by_the_way)
        backfill.run(lambda: progress(total - backfill.left, total))
        refining.shared.flush()
        progress(total, total)
        return backfill.left


def refining_bundle(index: Index) -> Bundle | None:
    """The second tier's bundle, checked; None if there is to be none. Raises ModelError."""
    settings = index.settings
    if settings.refine_model in ("", settings.model):
        return None
    return Bundle.load(resolve_model(settings.refine_model))
