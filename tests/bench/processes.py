"""What a command costs: time, processor, and the most memory that it and its children held together."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_EVERY = 0.1
"""Seconds between two looks at memory; a look at much memory takes longer, and then there are fewer."""
AT_MOST_A_SHARE = 20
"""Of the time that a look took: so many times as long is waited for the next."""


@dataclass(frozen=True)
class Cost:
    """Of one run, whole processes, start included."""

    seconds: float
    cpu_seconds: float
    """User and system, of the process and all that it waited for."""
    peak_mb: float
    """Proportional set size, in 10^6 bytes: a page that several processes share counts once."""
    output: str


class CommandFailed(Exception):
    """A command ended with another status than 0."""


def run(
    command: Sequence[str],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    fine: Sequence[int] = (0,),
) -> Cost:
    """Run to the end. Raises CommandFailed if the status is none of the `fine` ones, with the command's last words."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
        )
        with peak_memory(process.pid) as peak:
            _, status, used = os.wait4(process.pid, 0)  # tells what the children used, too
            seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode not in fine:
            last = err.read().decode(errors="replace")[-500:]
            raise CommandFailed(f"{' '.join(command[:4])} ended with {process.returncode}: {last}")
        return Cost(seconds, used.ru_utime + used.ru_stime, peak[0], out.read().decode(errors="replace"))


@contextmanager
def peak_memory(pid: int) -> Iterator[list[float]]:
    """The most memory of a process and all that come from it while the block runs: one number, in MB, which grows."""
    peak, over = [0.0], threading.Event()

    def look() -> None:
        took = 0.0
        while not over.wait(max(SAMPLE_EVERY, AT_MOST_A_SHARE * took)):
            begin = time.perf_counter()
            peak[0] = max(peak[0], proportional_mb(pid))
            took = time.perf_counter() - begin

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def proportional_mb(pid: int) -> float:
    """Memory of a process and its children now; 0 if it is gone."""
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error, OSError):
                total += _proportional(process.pid)
    return total / 1e6


def _proportional(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
