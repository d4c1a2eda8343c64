"""`meaning-lsp search --scope org`: what many workspaces published, searched at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..org.searcher import OrgSearcher
from ..settings import Settings
from ..terminal import UsageError, note


@contextmanager
def org_searcher(settings: Settings) -> Iterator[OrgSearcher]:
    """A searcher of the organisation's index. Raises UsageError, ModelError."""
    from ..embed.embedder import Embedder
    from .workspace import bundle_of

    if not settings.org_index:
        raise UsageError("--scope org: name the organisation's index by MEANING_ORG_INDEX=postgresql://host/database")
    embedder = Embedder(bundle_of(settings.model), settings.threads, settings.device)
    searcher = OrgSearcher(settings.org_index, embedder, note)
    try:
        yield searcher
    finally:
        searcher.close()
