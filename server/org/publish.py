"""A workspace's index -> the organisation's: what changed since it was published last, file by file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..index.index import Index
from ..index.prepare import digest_of
from ..index.report import Progress
from ..index.vectors import Vectors, combine
from .connect import OrgError, connect, told
from .local import FileToPublish, LocalFile, LocalUnit, local_files, path_key, read
from .schema import Schema, models
from .wire import HalfVector, lexemes_of, teach

if TYPE_CHECKING:
    import psycopg

BATCH_UNITS = 1_000
"""Units of one transaction: what a kill can cost."""

TURN_SECONDS = 60.0
"""How long is waited for another who publishes the same workspace."""

PUBLISHED_AS = "published as"
"""Under this key the workspace's own index remembers its name in the organisation's."""

STATEMENT_SECONDS = 300
"""For one statement; adding to the graph of a large index takes a few milliseconds for each vector."""

_FILE = "id workspace path_key path language mark digest units path_vector".split()
_UNIT = (
    "id workspace file language kind key name container start_line end_line name_line name_start name_end head preview"
    " terms length lexemes"
).split()
_PART = "unit workspace file language kind combined".split()
_TYPES = {
    **dict.fromkeys(("id", "file", "unit"), "int8"),
    **dict.fromkeys(
        ("workspace", "units", "start_line", "end_line", "name_line", "name_start", "name_end", "length"), "int4"
    ),
    **dict.fromkeys(("path_key", "mark", "digest", "key", "terms"), "bytea"),
    **dict.fromkeys(("path_vector", "combined"), "halfvec"),
    "lexemes": "tsvector",
}
"""Of columns; `text` is every other one's."""


@dataclass(frozen=True)
class Published:
    """What a publication did."""

    name: str
    files: int
    units: int
    """That the workspace has now."""
    sent: int
    removed: int
    """Files."""
    seconds: float


def publish(
    index: Index,
    url: str,
    name: str,
    progress: Progress = lambda *_: None,
    wait: Callable[[str], None] = lambda _: None,
) -> Published:
    """Make the organisation's index of the workspace `name` equal to its own, which is up to date.

    Each file is there whole or not at all, whenever somebody looks; what was written before a kill stays, and the next
    call goes on from there. `wait` hears who is waited for. Raises OrgError, StoreError.
    """
    start = time.monotonic()
    schema = Schema.of(index.bundle)
    with closing(connect(url)) as connection, told(url):
        schema.create(connection, url)
        connection.execute(f"SET statement_timeout = {STATEMENT_SECONDS * 1000}".encode())
        connection.execute(f"SET search_path = {schema.name}, public".encode())
        teach(connection)
        with _turn(connection, f"{schema.name} {name}", lambda: wait(f"another publication of {name} is waited for")):
            sent, removed = _publish(_Target(connection, name), index, progress)
        files, units = _totals(connection, name)
    if index.store.meta(PUBLISHED_AS) != name:
        with index.store.transaction():
            index.store.set_meta(PUBLISHED_AS, name)
    return Published(name, files, units, sent, removed, round(time.monotonic() - start, 3))


def unpublish(url: str, name: str) -> bool:
    """Take a workspace out, under every model. Returns whether it was there. Raises OrgError."""
    found = False
    with closing(connect(url)) as connection, told(url):
        for schema in models(connection):
            connection.execute(f"SET search_path = {schema}, public".encode())
            with _turn(connection, f"{schema} {name}", lambda: None), connection.transaction():
                gone = connection.execute("DELETE FROM workspaces WHERE name = %s RETURNING id", (name,)).fetchall()
                for table in ("parts", "units", "files", "terms") if gone else ():
                    connection.execute(f"DELETE FROM {table} WHERE workspace = ANY(%s)".encode(), ([gone[0][0]],))
                found = found or bool(gone)
    return found


@contextmanager
def _turn(connection: psycopg.Connection, what: str, wait: Callable[[], None]) -> Iterator[None]:
    """One publishes a workspace at a time; the lock goes with the connection, however that ends. Raises OrgError."""
    key = int.from_bytes(digest_of(what.encode())[:8], "big", signed=True)
    end = time.monotonic() + TURN_SECONDS
    waited = False
    while not _first(connection, "SELECT pg_try_advisory_lock(%s)", key):
        if not waited:
            wait()
            waited = True
        if time.monotonic() > end:
            raise OrgError(f"organisation index: {what.partition(' ')[2]} is being published by another; try again")
        time.sleep(0.2)
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:
            connection.execute("SELECT pg_advisory_unlock(%s)", (key,))


def _first(connection: psycopg.Connection, sql: str, *values: Any) -> Any:
    row = connection.execute(sql.encode(), values).fetchone()
    return row[0] if row else None


def _totals(connection: psycopg.Connection, name: str) -> tuple[int, int]:
    sql = (
        "SELECT count(*), coalesce(sum(f.units), 0) FROM files f JOIN workspaces w ON w.id = f.workspace"
        " WHERE w.name = %s"
    )
    row = connection.execute(sql, (name,)).fetchone()
    assert row
    return int(row[0]), int(row[1])


class _Target:
    """A workspace in the database."""

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self._db = connection
        connection.execute("INSERT INTO workspaces (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", (name,))
        self.id: int = _first(connection, "SELECT id FROM workspaces WHERE name = %s", name)

    def known(self) -> dict[bytes, tuple[int, bytes]]:
        """Path key -> file id and mark, of all that is there."""
        rows = self._db.execute("SELECT path_key, id, mark FROM files WHERE workspace = %s", (self.id,)).fetchall()
        return {bytes(key): (file, bytes(mark)) for key, file, mark in rows}

    def note_pending(self, files: int) -> None:
        """So many files are not as they are in the workspace; none, and the publication is done."""
        self._db.execute(
            "UPDATE workspaces SET pending = %s, published = CASE WHEN %s = 0 THEN now() ELSE published END"
            " WHERE id = %s",
            (files, files, self.id),
        )

    def replace(self, gone: Sequence[int], files: Sequence[FileToPublish], pending: int) -> None:
        """In one transaction: the files with the ids `gone` go, and `files` come."""
        with self._db.transaction():
            self._delete(gone)
            self._insert(files)
            self.note_pending(pending)

    def _delete(self, files: Sequence[int]) -> None:
        if not files:
            return
        values = {"files": list(files), "workspace": self.id}
        self._count("-", "file = ANY(%(files)s)", values)
        for table, column in (("parts", "file"), ("units", "file"), ("files", "id")):
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ANY(%(files)s)".encode(), values)
        self._db.execute("DELETE FROM terms WHERE workspace = %(workspace)s AND units <= 0", values)

    def _insert(self, files: Sequence[FileToPublish]) -> None:
        if not files:
            return
        file_ids = self._new_ids("files", len(files))
        unit_ids = iter(self._new_ids("units", sum(len(file.units) for file in files)))
        rows: dict[str, list[tuple[Any, ...]]] = {"files": [], "units": [], "parts": []}
        for id_, file in zip(file_ids, files, strict=True):
            rows["files"].append(_file_row(id_, self.id, file))
            for local in file.units:
                unit = next(unit_ids)
                rows["units"].append(_unit_row(unit, self.id, id_, local))
                rows["parts"] += _part_rows(unit, self.id, id_, local, file.path_vector)
        for table, columns in (("files", _FILE), ("units", _UNIT), ("parts", _PART)):
            self._copy(table, columns, rows[table])
        self._count("+", "file = ANY(%(files)s)", {"files": file_ids, "workspace": self.id})

    def _new_ids(self, table: str, count: int) -> list[int]:
        """Ids that nobody else gets."""
        rows = self._db.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", (table, count)
        ).fetchall()
        return [id_ for (id_,) in rows]

    def _copy(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._db.cursor() as cursor, cursor.copy(sql.encode()) as copy:
            copy.set_types([_TYPES.get(column, "text") for column in columns])
            for row in rows:
                copy.write_row(row)

    def _count(self, sign: str, which: str, values: dict[str, Any]) -> None:
        """Take units into the numbers that rank them, or out of them: in how many each term is, how many there are, and
        how many words they have."""
        self._db.execute(
            f"INSERT INTO terms AS known (term, workspace, units) SELECT term, %(workspace)s, {sign} count(*)"
            f" FROM units, unnest(tsvector_to_array(lexemes)) AS term WHERE {which} GROUP BY term"
            " ON CONFLICT (term, workspace) DO UPDATE SET units = known.units + excluded.units".encode(),
            values,
        )
        self._db.execute(
            f"UPDATE workspaces SET units = units {sign} n, words = words {sign} total FROM (SELECT count(*) AS n,"
            f" coalesce(sum(length), 0) AS total FROM units WHERE {which}) AS these WHERE id = %(workspace)s".encode(),
            values,
        )


def _publish(target: _Target, index: Index, progress: Progress) -> tuple[int, int]:
    """Returns how many files were sent, and how many were taken out."""
    local, known = local_files(index), target.known()
    gone = [known[key][0] for key in known.keys() - local.keys()]
    changed = [key for key, file in local.items() if key not in known or known[key][1] != file.mark]
    total, done, sent = len(changed) + len(gone), 0, 0
    if not total:
        target.note_pending(0)
        return 0, 0
    progress(0, total)
    target.replace(gone, [], pending=len(changed))
    done = len(gone)
    for keys in _batches(changed, local):
        files = read(index, [local[key].path for key in keys])
        done += len(keys)
        sent += len(files)
        target.replace([known[key][0] for key in keys if key in known], files, pending=total - done)
        progress(done, total)
    return sent, len(gone)


def _batches(keys: Sequence[bytes], files: Mapping[bytes, LocalFile]) -> Iterator[list[bytes]]:
    """Portions of about BATCH_UNITS units."""
    batch: list[bytes] = []
    units = 0
    for key in keys:
        batch.append(key)
        units += files[key].units
        if units >= BATCH_UNITS:
            yield batch
            batch, units = [], 0
    if batch:
        yield batch


def _file_row(id_: int, workspace: int, file: FileToPublish) -> tuple[Any, ...]:
    """The columns of _FILE."""
    key, vector = path_key(file.path), HalfVector(file.path_vector)
    return id_, workspace, key, file.path, file.language, file.mark, file.digest, len(file.units), vector


def _unit_row(id_: int, workspace: int, file: int, local: LocalUnit) -> tuple[Any, ...]:
    """The columns of _UNIT."""
    unit = local.stored
    names, texts = map(_storable, (unit.name, unit.container)), map(_storable, (unit.head, unit.preview))
    lines = (unit.start_line, unit.end_line, *unit.selection)
    lexemes = lexemes_of(local.terms)
    return (
        id_, workspace, file, unit.language, unit.kind, unit.key, *names, *lines, *texts, local.terms, lexemes.words,
        lexemes,
    )  # fmt: skip


def _part_rows(
    unit: int, workspace: int, file: int, local: LocalUnit, path_vector: Vectors
) -> Iterator[tuple[Any, ...]]:
    """The columns of _PART, a row for each part."""
    places = np.broadcast_to(path_vector, local.code.shape)
    kind = local.stored.kind
    for combined in combine(local.code, places):
        yield unit, workspace, file, local.stored.language, kind, HalfVector(combined)


def _storable(text: str) -> str:
    """Text that PostgreSQL takes: it knows no NUL, and nothing that is not Unicode."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
