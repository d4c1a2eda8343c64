"""The truth: an SQLite database (WAL) with a workspace's files, units, their terms and embeddings.

Everything else (the files of vectors and postings) is derived from it. Unit ids grow and are never used twice, so that
whoever follows the database needs only ask for greater ones. Nothing here knows a model, a parser or a file system
tree.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from .database import DATABASE, DamagedStore, StoreError, connect, connect_in_memory
from .sums import sound, sum_of

DISTRUSTED = "index.distrusted"
"""A file of this name beside the database says that somebody read nonsense in it: the next who writes begins anew."""

_REFUSALS = ("locked", "busy", "readonly", "read-only", "full", "disk I/O", "unable to open", "interrupted")
"""How SQLite words what a disk or another process denies. Every other error of a statement that is right is damage."""

_TOTALS = "totals"
"""The key under which the numbers of files and units are remembered."""

_FILES = "SELECT id, path, stamp, digest, maker FROM files"

_STORED = (
    "SELECT u.id, u.file, u.key, u.name, u.container, u.kind, u.start_line, u.end_line, u.name_line, u.name_start,"
    " u.name_end, u.head, u.preview, u.terms_sum, u.sum, t.terms, f.path, f.digest, f.language, f.sum, f.stamp"
    " FROM units u CROSS JOIN files f ON f.id = u.file CROSS JOIN terms t ON t.unit = u.id"
)

_CHUNK = 500
"""Values of one IN list; SQLite's limit of variables was 999 for long."""

_VERIFIED_ROWS = 100
"""Looked at at once: 4 ms."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """What is known of a file: enough to see whether it changed."""

    id: int
    path: str
    stamp: str
    digest: bytes
    maker: str
    """Which code made its units: see `server.index.version`."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was when it was read."""

    path: str
    """Relative to the workspace folder, with `/`."""
    stamp: str
    """See `server.index.stamp`."""
    digest: bytes
    maker: str
    """Which code made the units: see `server.index.version`."""
    language: str
    skipped: str
    """Why the file has no units (binary, generated, …); empty if it is indexed."""
    problem: str
    """What its owner would want to know of it, for `status`; empty if nothing is wrong."""
    path_key: bytes
    """The key of the path's own embedding."""

    @property
    def sum(self) -> int:
        """The checksum of what an answer takes from a file's row."""
        return sum_of(self.path, self.digest, self.language)


class UnitRow(NamedTuple):
    """A unit as it is stored: `server.parse.Unit` without its text, and its terms.

    (Many of these come from worker processes, and a dataclass takes its time to be unpickled.)
    """

    key: bytes
    """Names the text that is embedded: equal keys, equal vectors."""
    name: str
    container: str
    kind: str
    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    head: str
    """The line of the name, up to the name's end, if it holds more than ASCII: for who counts columns differently."""
    preview: str
    terms: bytes
    """See `server.index.words.packed`."""

    @property
    def terms_sum(self) -> int:
        """The checksum of the terms."""
        return zlib.crc32(self.terms)

    def columns(self) -> tuple[Any, ...]:
        """The values of table `units` from `key` to `terms_sum`, in its order."""
        return (
            self.key,
            self.name,
            self.container,
            self.kind,
            self.start_line,
            self.end_line,
            *self.selection,
            self.head,
            self.preview,
            self.terms_sum,
        )


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A unit and its file, as they were stored."""

    id: int
    """Negative for an open document's."""
    key: bytes
    name: str
    container: str
    kind: str
    start_line: int
    end_line: int
    selection: tuple[int, int, int]
    head: str
    preview: str
    path: str
    digest: bytes
    language: str
    stamp: str


@dataclass(frozen=True, slots=True)
class Totals:
    """How much is in an index."""

    files: int
    units: int


class Store:
    """One connection to one workspace's database. Several may be open, in several processes; one of them writes.

    Safe to share between threads: calls wait for each other. Every method may raise StoreError.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, read_only: str | None) -> None:
        self._db = connection
        self.path = path
        self.read_only = read_only
        """Why nothing can be written, None if it can."""
        self.lock = threading.RLock()
        self._identity = _identity(path)
        self._counts_changed = False
        """Whether the transaction that runs added or removed files or units."""

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Open or create the database in `folder`, which exists.

        A database on a disk that cannot be written is opened for reading. Raises StoreError for one that cannot be
        opened, was written by a newer version, or is damaged (`DamagedStore`).
        """
        path = folder / DATABASE
        try:
            connection, read_only = connect(path)
        except sqlite3.OperationalError as error:
            raise StoreError(f"{path}: cannot open the index ({error}); choose another folder by --cache-dir") from None
        except sqlite3.DatabaseError as error:
            raise DamagedStore(f"{path}: {error}") from None
        return cls(connection, path, read_only)

    @classmethod
    def in_memory(cls) -> Store:
        """A store of the same form that is this process's alone and is never written anywhere."""
        return cls(connect_in_memory(), Path(":memory:"), None)

    def close(self) -> None:
        """Close the connection; a closed store answers nothing any more."""
        with self.lock:
            self._db.close()

    def replaced(self) -> bool:
        """Whether another database stands in this one's place, or none: it was damaged, or the cache was emptied."""
        return _identity(self.path) != self._identity

    # -- damage

    @property
    def distrusted(self) -> bool:
        """Whether somebody found damage in this database."""
        return (self.path.parent / DISTRUSTED).exists()

    def damaged(self, what: str) -> DamagedStore:
        """The error to raise for nonsense in the database, which is remembered for the next who writes."""
        if not self.replaced():
            with contextlib.suppress(OSError):
                (self.path.parent / DISTRUSTED).touch(0o600)
        return DamagedStore(f"{self.path}: {what}")

    @contextlib.contextmanager
    def _told(self, deed: str) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.ProgrammingError:  # a closed connection, a wrong statement: no fault of the file
            raise
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in _REFUSALS):
                raise StoreError(f"{self.path}: cannot {deed} the index ({error})") from None
            raise self.damaged(str(error)) from None

    # -- transactions

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written, or nothing is. Raises StoreError when the disk refuses."""
        with self.lock, self._told("write"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                if self._counts_changed:
                    self._set_totals()
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.DatabaseError):  # the first error says what was wrong
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one and the same state of the database."""
        with self.lock:
            with self._told("read"):
                self._db.execute("BEGIN")
            try:
                yield
            finally:
                with contextlib.suppress(sqlite3.DatabaseError):  # what was read was read
                    self._db.execute("COMMIT")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Raises StoreError; DamagedStore where the file is at fault."""
        with self.lock, self._told("read"):
            return self._db.execute(sql, values).fetchall()

    def rows_in(self, sql: str, values: Iterable[Any], before: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT whose `IN (?)` is filled with `values`, after the parameters `before`."""
        found: list[tuple[Any, ...]] = []
        every = list(values)
        for start in range(0, len(every), _CHUNK):
            chunk = every[start : start + _CHUNK]
            found += self.rows(sql.replace("IN (?)", f"IN ({','.join('?' * len(chunk))})"), [*before, *chunk])
        return found

    # -- meta

    def meta(self, key: str) -> str | None:
        """One remembered value, None if it was never set."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """A statement; inside of `transaction`."""
        self._db.execute(sql, values)

    def set_meta(self, key: str, value: str) -> None:
        """Remember a value; inside of `transaction`."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def totals(self) -> Totals:
        """Files that have units, and units."""
        known = (self.meta(_TOTALS) or "0 0").split()
        if len(known) != 2 or not all(number.isdecimal() for number in known):
            raise self.damaged(f"{' '.join(known)!r} files and units")
        return Totals(*map(int, known))

    def _set_totals(self) -> None:
        """Counted once a transaction: SQLite looks at every row for it, and every search asks."""
        [(files,)] = self._db.execute("SELECT count(*) FROM files WHERE skipped = ''").fetchall()
        [(units,)] = self._db.execute("SELECT count(*) FROM units").fetchall()
        self.set_meta(_TOTALS, f"{files} {units}")
        self._counts_changed = False

    # -- files and units

    def files(self) -> dict[str, FileRow]:
        """Every file that was read, by path, those without units too."""
        return {row[1]: FileRow(*row) for row in self.rows(_FILES)}

    def files_within(self, paths: Iterable[str]) -> dict[str, FileRow]:
        """The same of those files alone that are one of `paths` or lie in a folder that is one."""
        found: dict[str, FileRow] = {}
        for path in paths:
            # "0" is the character after "/": the range is all that begins with `path/`.
            rows = self.rows(
                f"{_FILES} WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')",
                (path,),
            )
            found.update((row[1], FileRow(*row)) for row in rows)
        return found

    def problems(self, most: int) -> list[tuple[str, str]]:
        """(path, problem) of the files with which something is wrong."""
        return self.rows("SELECT path, problem FROM files WHERE problem != '' ORDER BY path LIMIT ?", (most,))

    def touch(self, file: int, stamp: str) -> None:
        """The file's content is as it was; only its stamp is new. Inside of `transaction`."""
        self._db.execute("UPDATE files SET stamp = ? WHERE id = ?", (stamp, file))

    def remove(self, file: int) -> None:
        """Forget a file and its units; embeddings stay. Inside of `transaction`."""
        self._counts_changed = True
        self._forget("SELECT id FROM units WHERE file = ?", file)
        self._db.execute("DELETE FROM units WHERE file = ?", (file,))
        self._db.execute("DELETE FROM files WHERE id = ?", (file,))

    def put(self, state: FileState, units: Sequence[UnitRow]) -> None:
        """Remember a file with its units in place of what was known of it. Inside of `transaction`.

        A unit whose text is as before keeps its id, so that its vector and its full text stay as they are; the lines
        where it stands are new.
        """
        self._counts_changed = True
        [(file,)] = self._db.execute(
            "INSERT INTO files (stamp, digest, maker, language, skipped, problem, path_key, sum, path)"
            " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT (path) DO UPDATE SET stamp = excluded.stamp,"
            " digest = excluded.digest, maker = excluded.maker, language = excluded.language,"
            " skipped = excluded.skipped, problem = excluded.problem, sum = excluded.sum RETURNING id",
            (
                state.stamp,
                state.digest,
                state.maker,
                state.language,
                state.skipped,
                state.problem,
                state.path_key,
                state.sum,
                state.path,
            ),
        ).fetchall()
        kept: dict[tuple[Any, ...], list[int]] = {}
        for unit, *same in self._db.execute(
            "SELECT id, key, terms_sum, kind, end_line - start_line FROM units WHERE file = ? ORDER BY id DESC", (file,)
        ):
            kept.setdefault(tuple(same), []).append(unit)
        for row in units:
            if ids := kept.get((row.key, row.terms_sum, row.kind, row.end_line - row.start_line)):
                columns = row.columns()
                self._db.execute(
                    "UPDATE units SET key = ?, name = ?, container = ?, kind = ?, start_line = ?, end_line = ?,"
                    " name_line = ?, name_start = ?, name_end = ?, head = ?, preview = ?, terms_sum = ?, sum = ?"
                    " WHERE id = ?",
                    (*columns, sum_of(file, *columns), ids.pop()),
                )
            else:
                self._insert(file, row)
        for unit in chain.from_iterable(kept.values()):
            self._forget("SELECT ?", unit)
            self._db.execute("DELETE FROM units WHERE id = ?", (unit,))

    def _insert(self, file: int, row: UnitRow) -> None:
        columns = row.columns()
        cursor = self._db.execute(
            "INSERT INTO units (file, key, name, container, kind, start_line, end_line, name_line, name_start,"
            " name_end, head, preview, terms_sum, sum) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (file, *columns, sum_of(file, *columns)),
        )
        self._db.execute("INSERT INTO terms (unit, terms) VALUES (?,?)", (cursor.lastrowid, row.terms))

    def _forget(self, which: str, value: int) -> None:
        """Put the terms of units aside, for those who have counted them."""
        self._db.execute(
            f"INSERT INTO gone (unit, terms) SELECT unit, terms FROM terms WHERE unit IN ({which})", (value,)
        )
        self._db.execute(f"DELETE FROM terms WHERE unit IN ({which})", (value,))

    def stored_units(self, units: Iterable[int]) -> list[StoredUnit]:
        """Those of `units` that are there. Raises DamagedStore for what is not as it was stored."""
        return [self._checked(row) for row in self.rows_in(f"{_STORED} WHERE u.id IN (?)", units)]

    def _checked(self, row: tuple[Any, ...]) -> StoredUnit:
        unit, file = row[:2]
        columns, unit_sum, terms, (path, digest, language, file_sum, stamp) = row[2:14], row[14], row[15], row[16:]
        sums = (sum_of(file, *columns), sum_of(path, digest, language))
        if sums != (unit_sum, file_sum) or not isinstance(terms, bytes) or zlib.crc32(terms) != columns[-1]:
            raise self.damaged(f"unit {unit} is not as it was stored")
        key, name, container, kind, start_line, end_line, *selection, head, preview, _ = columns
        place = (selection[0], selection[1], selection[2])
        return StoredUnit(
            unit, key, name, container, kind, start_line, end_line, place, head, preview, path, digest, language, stamp
        )

    def verify(self, between: Callable[[], None]) -> None:
        """Look at everything, a bit that flipped included; `between` is called every now and then.

        Takes about 40 µs for a unit. Raises DamagedStore.
        """
        for (verdict,) in self.rows("PRAGMA integrity_check(1)"):
            if verdict != "ok":
                raise self.damaged(verdict)
        between()
        for first in range(1, self._highest("units") + 1, _VERIFIED_ROWS):
            for row in self.rows(f"{_STORED} WHERE u.id BETWEEN ? AND ?", (first, first + _VERIFIED_ROWS - 1)):
                self._checked(row)
            between()
        for first in range(1, self._highest("embeddings") + 1, _VERIFIED_ROWS):
            some = "SELECT vectors, sum FROM embeddings WHERE id BETWEEN ? AND ?"
            if not all(sound(*row) for row in self.rows(some, (first, first + _VERIFIED_ROWS - 1))):
                raise self.damaged("an embedding is not as it was stored")
            between()

    def _highest(self, table: str) -> int:
        [(highest,)] = self.rows(f"SELECT coalesce(max(id), 0) FROM {table}")
        return int(highest)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
