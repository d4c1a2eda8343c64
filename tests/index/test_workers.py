"""A file that crashes its parser costs that file alone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from server.index import workers
from server.index.prepare import PreparedFile
from server.index.workers import Outcome, Task, prepare_all
from server.workspace.discover import FoundFile

_real = workers._prepare_chunk


def crashing(root: Path, chunk: list[Task]) -> list[Outcome]:
    """As a parser would that runs over its memory."""
    if any(found.path == "evil.py" for found, _ in chunk):
        os.kill(os.getpid(), signal.SIGKILL)
    return _real(root, chunk)


def test_a_crash_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(workers, "_prepare_chunk", crashing)
    names = [f"a{i}.py" for i in range(5)] + ["evil.py"] + [f"b{i}.py" for i in range(5)]
    tasks = []
    for name in names:
        (tmp_path / name).write_text("def f():\n    pass\n")
        tasks.append((FoundFile(name, 20, 0, 0), None))
    outcomes = list(prepare_all(tmp_path, tasks, 2, lambda: False))
    assert [found.path for found, _ in outcomes] == names
    for found, outcome in outcomes:
        assert isinstance(outcome, PreparedFile)
        assert outcome.state.skipped == ("its parser crashed" if found.path == "evil.py" else "")
        assert len(outcome.units) == (found.path != "evil.py")
