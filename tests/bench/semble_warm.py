"""Semble's searches inside of one process, its index warm: run by semble's own interpreter. Prints what warm.py does.

python semble_warm.py ROOT QUESTIONS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Measure and print."""
    begin = time.perf_counter()
    index_class = import_module("semble.index").SembleIndex  # only its own environment has it

    root, questions = sys.argv[1:]
    imported = resident_mb()
    index = index_class.from_path(root)
    opened_s = time.perf_counter() - begin
    figures = searches(questions, lambda question: index.search(question, top_k=10), opened_s)
    print(json.dumps(figures | {"imports_mb": imported, "units": len(index.chunks)}))


def searches(questions: str, search: Callable[[str], object], opened_s: float) -> dict[str, object]:
    """Ask each line of a file; the figures of it that stand in both peers' output."""
    took = []
    for question in Path(questions).read_text("utf-8").splitlines():
        start = time.perf_counter()
        search(question)
        took.append((time.perf_counter() - start) * 1000)
    return {
        "open_s": opened_s,
        "first_answer_s": opened_s + took[0] / 1000,
        "took_ms": took,
        "resident_mb": resident_mb(),
    }


def resident_mb() -> float:
    """Of this process, now, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    main()
