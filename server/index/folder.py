"""Where the index of a workspace lies: one folder in the user's cache, its owner's alone."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from .database import DATABASE, StoreError, making
from .store import DISTRUSTED

DAMAGED = f"{DATABASE}.damaged"
LOCK = "writer.lock"

_NAME_BYTES = 100
"""Of a workspace's name that its index folder's begins with: file systems take 255 for the whole."""

_CACHE_TAG = "CACHEDIR.TAG"
_CACHE_TAG_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# The index of meaning-lsp: can be deleted at any time, and is made again. See https://bford.info/cachedir/
"""


def index_folder(cache_dir: Path, root: Path) -> Path:
    """The folder for the workspace at `root` (absolute, links resolved): its name for people, and a hash."""
    digest = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    name = os.fsencode(root.name)[:_NAME_BYTES].decode("utf-8", "ignore")
    return cache_dir / f"{name or 'root'}-{digest}"


def is_indexed(cache_dir: Path, root: Path) -> bool:
    """Whether there is an index of that workspace, however old."""
    with suppress(OSError):  # told by whoever makes it
        return (index_folder(cache_dir, root) / DATABASE).exists()
    return False


def make_index_folder(folder: Path) -> None:
    """Create the folder (0700) unless it is there. Raises StoreError with what is in the way.

    It is marked as a cache: backups pass over it, and so do we, should it lie in a workspace.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot create the index folder ({error.strerror}); choose another by --cache-dir"
        ) from None
    with suppress(OSError):
        if not (folder / _CACHE_TAG).exists():
            (folder / _CACHE_TAG).write_text(_CACHE_TAG_TEXT)
            (folder / _CACHE_TAG).chmod(0o600)


def set_aside(folder: Path) -> Path:
    """Move a damaged database out of the way, in place of an earlier one, and return its new name."""
    aside = folder / DAMAGED
    try:
        with making(folder):
            with suppress(FileNotFoundError):  # somebody empties the cache just now
                (folder / DATABASE).replace(aside)
            for extra in (f"{DATABASE}-wal", f"{DATABASE}-shm", DISTRUSTED):
                (folder / extra).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{folder / DATABASE}: damaged, and cannot be moved away ({error.strerror})") from None
    return aside
