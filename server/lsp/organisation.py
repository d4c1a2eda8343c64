"""The organisation's index, as a session uses it: in a thread of its own, so that a slow or dead server costs searches
of the workspace nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from ..org.connect import OrgError
from ..org.names import default_name
from ..org.publish import PUBLISHED_AS
from ..org.searcher import OrgAnswer, OrgHit, OrgSearcher
from ..search.answer import Query
from ..settings import Settings
from .convert import Converter
from .folder import EXPECTED, Folder
from .model import Model
from .protocol import OrgItem

SCHEME = "meaning-org"
"""Of the URI of a file that is in no folder here: `meaning-org://owner%2Fproject/path`."""


class Organisation:
    """One connection, made when it is first asked. Thread safe."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` hears what is wrong in the index."""
        self.threads = ThreadPoolExecutor(1, "meaning-org")
        self._tell = tell
        self._lock = threading.Lock()
        self._searcher: OrgSearcher | None = None

    def close(self) -> None:
        """No more questions; one that is being answered is not waited for."""
        self.threads.shutdown(wait=False, cancel_futures=True)

    def search(
        self,
        query: Query,
        settings: Settings,
        model: Model,
        folders: Iterable[Folder],
        cancelled: Callable[[], bool],
    ) -> OrgAnswer:
        """The best hits of all; those in `folders` as they are there. Raises OrgError, ModelError, Cancelled."""
        by_name = {name: folder.path for folder in folders for name in _names(folder)}
        return self._opened(settings, model).search(query, cancelled, by_name)

    def _opened(self, settings: Settings, model: Model) -> OrgSearcher:
        """The searcher of these settings. Raises OrgError, ModelError."""
        if not settings.org_index:
            raise OrgError(
                "no organisation's index is named: give its URL by the setting `meaning.orgIndex` or MEANING_ORG_INDEX"
            )
        embedder = model.embedder()
        with self._lock:
            known = self._searcher
            if known is None or known.url != settings.org_index or known.embedder is not embedder:
                if known:
                    known.close()
                known = self._searcher = OrgSearcher(settings.org_index, embedder, self._tell)
            return known


def _names(folder: Folder) -> list[str]:
    """What a folder may be called in the organisation's index: as it was published from here, or would be."""
    names = [default_name(folder.path)]
    with suppress(*EXPECTED), folder.reading() as searcher:
        if name := searcher.index.store.meta(PUBLISHED_AS):
            names.append(name)
    return names


def item(found: OrgHit, folders: Iterable[Folder], encoding: str | None) -> OrgItem:
    """A hit as an item of `meaning/search`: in the client's own file if there is one."""
    folder = next((each for each in folders if each.path == found.root), None)
    name = found.hit.repository
    uri = folder.uri if folder else f"{SCHEME}://{quote(name, safe='')}"
    converter = Converter(uri, folder.path if folder else Path(), encoding)
    return {**converter.item(found.hit), "repository": name}
