"""What a server and its children take of the machine: memory, CPU, watches, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

STRACE = ("strace", "-f", "-qq", "-y", "-e", "trace=open,openat,openat2", "--seccomp-bpf", "-o")
"""And the file for the trace, and the command."""

_OPENED = re.compile(r" = \d+<(/.+)>$")


def family(pid: int) -> list[psutil.Process]:
    """The process and all that come from it, itself first."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def memory_mb(pid: int) -> dict[str, float]:
    """Resident set (rss) and what is no other process's (uss), of the server and of its children together."""
    found = {"rss": 0.0, "uss": 0.0, "children_rss": 0.0, "children_uss": 0.0, "children": 0}
    for number, process in enumerate(family(pid)):
        with suppress(psutil.NoSuchProcess):
            memory = process.memory_full_info()
            before = "children_" if number else ""
            found[f"{before}rss"] += memory.rss / 1e6
            found[f"{before}uss"] += memory.uss / 1e6
            found["children"] += bool(number)
    return {name: round(value) for name, value in found.items()}


def cpu_seconds(pid: int) -> float:
    """CPU time, user and system, of the server and of its children that live."""
    times = [process.cpu_times() for process in family(pid)]
    return float(sum(each.user + each.system for each in times))


def threads(pid: int) -> int:
    """Of the server alone."""
    return int(psutil.Process(pid).num_threads())


def inotify_watches(pid: int) -> int:
    """Of the server and its children."""
    return sum(
        info.read_text().count("inotify wd:")
        for process in family(pid)
        for info in Path(f"/proc/{process.pid}/fdinfo").iterdir()
    )


def folder_mb(folder: Path) -> float:
    """Size of all files in a folder."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def opened_files(trace: Path, root: Path) -> Iterator[Path]:
    """Files below `root` that a process opened, by the trace of STRACE; folders are listed, which is no reading."""
    for line in trace.read_text(errors="replace").splitlines():
        if (found := _OPENED.search(line)) and (path := Path(found[1])).is_relative_to(root) and not path.is_dir():
            yield path
