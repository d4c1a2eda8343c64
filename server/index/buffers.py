"""The open documents of one workspace folder: an index of their own, in memory, beside the one that knows the disk.

What an editor shows and has not saved is for nobody else to see, and is gone with the editor; so it is never written
into the index on disk. Embeddings are shared: a function that a buffer has as the disk has it is not embedded again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from ..parse import NotText, decode
from ..workspace.discover import too_large
from ..workspace.ignore import Ignores
from ..workspace.overlay import Buffer
from ..workspace.read import read_regular
from .embeddings import Embeddings, drop_unused
from .index import Index
from .paths import Paths
from .postings import Postings
from .prepare import Embeddable, digest_of
from .store import Store
from .vectors import VectorIndex, Vectors
from .workers import Workers

SPARE_EMBEDDINGS = 1_000
"""Embeddings kept of what was typed and changed again."""


@dataclass
class _Document:
    """One buffer, and how far it is known."""

    buffer: Buffer
    searchable: bool
    """Whether a file of this name and size would be indexed."""
    saved: bytes | None
    """The digest of the file if the buffer is what the file holds, None if it is not saved."""
    prepared: bool = False


class Buffers:
    """What a folder's open documents hold. Searched as an Index is (`store`, `vectors`, `bundle`), under `lock`."""

    def __init__(
        self,
        index: Index,
        workers: Workers,
        open_now: Callable[[], Mapping[str, Buffer]],
        stirred: Callable[[], int] = lambda: 0,
    ) -> None:
        """`open_now` tells the buffers by their files' paths, relative to the index's root with `/`. `stirred` is
        another number whenever files changed, ignore files maybe among them."""
        self.bundle = index.bundle
        self.store = Store.in_memory()
        self.embeddings = Embeddings(self.store, index.bundle)
        self.vectors = VectorIndex(self.store, index.folder, index.bundle, index.settings.threads)
        self.postings = Postings(self.store, index.folder)
        self.paths = Paths(self.store, self.embeddings, self.vectors, index.bundle.dim)
        self.lock = threading.RLock()
        self._index, self._workers, self._open_now, self._stirred = index, workers, open_now, stirred
        self._judged_at = stirred()
        self._documents: dict[str, _Document] = {}

    def close(self) -> None:
        """Forget everything."""
        self.store.close()

    def look(self) -> None:
        """See which documents hold what their files hold. To be called soon after one was opened or saved: when the
        file has gone nobody can tell any more."""
        with self.lock:
            now, stirred = self._open_now(), self._stirred()
            if stirred != self._judged_at:
                self._judge_again()
                self._judged_at = stirred
            for path in self._documents.keys() - now.keys():
                del self._documents[path]
                self._forget(path)
            for path, buffer in now.items():
                before = self._documents.get(path)
                if before is None or before.buffer is not buffer:
                    self._documents[path] = self._document(path, buffer)

    def follow(self) -> None:
        """Take up what was opened, typed, saved and closed. Raises ModelError."""
        with self.lock:
            self.look()
            for path in self._apart():
                document = self._documents[path]
                if not document.prepared:
                    self._prepare(path, document.buffer)
                    document.prepared = True
            self.vectors.follow()
            self.postings.follow()

    def speaking_for(self) -> frozenset[str]:
        """The files that these buffers know better than the index: what it has of them is not what the editor shows."""
        with self.lock:
            return frozenset(path for path in self._apart() if self._documents[path].prepared)

    def _apart(self) -> list[str]:
        """Files whose buffer is not what the index has."""
        known = dict(
            self._index.store.rows_in("SELECT path, digest FROM files WHERE path IN (?)", self._documents.keys())
        )
        return [
            path
            for path, document in self._documents.items()
            if document.searchable and document.saved != known.get(path, b"") and not self._is_gone(path, document)
        ]

    def _is_gone(self, path: str, document: _Document) -> bool:
        """Whether there is nothing to lose, and the file was deleted."""
        return document.saved is not None and not (self._index.root / path).exists()

    def _judge_again(self) -> None:
        """The rules may leave out others now."""
        ignores = self._ignores()
        for path, document in self._documents.items():
            searchable = self._is_searchable(path, document.buffer, ignores)
            if searchable != document.searchable:
                self._documents[path] = again = self._document(path, document.buffer)
                again.saved = again.saved or document.saved  # The file may be gone by now.
                self._forget(path)

    def _document(self, path: str, buffer: Buffer) -> _Document:
        if not self._is_searchable(path, buffer, self._ignores()):
            return _Document(buffer, False, None)
        try:
            data = read_regular(self._index.root / path)
            return _Document(buffer, True, digest_of(data) if decode(data) == buffer.text else None)
        except (OSError, NotText):
            return _Document(buffer, True, None)

    def _ignores(self) -> Ignores | None:
        """What is left out now; None if the workspace folder itself is gone."""
        try:
            return Ignores(self._index.root, self._index.settings)
        except OSError:
            return None

    def _is_searchable(self, path: str, buffer: Buffer, ignores: Ignores | None) -> bool:
        if ignores is None or ignores.is_ignored(path, is_dir=False):
            return False
        return not too_large(path, len(buffer.text.encode()), self._index.settings)

    def _prepare(self, path: str, buffer: Buffer) -> None:
        prepared = self._workers.prepare_text(path, buffer.text)
        vectors = self._vectors_of([*prepared.texts, prepared.path_text])
        with self.store.transaction():
            for key, value in vectors.items():
                self.embeddings.put(key, value)
            self.store.put(prepared.state, prepared.units)
            drop_unused(self.store, SPARE_EMBEDDINGS)

    def _forget(self, path: str) -> None:
        with self.store.transaction():
            for row in self.store.files_within([path]).values():
                self.store.remove(row.id)

    def _vectors_of(self, texts: list[Embeddable]) -> dict[bytes, Vectors]:
        """The vectors of those texts that are not here: from the index, or from the model."""
        wanted = {text.key: text for text in texts}
        for key in self.embeddings.known(wanted):
            del wanted[key]
        found = self._index.embeddings.of(wanted)
        unknown = [text for key, text in wanted.items() if key not in found]
        new = self._index.embedder.embed_code([(text.text, text.breaks) for text in unknown])
        return dict(chain(found.items(), zip((text.key for text in unknown), new, strict=True)))
