"""Unsaved buffers: what an editor shows, which is newer than what the disk has."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A document as an editor shows it. Another text (or another save) is another Buffer."""

    text: str


class Overlay:
    """The documents that an editor has open, by absolute path. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffers: dict[str, Buffer] = {}

    def put(self, path: Path, text: str) -> None:
        """A document was opened, changed or saved. It is a new Buffer even if the text is the same: after a save, the
        disk is another."""
        with self._lock:
            self._buffers[path.as_posix()] = Buffer(text)

    def drop(self, path: Path) -> None:
        """A document was closed: the disk says what the file holds."""
        with self._lock:
            self._buffers.pop(path.as_posix(), None)

    def below(self, folder: Path) -> dict[str, Buffer]:
        """The buffers of the files in `folder`, at any depth, by path relative to it with `/`."""
        prefix = folder.as_posix().rstrip("/") + "/"
        with self._lock:
            return {path[len(prefix) :]: each for path, each in self._buffers.items() if path.startswith(prefix)}
