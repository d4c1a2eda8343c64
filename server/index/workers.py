"""Files are prepared in worker processes: parsing is most of the work of a first index, and Python's threads share
one interpreter lock."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeAlias

from ..workspace.discover import FoundFile
from .prepare import PreparedFile, Unreadable, prepare

Task: TypeAlias = tuple[FoundFile, bytes | None]
"""A file, and the digest of the content that is known of it."""

Outcome: TypeAlias = tuple[FoundFile, PreparedFile | Unreadable | None]
"""A file, and what `prepare` made of it: None if its content did not change."""

WORTH_PROCESSES = 2_000_000
"""Bytes to prepare from which starting processes pays: they take about 0.4 s to be there."""

_CHUNK_BYTES = 200_000
"""Work that one message carries."""

_IN_FLIGHT = 4
"""Messages a worker that may wait or be done: bounds what is held in memory."""


def prepare_all(root: Path, tasks: Sequence[Task], workers: int, cancelled: Callable[[], bool]) -> Iterator[Outcome]:
    """Prepare files by `workers` processes, or in this one where there is little to do. In the order of `tasks`.

    Ends early when `cancelled` answers True.
    """
    if workers < 2 or sum(found.size for found, _ in tasks) < WORTH_PROCESSES:
        for task in tasks:
            if cancelled():
                return
            yield _prepare_one(root, task)
        return
    # Spawned, not forked: the server has threads, and a fork copies their locks in whatever state they are.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    try:
        waiting: deque[Future[list[Outcome]]] = deque()
        for chunk in _chunks(tasks):
            waiting.append(pool.submit(_prepare_chunk, root, chunk))
            if len(waiting) >= workers * _IN_FLIGHT:
                yield from waiting.popleft().result()
            if cancelled():
                return
        while waiting:
            yield from waiting.popleft().result()
            if cancelled():
                return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


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
    return [_prepare_one(root, task) for task in chunk]


def _prepare_one(root: Path, task: Task) -> Outcome:
    found, known_digest = task
    return found, prepare(root, found, known_digest)


def _start_worker() -> None:
    """A worker leaves Ctrl-C to its parent, gives way to everybody else, and ends when its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(5)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
