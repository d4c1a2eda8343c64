"""What a run leaves: `parts/REPOSITORY/CHUNK.parquet`, and `done/REPOSITORY.json` for each one that is whole.

One row a unit: repository, path, start_line, end_line (from 1, inclusive), name, container, kind, language, key (of the
text that was embedded, as the index has it), model, vectors ([parts][dim], each of unit length).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from .job import Chunk, Job, Repository

Vectors = npt.NDArray[np.float32]

SCHEMA = pa.schema(
    {
        "repository": pa.string(),
        "path": pa.string(),
        "start_line": pa.int32(),
        "end_line": pa.int32(),
        "name": pa.string(),
        "container": pa.string(),
        "kind": pa.string(),
        "language": pa.string(),
        "key": pa.binary(16),
        "model": pa.string(),
        "vectors": pa.list_(pa.list_(pa.float32())),
    }
)
_PART = ".parquet"


class Parts:
    """The files of one repository."""

    def __init__(self, job: Job, repository: Repository) -> None:
        self._name = repository.name
        self._folder = job.out / "parts" / repository.id
        self._stale = self._folder / "stale"
        self._mark = job.out / "done" / f"{repository.id}.json"

    def units_of(self, chunk: Chunk) -> int | None:
        """How many rows its file has; None if it is not done."""
        try:
            return int(pq.read_metadata(self._file(chunk.digest)).num_rows)
        except (OSError, pa.ArrowInvalid):
            return None

    def write(self, chunk: Chunk, rows: Iterable[Mapping[str, Any]]) -> None:
        """All of a chunk's file, or nothing of it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(list(rows), SCHEMA)
        with replacing(self._file(chunk.digest)) as path:
            pq.write_table(
                table,
                path,
                compression="zstd",
                use_dictionary=["repository", "path", "kind", "language", "model", "container"],
                column_encoding={"vectors.list.element.list.element": "BYTE_STREAM_SPLIT"},
            )

    def known(self, keys: Collection[bytes]) -> dict[bytes, Vectors]:
        """The vectors of those texts that the repository had before it changed, too."""
        found: dict[bytes, Vectors] = {}
        for file in self._parts_in(self._stale) if keys else ():
            with suppress(OSError, pa.ArrowInvalid):
                table = pq.read_table(file, columns=["key", "vectors"], filters=[("key", "in", list(keys))])
                for key, vectors in zip(table["key"].to_pylist(), table["vectors"].to_pylist(), strict=True):
                    found[key] = np.array(vectors, dtype=np.float32)
        return found

    def begin(self, chunks: Collection[str]) -> None:
        """Not all of these are done. What belongs to none of them is put aside, for the vectors that it has."""
        self._mark.unlink(missing_ok=True)
        for file in self._parts_in(self._folder):
            if file.stem not in chunks:
                self._stale.mkdir(exist_ok=True)
                file.replace(self._stale / file.name)

    def finish(self, units: Mapping[str, int]) -> None:
        """All chunks are done, with so many units each: say so, and drop what belongs to none of them."""
        shutil.rmtree(self._stale, ignore_errors=True)
        for file in self._folder.glob("*"):
            if file.stem not in units:
                file.unlink()
        self._mark.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._mark) as path:
            path.write_text(json.dumps({"repository": self._name, "units": units}), encoding="utf-8")

    def _parts_in(self, folder: Path) -> list[Path]:
        return sorted(folder.glob(f"*{_PART}"))

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}{_PART}"


class replacing:  # noqa: N801  (a context manager that reads like a function)
    """A new file's path, which takes its place when it is written; a kill leaves the old one, or none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.{os.getpid()}.new")

    def __enter__(self) -> Path:
        return self._new

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._new.replace(self._path)
        else:
            self._new.unlink(missing_ok=True)
