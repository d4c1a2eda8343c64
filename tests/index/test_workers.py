"""A file that crashes its parser costs that file alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from server.index import workers
from server.index.prepare import PreparedFile, prepare_text
from server.index.workers import Outcome, Task, Workers
from server.workspace.discover import FoundFile

_real = workers._prepare_chunk
_real_text = prepare_text


def crashing(root: Path, chunk: list[Task]) -> list[Outcome]:
    """As a parser would that runs over its memory."""
    if any(found.path == "evil.py" for found, _ in chunk):
        os.kill(os.getpid(), signal.SIGKILL)
    return _real(root, chunk)


def hungry(root: Path, chunk: list[Task]) -> list[Outcome]:
    """As a parser would that takes all memory there is."""
    if any(found.path == "evil.py" for found, _ in chunk):
        bytearray(2 * workers.WORKER_BYTES)
    return _real(root, chunk)


def endless(root: Path, chunk: list[Task]) -> list[Outcome]:
    """As a parser would that never looks up."""
    if any(found.path == "evil.py" for found, _ in chunk):
        workers._end_after(0.05)
        while True:
            pass
    return _real(root, chunk)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("parser", [crashing, hungry, endless])
def test_a_crash_costs_one_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parser: Callable[[Path, list[Task]], list[Outcome]],
    processes: int,
) -> None:
    if parser is not crashing and sys.platform != "linux":
        pytest.skip("memory and time are bounded on Linux alone")
    monkeypatch.setattr(workers, "MUCH", 1)
    monkeypatch.setattr(workers, "WORTH_MORE", 1)
    monkeypatch.setattr(workers, "_prepare_chunk", parser)
    names = [f"a{i}.py" for i in range(5)] + ["evil.py"] + [f"b{i}.py" for i in range(5)]
    tasks = []
    for name in names:
        (tmp_path / name).write_text("def f():\n    pass\n")
        tasks.append((FoundFile(name, 20, 0, 0), None))
    with Workers(processes) as pool:
        outcomes = list(pool.prepare_all(tmp_path, tasks))
    assert [found.path for found, _ in outcomes] == names
    for found, outcome in outcomes:
        assert isinstance(outcome, PreparedFile)
        assert outcome.state.skipped == (workers.CRASHED if found.path == "evil.py" else "")
        assert len(outcome.units) == (found.path != "evil.py")


def _blocks_interrupts() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def crashing_text(path: str, text: str) -> PreparedFile:
    if "evil" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return _real_text(path, text)


def test_a_text_that_crashes_has_no_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "prepare_text", crashing_text)
    with Workers(1) as pool:
        assert len(pool.prepare_text("a.py", "def f():\n    good\n").units) == 1
        assert pool.prepare_text("a.py", "def f():\n    evil\n").state.problem == workers.CRASHED
        assert len(pool.prepare_text("a.py", "def f():\n    good\n").units) == 1


def test_one_worker_is_kept_and_ends_with_its_owner(tmp_path: Path) -> None:
    with Workers(2) as pool:
        first = _made_by(pool, tmp_path)
        assert first == _made_by(pool, tmp_path)
        assert _lives(first)
    deadline = time.monotonic() + 30
    while _lives(first):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _made_by(pool: Workers, root: Path) -> int:
    """Which process prepared a file."""
    (root / "a.py").write_text("def f(): ...\n")
    [(_, outcome)] = pool.prepare_all(root, [(FoundFile("a.py", 13, 0, 0), None)])
    assert isinstance(outcome, PreparedFile)
    kept = pool._kept
    assert kept
    return kept.submit(os.getpid).result(60)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no masks of signals here")
def test_a_worker_is_born_deaf_to_an_interrupt() -> None:
    pool = workers._Pool(1)
    try:
        assert pool.submit(_blocks_interrupts).result(60)
        assert not _blocks_interrupts()
    finally:
        pool.close()


def test_a_worker_ends_with_its_pool_whatever_it_is_at() -> None:
    pool = workers._Pool(1)
    process = pool.submit(os.getpid).result(60)
    pool.submit(time.sleep, 600)
    time.sleep(0.2)
    pool.close()
    deadline = time.monotonic() + 30
    while _lives(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _lives(process: int) -> bool:
    return any(child.pid == process for child in multiprocessing.active_children())


def test_a_worker_that_sends_is_let_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.01)
    shift = workers._Shift()
    with shift:
        pass
    shift.dismiss()
    assert not ended
    with shift:
        shift.dismiss()
    assert ended == [1]


def test_processes_that_have_begun_do_what_comes_first(tmp_path: Path) -> None:
    with Workers(2) as pool:
        pool.begin()
        begun = pool._begun
        assert begun
        process = _made_by(pool, tmp_path)
        assert pool._kept is begun
        assert pool._begun is None
    deadline = time.monotonic() + 30
    while _lives(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_processes_that_have_begun_for_nothing_end() -> None:
    with Workers(2) as pool:
        pool.begin()
        assert multiprocessing.active_children()
    deadline = time.monotonic() + 30
    while multiprocessing.active_children():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_of_several_threads_is_not_forked() -> None:
    assert workers._has_one_thread() in ((True, False) if threading.active_count() == 1 else (False,))
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert not workers._has_one_thread()
    finally:
        over.set()
        thread.join()


def test_much_begins_before_the_first_outcome_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MUCH", 1)
    (tmp_path / "a.py").write_text("def f(): ...\n")
    with Workers(1) as pool:
        outcomes = pool.prepare_all(tmp_path, [(FoundFile("a.py", 13, 0, 0), None)])
        assert multiprocessing.active_children()
        assert len(list(outcomes)) == 1
        assert pool._kept is None
