"""The database file: its tables, and how it is opened, made, or refused."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from filelock import FileLock

APPLICATION_ID = 0x4D4C5350
"""Stands in the database's header (SQLite's `application_id`): "MLSP"."""

SCHEMA_VERSION = 5
"""SQLite's `user_version`; raised when a table changes its meaning."""

DATABASE = "index.sqlite"
MAKING = "making.lock"

CACHE_KIB = 16_384
"""Of pages, read again and again by searches in a large index; SQLite's own 2 MB are read anew by each."""

_CACHE = f"PRAGMA cache_size = -{CACHE_KIB}"
"""It reads the database, so that one which is damaged refuses it."""

PATIENCE = 30.0
"""Seconds that a statement waits for another process that writes."""

OPEN_PATIENCE = 5.0
"""Seconds that one is waited for who makes the database."""

_SCHEMA = """
-- Every `sum` is a checksum of the rest of the row that matters to an answer: see `server.index.sums`.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, digest BLOB NOT NULL,
    maker TEXT NOT NULL, language TEXT NOT NULL, skipped TEXT NOT NULL, problem TEXT NOT NULL,
    path_key BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE INDEX files_problem ON files (path) WHERE problem != '';
CREATE TABLE units (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, key BLOB NOT NULL,
    name TEXT NOT NULL, container TEXT NOT NULL, kind TEXT NOT NULL, start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL, name_line INTEGER NOT NULL, name_start INTEGER NOT NULL, name_end INTEGER NOT NULL,
    head TEXT NOT NULL, preview TEXT NOT NULL, terms_sum INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE INDEX units_file ON units (file);
CREATE INDEX units_key ON units (key);
CREATE INDEX units_name ON units (name COLLATE NOCASE);
-- Full text: see `server.index.words`. Terms of units that are gone stay for who counts them, until a new main file.
CREATE TABLE terms (unit INTEGER PRIMARY KEY, terms BLOB NOT NULL);
CREATE TABLE gone (id INTEGER PRIMARY KEY AUTOINCREMENT, unit INTEGER NOT NULL, terms BLOB NOT NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, key BLOB NOT NULL, vectors BLOB NOT NULL,
    sum INTEGER NOT NULL, UNIQUE (model, key));
"""


class StoreError(Exception):
    """The index cannot be opened or written: one line that says where, why, and what to do."""


class DamagedStore(StoreError):
    """The file is not a sound database."""


class OutdatedStore(DamagedStore):
    """The file is a database of an earlier form, of no use to this version or a later one."""


def connect(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """A connection to the database at `path`, which is made if need be, and why it can only read if that is so.

    Raises StoreError for a database that is not for us, DamagedStore for one that has to be built anew, and SQLite's
    own errors.
    """
    writable = os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK)
    if not writable and path.exists():
        return _connect_read_only(path), "it is read-only"
    try:
        return _connect_for_writing(path), None
    except sqlite3.OperationalError as error:
        # A read-only mount (or a full disk) shows only when SQLite writes its header or its shared memory.
        if path.exists() and path.stat().st_size:
            with contextlib.suppress(sqlite3.DatabaseError, StoreError):
                return _connect_read_only(path), str(error)
        raise


def connect_in_memory() -> sqlite3.Connection:
    """A database of the same form that nobody else sees and that ends with its connection."""
    db = _connect(":memory:")
    _create(db)
    return db


def _connect(database: Path | str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=uri)


def _connect_for_writing(path: Path) -> sqlite3.Connection:
    _make_file(path)
    db = _connect(path)
    try:
        _begin_log(db)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(_CACHE)
        _check_or_create(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _begin_log(db: sqlite3.Connection) -> None:
    """WAL mode. While another connection does the same to a new database, SQLite refuses at once, without a wait."""
    end = time.monotonic() + OPEN_PATIENCE
    while not _has_begun_log(db, time.monotonic() > end):
        time.sleep(0.01)


def _has_begun_log(db: sqlite3.Connection, late: bool) -> bool:
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if late or "locked" not in str(error):
            raise
        return False
    return True


def making(folder: Path) -> FileLock:
    """Held by who puts a database where none is, or takes one away with what belongs to it: who did so in between would
    lose his own log."""
    return FileLock(folder / MAKING, mode=0o600)


def _make_file(path: Path) -> None:
    """By hand, since SQLite's own files take over its mode, and the index is its owner's alone."""
    if path.exists():
        return
    # A database that somebody deleted under an open connection leaves these. SQLite would take the shared memory for
    # the new one's and cut it short, and whoever reads in the old one would end with SIGBUS. They go before the file is
    # there, by one process alone: whoever sees the file may make his own.
    with making(path.parent):
        if path.exists():
            return
        for extra in ("-wal", "-shm"):
            Path(f"{path}{extra}").unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """As it is with its log, if that is complete; without, where SQLite cannot make what belongs to a log."""
    try:
        return _connect_by(f"{path.absolute().as_uri()}?mode=ro", path)
    except sqlite3.OperationalError:
        return _connect_by(f"{path.absolute().as_uri()}?immutable=1", path)


def _connect_by(uri: str, path: Path) -> sqlite3.Connection:
    db = _connect(uri, uri=True)
    try:
        db.execute("PRAGMA query_only = 1")
        db.execute(_CACHE)
        _check_version(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _check_or_create(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")  # two processes may come first at the same time
    try:
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create(db)
        _check_version(db, path)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk has ended it already
            db.execute("ROLLBACK")
        raise


def _create(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";\n"):
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    [(application,)] = db.execute("PRAGMA application_id").fetchall()
    [(version,)] = db.execute("PRAGMA user_version").fetchall()
    if not application and not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise StoreError(f"{path}: holds nothing yet, and cannot be written; choose another folder by --cache-dir")
    if application != APPLICATION_ID:
        raise StoreError(f"{path}: another program's database; move it away, or choose another folder by --cache-dir")
    if version < SCHEMA_VERSION:
        raise OutdatedStore(f"{path}: written by an older meaning-lsp (format {version})")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: written by a newer meaning-lsp (format {version}, this one knows {SCHEMA_VERSION});"
            " upgrade, or choose another folder by --cache-dir"
        )
