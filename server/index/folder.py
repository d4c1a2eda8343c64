"""Where the index of a workspace lies: one folder in the user's cache, its owner's alone."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from .store import DATABASE, StoreError

DAMAGED_SUFFIX = ".damaged"
LOCK = "writer.lock"


def index_folder(cache_dir: Path, root: Path) -> Path:
    """The folder for the workspace at `root` (absolute, links resolved): its name for people, and a hash."""
    digest = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return cache_dir / f"{root.name or 'root'}-{digest}"


def make_index_folder(folder: Path) -> None:
    """Create the folder (0700) unless it is there. Raises StoreError with what is in the way."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot create the index folder ({error.strerror}); choose another by --cache-dir"
        ) from None


def set_aside(folder: Path) -> Path:
    """Move a damaged database out of the way (nothing is deleted) and return its new name."""
    aside = folder / f"{DATABASE}{DAMAGED_SUFFIX}-{time.time_ns()}"
    try:
        (folder / DATABASE).rename(aside)
        for extra in ("-wal", "-shm"):
            (folder / f"{DATABASE}{extra}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{folder / DATABASE}: damaged, and cannot be moved away ({error.strerror})") from None
    return aside
