"""Who may write an index, and what is done with a database that is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .database import DamagedStore, OutdatedStore, StoreError
from .folder import LOCK, set_aside
from .store import Store

OPEN_PATIENCE = 5.0
"""Seconds that an index waits to be opened while another process may be mending it."""


@contextmanager
def writing(folder: Path, patience: float) -> Iterator[None]:
    """The one process that writes. Raises Timeout while another one is, StoreError if nobody can."""
    lock = FileLock(folder / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise
    except OSError as error:
        raise StoreError(f"{folder}: cannot write the index ({error.strerror})") from None
    try:
        yield
    finally:
        lock.release()


def open_or_begin_anew(folder: Path) -> tuple[Store, str | None]:
    """The folder's store, and what was wrong with the database that stood there if it was damaged."""
    try:
        return Store.open(folder), None
    except DamagedStore as damage:
        first = damage
    try:
        with writing(folder, OPEN_PATIENCE):
            try:
                return Store.open(folder), None  # another process was faster
            except DamagedStore as error:
                return _begin_anew(folder, error)
    except Timeout:
        raise StoreError(f"{first}; another process has the folder, try again") from None


def _begin_anew(folder: Path, error: DamagedStore) -> tuple[Store, str | None]:
    aside = set_aside(folder)
    if isinstance(error, OutdatedStore):
        aside.unlink(missing_ok=True)
        return Store.open(folder), None
    return Store.open(folder), begun_anew(error, aside)


def begun_anew(error: DamagedStore, aside: Path) -> str:
    """What to tell of it."""
    return f"{error}; kept as {aside.name}, the index is built anew"
