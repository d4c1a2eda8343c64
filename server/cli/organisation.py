"""`meaning-lsp search --scope org`: what many workspaces published, searched at once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from ..org.searcher import OrgSearcher
from ..settings import Settings
from ..terminal import UsageError, note


@contextmanager
def org_searcher(settings: Settings, options: argparse.Namespace) -> Iterator[OrgSearcher]:
    """A searcher of the organisation's index. Raises UsageError, ModelError."""
    from ..embed.embedder import Embedder
    from .workspace import bundle_of

    if not settings.org_index:
        raise UsageError("--scope org: name the organisation's index by MEANING_ORG_INDEX=postgresql://host/database")
    if options.open:
        raise UsageError("--open is for files that are here: not with --scope org")
    embedder = Embedder(bundle_of(settings.model), settings.threads, settings.device)
    searcher = OrgSearcher(settings.org_index, embedder, note)
    try:
        yield searcher
    finally:
        searcher.close()
