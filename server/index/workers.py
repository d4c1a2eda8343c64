"""Files are prepared in worker processes: parsing is most of the work of a first index, and Python's threads share
one interpreter lock."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeAlias

from ..workspace.discover import FoundFile
from .prepare import PreparedFile, Unreadable, passed_over, prepare

Task: TypeAlias = tuple[FoundFile, bytes | None]
"""A file, and the digest of the content that is known of it."""

Outcome: TypeAlias = tuple[FoundFile, PreparedFile | Unreadable | None]
"""A file, and what `prepare` made of it: None if its content did not change."""

WORTH_PROCESSES = 2_000_000
"""Bytes to prepare from which starting processes pays: they take about 0.4 s to be there."""

_CHUNK_BYTES = 200_000
"""Work that one message carries."""

WORKER_BYTES = 3 << 30
"""Address space of a worker. A file of 1 MB takes a fiftieth of that; some texts make a grammar take 20 GB."""

_IN_FLIGHT = 4
"""Messages a worker that may wait or be done: bounds what is held in memory."""


def prepare_all(root: Path, tasks: Sequence[Task], workers: int, cancelled: Callable[[], bool]) -> Iterator[Outcome]:
    """Prepare files by `workers` processes, or in this one where there is little to do. In the order of `tasks`.

    A file on which a parser crashes takes a worker with it, and is passed over; no other file is. Ends early when
    `cancelled` answers True.
    """
    many = workers > 1 and sum(found.size for found, _ in tasks) >= WORTH_PROCESSES
    chunks = _by_processes(root, tasks, workers) if many else (_prepare_chunk(root, [task]) for task in tasks)
    with contextlib.closing(chunks):
        for outcomes in chunks:
            yield from outcomes
            if cancelled():
                return


def _by_processes(root: Path, tasks: Sequence[Task], workers: int) -> Generator[list[Outcome], None, None]:
    pool = _pool(workers)
    try:
        waiting: deque[tuple[list[Task], Future[list[Outcome]]]] = deque()
        for chunk in _chunks(tasks):
            try:
                waiting.append((chunk, pool.submit(_prepare_chunk, root, chunk)))
            except BrokenProcessPool:
                pool = _pool(workers)
                waiting.append((chunk, pool.submit(_prepare_chunk, root, chunk)))
            if len(waiting) >= workers * _IN_FLIGHT:
                yield _result(root, *waiting.popleft())
        while waiting:
            yield _result(root, *waiting.popleft())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(root: Path, chunk: list[Task], future: Future[list[Outcome]]) -> list[Outcome]:
    try:
        return future.result()
    except BrokenProcessPool:
        return _prepare_apart(root, chunk)


def _prepare_apart(root: Path, chunk: list[Task]) -> list[Outcome]:
    """Prepare files of which one may crash its process: halve until it is alone, and pass over that one."""
    pool = _pool(1)
    try:
        pool.submit(os.getpid).result()
        try:
            return pool.submit(_prepare_chunk, root, chunk).result()
        except BrokenProcessPool:
            if len(chunk) == 1:
                found = chunk[0][0]
                return [(found, passed_over(root, found, "its parser crashed"))]
        half = len(chunk) // 2
        return _prepare_apart(root, chunk[:half]) + _prepare_apart(root, chunk[half:])
    except BrokenProcessPool:
        return _prepare_chunk(root, chunk)  # no process can live here at all: the files are not to blame
    finally:
        pool.shutdown(wait=False)


def _pool(workers: int) -> ProcessPoolExecutor:
    # Spawned, not forked: the server has threads, and a fork copies their locks in whatever state they are.
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker)


def _chunks(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    chunk: list[Task] = []
    size = 0
    for task in tasks:
        chunk.append(task)
        size += task[0].size + 1_000
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _prepare_chunk(root: Path, chunk: list[Task]) -> list[Outcome]:
    return [(found, prepare(root, found, known_digest)) for found, known_digest in chunk]


def _start_worker() -> None:
    """A worker leaves Ctrl-C to its parent, gives way to everybody else, and ends when its parent is gone.

    It is also held to WORKER_BYTES: a text that makes a parser take more costs that one file, not the machine.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, OSError, ValueError):  # not everywhere, and perhaps held to less already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    if hasattr(os, "nice"):
        os.nice(5)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
