"""What a workspace's own index has to publish, read from it in portions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..index.index import Index
from ..index.prepare import digest_of
from ..index.store import StoredUnit
from ..index.sums import sound
from ..index.vectors import MAX_PARTS, Vectors, unpack
from ..index.version import units_version
from .names import is_path

_VECTORS = (
    "SELECT u.id, e.vectors, e.sum, p.vectors, p.sum, t.terms FROM units u CROSS JOIN files f ON f.id = u.file"
    " CROSS JOIN terms t ON t.unit = u.id"
    " CROSS JOIN embeddings e ON e.model = ? AND e.key = u.key"
    " CROSS JOIN embeddings p ON p.model = e.model AND p.key = f.path_key WHERE u.id IN (?)"
)


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file as the index knows it, without what is in it."""

    path: str
    mark: bytes
    """Equal marks, equal units: it holds the file's digest and which version of us read it."""
    units: int


@dataclass(frozen=True, slots=True)
class LocalUnit:
    """A unit, its vectors and its terms."""

    stored: StoredUnit
    terms: bytes
    """See `server.index.words.packed`."""
    code: Vectors
    """[parts, dim]"""


@dataclass(frozen=True, slots=True)
class FileToPublish:
    """A file with its units."""

    path: str
    language: str
    digest: bytes
    mark: bytes
    path_vector: Vectors
    """[dim]"""
    units: list[LocalUnit] = field(default_factory=list)


def local_files(index: Index) -> dict[bytes, LocalFile]:
    """The files that have units, by the hashes of their paths. One whose name cannot be shown (a line break in it, not
    UTF-8) is left out."""
    rows = index.store.rows(
        "SELECT f.path, f.digest, f.language, count(*) FROM files f JOIN units u ON u.file = f.id GROUP BY f.id"
    )
    return {
        path_key(path): LocalFile(path, _mark(digest, language), units)
        for path, digest, language, units in rows
        if is_path(path)
    }


def path_key(path: str) -> bytes:
    """Stands for a path in the database's indexes, which take no long texts."""
    return digest_of(path.encode("utf-8", "surrogatepass"))


def _mark(digest: bytes, language: str) -> bytes:
    return digest_of(b"\0".join((digest, language.encode(), units_version().encode())))


def read(index: Index, paths: Iterable[str]) -> list[FileToPublish]:
    """Those of the files that are (still) there whole, as they are in one moment. Raises StoreError."""
    store = index.store
    with store.snapshot():
        rows = store.rows_in("SELECT u.id FROM files f CROSS JOIN units u ON u.file = f.id WHERE f.path IN (?)", paths)
        units = store.stored_units(unit for (unit,) in rows)
        vectors = store.rows_in(_VECTORS, (unit.id for unit in units), (index.bundle.fingerprint,))
    blobs = [sound(*row[1:3])[: MAX_PARTS * 2 * index.bundle.dim] for row in vectors]
    code, places, counts = unpack(store, blobs, [sound(*row[3:5]) for row in vectors], index.bundle.dim)
    files: dict[str, FileToPublish] = {}
    own = _by_unit(vectors, code, places, counts.tolist())
    lacking = {unit.path for unit in units if unit.id not in own}  # its vectors come with the next update
    for unit in units:
        if unit.path in lacking:
            continue
        code_vectors, place, terms = own[unit.id]
        if unit.path not in files:
            mark = _mark(unit.digest, unit.language)
            files[unit.path] = FileToPublish(unit.path, unit.language, unit.digest, mark, place)
        files[unit.path].units.append(LocalUnit(unit, terms, code_vectors))
    return list(files.values())


def _by_unit(
    rows: Sequence[Sequence[Any]], code: Vectors, places: Vectors, counts: Sequence[int]
) -> dict[int, tuple[Vectors, Vectors, bytes]]:
    """Unit -> its vectors [parts, dim], its path's [dim], and its terms."""
    found: dict[int, tuple[Vectors, Vectors, bytes]] = {}
    start = 0
    for row, count in zip(rows, counts, strict=True):
        found[row[0]] = (code[start : start + count], places[start], row[5])
        start += count
    return found
