"""Runs that end before their time: asked to stop, failing in a step, or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import export.loop
from export.state import newest
from export.trainer import Trainer

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def stopping_at(step: int) -> Iterator[None]:
    """A trainer is asked to stop, as by Ctrl-C, in this step."""
    whole = Trainer.step

    def interrupted(trainer: Trainer, at: int, *rest: Any) -> Any:
        if at == step:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(trainer, at, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", interrupted)
        yield


@contextmanager
def failing_at(step: int) -> Iterator[None]:
    """A loop's run ends in this step, whatever it may have in hand: the block has to raise KeyboardInterrupt."""
    whole = export.loop.Run._step

    def fails(run: Any, at: int, *rest: Any) -> Any:
        if at == step:
            raise KeyboardInterrupt
        return whole(run, at, *rest)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(export.loop.Run, "_step", fails)
        yield


def killed_once_saved(
    module: str, arguments: Sequence[str], out: Path, environment: Mapping[str, str] | None = None
) -> Path:
    """Runs `python -m module`, kills it as soon as it has saved a state under `out`, and returns the newest one."""
    program = [sys.executable, "-m", module, *arguments, "--save-minutes", "1e-9"]
    with subprocess.Popen(program, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as running:
        while newest(out) is None and running.poll() is None:
            time.sleep(0.001)
        running.kill()
    place = newest(out)
    assert place
    return place
