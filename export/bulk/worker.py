"""What a process of a run does with a chunk: parse it, then embed it."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from server.embed.bundle import Bundle, ModelError
from server.embed.embedder import Embedder
from server.index.prepare import Embeddable, PreparedFile
from server.index.workers import Workers
from server.shared.cache import SharedCache

from ..errors import one_line
from .job import Chunk, Job, Repository, chunks_of
from .parts import Parts, Vectors

EMBED_TEXTS = 500
"""Texts that are embedded at once."""

Row = dict[str, Any]
"""What Ray hands on: `task` is pickled; the rest is what it came to, for who started the run."""


def listed(row: Row, job: Job) -> list[Row]:
    """A repository's row -> its chunks' rows, those that are done without a task."""
    repository: Repository = pickle.loads(row["task"])
    try:
        chunks = chunks_of(repository, job)
    except OSError as error:
        return [_row(repository) | {"problem": f"{repository.root}: {error.strerror or error}", "failed": 1}]
    parts = Parts(job, repository)
    done = {chunk.digest: parts.units_of(chunk) for chunk in chunks}
    if None in done.values():
        parts.begin(done)
    rows = []
    for chunk in chunks:
        row = _row(repository) | {"chunk": chunk.digest, "chunks": len(done)}
        units = done[chunk.digest]
        rows.append(row | ({"task": pickle.dumps(chunk)} if units is None else {"units": units, "kept": units}))
    return rows or [_row(repository)]


def _row(repository: Repository) -> Row:
    """All that a row may have, so that all of them are alike."""
    figures = dict.fromkeys(("chunks", "units", "embedded", "fetched", "kept", "failed"), 0)
    return {"task": b"", "repository": repository.name, "chunk": "", "problem": "", **figures}


class Parser:
    """Parses the files of a chunk's row, in a process of its own: a text that crashes its parser is passed over."""

    def __init__(self) -> None:
        self._workers = Workers(1)

    def __call__(self, row: Row) -> Row:
        """The row with what the index would keep of the files."""
        if not row["task"]:
            return row
        chunk: Chunk = pickle.loads(row["task"])
        tasks = [(found, None) for found in chunk.files]
        outcomes = self._workers.prepare_all(chunk.repository.root.resolve(), tasks)
        files = [outcome for _, outcome in outcomes if isinstance(outcome, PreparedFile)]
        return row | {"task": pickle.dumps((chunk, files))}


class Vectoriser:
    """Embeds a parsed chunk's row, and writes it. Of texts that were embedded before, the vectors are taken."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._bundle = Bundle.load(job.model)
        self._shared = SharedCache(job.settings.shared_cache, self._bundle)

    @cached_property
    def _embedder(self) -> Embedder:
        return Embedder(self._bundle, self._job.settings.threads, self._job.settings.device)

    def __call__(self, row: Row) -> Row:
        """The row with its figures, once the chunk's file is there; or with what kept it from being written."""
        if not row["task"]:
            return row
        chunk, files = pickle.loads(row["task"])
        try:
            return row | {"task": b"", **self._done(chunk, files)}
        except (ModelError, OSError) as error:
            return row | {"task": b"", "failed": 1, "problem": f"{chunk.repository.name}: {one_line(error)}"}

    def _done(self, chunk: Chunk, files: Sequence[PreparedFile]) -> Row:
        texts = {text.key: text for file in files for text in file.texts}
        # In the Parquet file a path is a path; but who indexes this code asks the shared cache for its words' vectors.
        paths = {file.path_text.key: file.path_text for file in files if file.units and self._job.settings.shared_cache}
        parts = Parts(self._job, chunk.repository)
        known = parts.known(texts.keys())
        fetched = self._shared.fetch([key for key in (texts | paths) if key not in known])
        computed = self._computed([text for key, text in (texts | paths).items() if key not in known | fetched])
        parts.write(chunk, self._rows(chunk, files, known | fetched | computed))
        return {
            "problem": self._shared.problem or "",
            "units": sum(len(file.units) for file in files),
            "kept": len(known),
            "fetched": len(fetched.keys() & texts.keys()),
            "embedded": len(computed.keys() & texts.keys()),
        }

    def _computed(self, texts: Sequence[Embeddable]) -> dict[bytes, Vectors]:
        """The model's vectors, rounded as an index and the cache keep them; the cache has them when this returns."""
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(texts), EMBED_TEXTS):
            some = texts[start : start + EMBED_TEXTS]
            embedder, begun = self._embedder, time.perf_counter()
            vectors = embedder.embed_code([(text.text, text.breaks) for text in some])
            new = {text.key: value for text, value in zip(some, vectors, strict=True)}
            self._shared.give(new, time.perf_counter() - begun)
            found |= {key: value.astype(np.float16).astype(np.float32) for key, value in new.items()}
        self._shared.flush()
        return found

    def _rows(self, chunk: Chunk, files: Sequence[PreparedFile], vectors: dict[bytes, Vectors]) -> Iterator[Row]:
        for file in files:
            for unit in file.units:
                yield {
                    "repository": chunk.repository.name,
                    "path": file.state.path,
                    "start_line": unit.start_line,
                    "end_line": unit.end_line,
                    "name": unit.name,
                    "container": unit.container,
                    "kind": unit.kind,
                    "language": file.state.language,
                    "key": unit.key,
                    "model": self._bundle.fingerprint,
                    "vectors": list(vectors[unit.key]),
                }


class Worker:
    """Both steps, one after the other: what one core has to do, and no more than one."""

    def __init__(self, job: Job) -> None:
        self._parser, self._vectoriser = Parser(), Vectoriser(job)

    def __call__(self, row: Row) -> Row:
        """The row of a chunk that is done."""
        return self._vectoriser(self._parser(row))
