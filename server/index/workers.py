"""Files are prepared in worker processes: parsing is most of the work of a first index, and Python's threads share one
interpreter lock. And a text that crashes its parser costs a worker, not the server.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ..workspace.discover import FoundFile
from .prepare import PreparedFile, Unreadable, passed_over, prepare, prepare_text, unprepared

Result = TypeVar("Result")

Task: TypeAlias = tuple[FoundFile, bytes | None]
"""A file, and the digest of the content that is known of it."""

Outcome: TypeAlias = tuple[FoundFile, PreparedFile | Unreadable | None]
"""A file, and what `prepare` made of it: None if its content did not change."""

MUCH = 100_000
"""Bytes to prepare from which processes of their own do it, ahead of whoever takes what they made. The one that is kept
has one message at a time, and soon has time for what is urgent."""

WORTH_MORE = 1_000_000
"""Bytes to prepare for which one more process pays: it takes 0.1 s of processor to be there."""

_CHUNK_BYTES = 60_000
"""Work that one message carries: 40 ms."""

WORKER_BYTES = 3 << 30
"""Address space of a worker. A file of 1 MB takes a fiftieth of that; some texts make a grammar take 20 GB."""

WORK_SECONDS = 60
"""CPU time for one message's work. Parsing bounds itself to seconds; this is for what is wrong with those bounds."""

NICENESS = 5
"""Gives way, and is not starved by a build that runs beside."""

GRACE_SECONDS = 1.0
"""How long a worker whose work is not wanted any more may take for one file."""

_IN_FLIGHT = 8
"""Messages a worker that may wait or be done: bounds what is held in memory."""

CRASHED = "its parser crashed or did not end"


class Workers:
    """Processes that prepare files: one that is started when there is work and stays, and more while there is much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: _Pool | None = None
        self._begun: _Pool | None = None
        """Started before there was work."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            pools, self._kept, self._begun = (self._kept, self._begun), None, None
        for pool in filter(None, pools):
            pool.close()

    def begin(self) -> None:
        """Have processes on their way before it is known what for, since it will be much.

        For whoever has opened nothing yet, least of all a database: where this process has one thread, they are forks
        of it, which costs a tenth.
        """
        self._begun = _Pool(self._most, "fork" if _has_one_thread() else "spawn")
        self._begun.submit(os.getpid)

    def prepare_all(
        self, root: Path, tasks: Sequence[Task], cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[Outcome]:
        """Prepare files, in the order of `tasks`. Much work begins at once, not when the first outcome is asked for.

        A file on which a parser crashes takes a worker with it, and is passed over; no other file is. Ends early when
        `cancelled` answers True.
        """
        size = sum(found.size for found, _ in tasks)
        if size < MUCH:
            return _outcomes(self._by_one(root, tasks), cancelled)
        chunks = self._by_many(root, tasks, min(self._most, max(1, size // WORTH_MORE)))
        next(chunks)
        return _outcomes(chunks, cancelled)

    def prepare_text(self, path: str, text: str) -> PreparedFile:
        """Prepare a text that stands for the content of a file; one that crashes its parser has no units."""
        pool = self._pool()
        try:
            return pool.submit(prepare_text, path, text).result()
        except (BrokenProcessPool, MemoryError):
            self._part_with(pool)
            return _prepare_text_apart(path, text)

    def _by_one(self, root: Path, tasks: Sequence[Task]) -> Generator[list[Outcome], None, None]:
        for chunk in _chunks(tasks):
            pool = self._pool()
            try:
                yield pool.submit(_prepare_chunk, root, chunk).result()
            except (BrokenProcessPool, MemoryError):
                self._part_with(pool)
                yield _prepare_apart(root, chunk)

    def _by_many(self, root: Path, tasks: Sequence[Task], processes: int) -> Generator[list[Outcome], None, None]:
        """Gives nothing as soon as the processes are on their way, and then what they made."""
        with self._lock:
            pool, self._begun = self._begun or _Pool(processes), None
        try:
            waiting: deque[tuple[list[Task], Future[list[Outcome]]]] = deque()
            for number, chunk in enumerate(_chunks(tasks)):
                try:
                    waiting.append((chunk, pool.submit(_prepare_chunk, root, chunk)))
                except BrokenProcessPool:
                    pool.close()
                    pool = _Pool(processes)
                    waiting.append((chunk, pool.submit(_prepare_chunk, root, chunk)))
                if not number:
                    yield []
                if len(waiting) >= processes * _IN_FLIGHT:
                    yield _result(root, *waiting.popleft())
            while waiting:
                yield _result(root, *waiting.popleft())
        finally:
            pool.close()

    def _pool(self) -> _Pool:
        with self._lock:
            if not self._kept:
                self._kept, self._begun = self._begun or _Pool(1), None
            return self._kept

    def _part_with(self, pool: _Pool) -> None:
        """A worker crashed: the next one is another."""
        with self._lock:
            if self._kept is pool:
                self._kept = None
        pool.close()


def prepare_here(root: Path, tasks: Sequence[Task], cancelled: Callable[[], bool] = lambda: False) -> Iterator[Outcome]:
    """The same in this process, which a crash would end."""
    for task in tasks:
        yield from _prepare_chunk(root, [task])
        if cancelled():
            return


def _outcomes(
    chunks: Generator[list[Outcome], None, None], cancelled: Callable[[], bool]
) -> Generator[Outcome, None, None]:
    with contextlib.closing(chunks):
        for outcomes in chunks:
            yield from outcomes
            if cancelled():
                return


def _result(root: Path, chunk: list[Task], future: Future[list[Outcome]]) -> list[Outcome]:
    try:
        return future.result()
    except (BrokenProcessPool, MemoryError):
        return _prepare_apart(root, chunk)


def _prepare_apart(root: Path, chunk: list[Task]) -> list[Outcome]:
    """Prepare files of which one may crash its process: halve until it is alone, and pass over that one."""
    pool = _Pool(1)
    try:
        pool.submit(os.getpid).result()
        try:
            return pool.submit(_prepare_chunk, root, chunk).result()
        except (BrokenProcessPool, MemoryError):
            if len(chunk) == 1:
                found = chunk[0][0]
                return [(found, passed_over(root, found, CRASHED))]
        half = len(chunk) // 2
        return _prepare_apart(root, chunk[:half]) + _prepare_apart(root, chunk[half:])
    except BrokenProcessPool:
        return _prepare_chunk(root, chunk)  # no process can live here at all: the files are not to blame
    finally:
        pool.close()


def _prepare_text_apart(path: str, text: str) -> PreparedFile:
    pool = _Pool(1)
    try:
        return pool.submit(prepare_text, path, text).result()
    except (BrokenProcessPool, MemoryError):
        return unprepared(path, CRASHED)
    finally:
        pool.close()


class _Pool:
    """Worker processes that end soon after the pool is closed, whatever they are at: nobody wants it any more."""

    def __init__(self, workers: int, method: str = "spawn") -> None:
        # Spawned, not forked: the server has threads, and a fork copies their locks in whatever state they are.
        context = multiprocessing.get_context(method)
        self._watched, self._lease = context.Pipe(duplex=False)
        copied = self._lease if method == "fork" else None
        self._executor = ProcessPoolExecutor(workers, context, _start_worker, (self._watched, copied))

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Have a worker do it. Raises BrokenProcessPool once a worker has crashed."""
        with _interrupts_held():
            return self._executor.submit(_on_shift, work, *arguments)

    def close(self) -> None:
        """End the workers; what was submitted and is not done is not going to be."""
        self._lease.close()
        self._executor.shutdown(cancel_futures=True)
        self._watched.close()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is born inside never sees Ctrl-C, which would end it with a traceback on its way up; this one
    sees it a moment later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    return [(found, prepare(root, found, known_digest)) for found, known_digest in chunk if not _shift.dismissed]


class _Shift:
    """The time in which a worker may end at any moment. Outside of it, it may be sending: half a message would keep
    its parent waiting for the other half for ever."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work = False
        self.dismissed = False
        """Whether nobody wants the rest of the work any more."""

    def __enter__(self) -> None:
        self._set_at_work(True)

    def __exit__(self, *_: object) -> None:
        self._set_at_work(False)

    def _set_at_work(self, at_work: bool) -> None:
        with self._changed:
            self._at_work = at_work
            self._changed.notify()

    def dismiss(self) -> None:
        """Have the work ended after the file that it is at, or with the process if that one takes long."""
        self.dismissed = True
        with self._changed:
            if not self._changed.wait_for(lambda: not self._at_work, GRACE_SECONDS):
                os._exit(1)


_shift = _Shift()


def _on_shift(work: Callable[..., Result], *arguments: Any) -> Result:
    with _shift:
        _end_after(WORK_SECONDS)
        try:
            return work(*arguments)
        finally:
            _end_after(0)


def _end_after(cpu_seconds: float) -> None:
    """Have the system end this process after so much work, even inside of a parser that never looks up. 0: never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def _has_one_thread() -> bool:
    """Whether a fork of this process is sound: none of its locks is held by a thread that the fork has not."""
    return sys.platform == "linux" and sum(1 for _ in Path("/proc/self/task").iterdir()) == 1


def _start_worker(lease: Connection, copied: Connection | None) -> None:
    """A worker leaves Ctrl-C to its parent, gives way to everybody else, is held to WORKER_BYTES, and ends with its
    pool or its parent. A fork has a copy of the other end of its `lease`, too."""
    if copied:
        copied.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, OSError, ValueError):  # not everywhere, or held to less already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (WORKER_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    threading.Thread(target=_end_with, args=(lease, multiprocessing.parent_process()), daemon=True).start()


def _end_with(lease: Connection, parent: Any) -> None:
    if lease in wait([lease, parent.sentinel]):
        _shift.dismiss()
    wait([parent.sentinel])
    os._exit(1)
