"""How fast and how heavy, on a made-up tree (or a real one), printed as one JSON object.

    python -m tests.bench.speed [--units N] [--root FOLDER] [--model NAME|DIR]

cold_index_s        `index` of a folder never seen, whole process
noop_search_s       a `search` with nothing changed since, whole process, start included
batch_s             `search --batch` of 20 questions, the same
query_ms            inside a process, the index warm: p50 and p99
resident_mb         of that process after all questions, and how much of it came with the imports
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from .made_up import questions, write_tree

UNITS = 20_000
BATCH = 20
QUERIES = 300
WARM_UP = 20
REPEATS = 3
"""Of the short measurements; the median is told."""


def main() -> int:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        root, cache = options.root, Path(scratch, "cache")
        if root is None:
            root = Path(scratch, "tree")
            write_tree(root, options.units)
        print(json.dumps(_measured(root, cache, options.model, Path(scratch, "questions.txt")), indent=2))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speed", description="speed and memory, as JSON")
    parser.add_argument("--units", type=int, default=UNITS, help="functions of the made-up tree (default: %(default)s)")
    parser.add_argument("--root", type=Path, help="a real folder instead of the made-up one")
    parser.add_argument("--model", default="default", help="default, or a bundle's folder")
    return parser.parse_args()


def _measured(root: Path, cache: Path, model: str, batch: Path) -> dict[str, Any]:
    batch.write_text("\n".join(questions(BATCH)), "utf-8")
    shared = ("--model", model, "--cache-dir", str(cache), "--json")
    report, cold = _command("index", str(root), *shared)
    _, noop = _median(lambda: _command("search", questions(1)[0], str(root), *shared))
    _, whole_batch = _median(lambda: _command("search", "--batch", str(batch), str(root), *shared))
    return {
        "files": report["files"],
        "units": report["units"],
        "embedded": report["embedded"],
        "cold_index_s": round(cold, 3),
        "noop_search_s": round(noop, 3),
        "batch_s": round(whole_batch, 3),
        **_inside(root, cache, model),
    }


def _median(measure: Any) -> tuple[Any, float]:
    runs = [measure() for _ in range(REPEATS)]
    return runs[0][0], statistics.median(seconds for _, seconds in runs)


def _command(*arguments: str) -> tuple[dict[str, Any], float]:
    """One run of the program: the first JSON object that it printed, and its seconds."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "server", *arguments], stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - start
    return json.loads(done.stdout.decode().splitlines()[0]), seconds


def _inside(root: Path, cache: Path, model: str) -> dict[str, Any]:
    """The measurements inside a process: this one, which has not indexed anything."""
    from server.embed.bundle import Bundle, resolve_model
    from server.index.index import Index
    from server.search.query import parse_query
    from server.search.searcher import Searcher
    from server.settings import Settings

    imported = _resident_mb()
    settings = replace(Settings(), cache_dir=cache, model=model)
    with closing(Index.open(root, Bundle.load(resolve_model(model)), settings)) as index:
        searcher = Searcher(index)
        start = time.perf_counter()
        searcher.search(parse_query(questions(1)[0]))
        first = time.perf_counter() - start
        took = []
        for question in questions(WARM_UP + QUERIES)[1:]:
            start = time.perf_counter()
            searcher.search(parse_query(question))
            took.append((time.perf_counter() - start) * 1000)
        resident = _resident_mb()
    cuts = statistics.quantiles(took[WARM_UP:], n=100)
    return {
        "first_query_s": round(first, 3),
        "query_ms": {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2)},
        "resident_mb": {"imports": round(imported), "all": round(resident)},
    }


def _resident_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    sys.exit(main())
