"""How the server does while code changes: a real process over stdio, measured from the client's side. One JSON object.

    python -m tests.bench.live [MEASUREMENT …] [--units N] [--root FOLDER] [--model NAME|DIR]

save        one function edited: ms until it is found, by a rename over the file that nobody tells of, and in place with
            didSave; embeddings computed for each
typing      the same in an open document that is never saved
checkout    git changes 2,000 files: seconds until all is found and nothing is pending; searches all the while
busy        searches during a first index, and what they cost it; an edit in the middle of it
start       from the process's start to `initialize` and to the first answer; memory; files that were opened
idle        CPU of a minute in which nothing happens; threads and watches
growth      memory and cache after many edits of one file
watches     inotify watches beside a large node_modules

With --units, edits, files and seconds become fewer in proportion. With --root it is a copy of FOLDER that is measured
(its Python, JavaScript, TypeScript and Go files are those that are edited), whose size is as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import usage
from .edits import BRANCHES, branch_names, editable, edited, git, make_branches, new_name, write
from .live_server import PATIENCE, LiveServer, SteadyQuestions
from .made_up import questions, write_tree

SAVES = 100
"""Edits of each way to save."""
CHECKED_OUT_FILES = 2_000
"""Files that a checkout changes."""
ASK_EVERY = 0.1
"""Seconds between two questions of somebody who asks all the while."""
REST_SECONDS = 10
"""For the same searches when the index is done: what of their time is the machine's."""
STARTS = 5
SEARCHES = 20
"""After the first, before memory is looked at again."""
IDLE_SECONDS = 60
GROWTH_STEPS = (0, 200, 1_000, 5_000, 10_000)
"""Edits after which memory is looked at."""
DEPENDENCIES = 5_000
"""Folders in node_modules."""
SETTLE_SECONDS = 2.1
"""After the index is ready, for whatever the server puts in order then; and before, so that no file is so young that
its times cannot be trusted."""

IGNORE_FILES = frozenset({".gitignore", ".ignore", ".meaningignore", "exclude"})
"""Files that a start may read."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What is measured on."""

    scratch: Path
    root: Path | None
    """A real folder, of which copies are measured."""
    wanted_units: int | None
    model: str

    def tree(self, units: int) -> Path:
        """A workspace of so many units, if the user asks for no other."""
        tree = Path(tempfile.mkdtemp(prefix="tree-", dir=self.scratch)).resolve()
        if self.root:
            shutil.copytree(self.root, tree, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
        else:
            write_tree(tree, self.wanted_units or units)
            (tree / ".gitignore").write_text("*.log\n")
        time.sleep(SETTLE_SECONDS)
        return tree

    def share(self, number: int, units: int) -> int:
        """`number` as it is for so many units, less for fewer, never none."""
        return max(1, min(number, number * (self.wanted_units or units) // units))

    def server(self, root: Path, cache: Path | None = None, tracer: Sequence[str] = ()) -> LiveServer:
        """A server for a folder; with an empty cache if none is given."""
        return LiveServer(root, cache or Path(tempfile.mkdtemp(prefix="cache-", dir=self.scratch)), self.model, tracer)

    @contextmanager
    def settled(self, root: Path, cache: Path | None = None) -> Iterator[LiveServer]:
        """A server whose index is ready and which has nothing left to do."""
        with self.server(root, cache) as server:
            server.greet()
            server.until_ready()
            time.sleep(SETTLE_SECONDS)
            yield server


# -- the measurements


def save(bench: Bench, units: int = 20_000) -> Figures:
    """From save to searchable."""
    root = bench.tree(units)
    files = editable(root)[: bench.share(SAVES, units)]
    found: Figures = {}
    with bench.settled(root) as server:
        for way, save_file in (("renamed_ms", _save_by_rename), ("did_save_ms", _save_in_place)):
            took, embedded = [], []
            for number, file in enumerate(files):
                name, before = new_name(way, number), _embeddings(server.cache)
                text = edited(file, [name])
                start = time.perf_counter()
                save_file(server, file, text)
                took.append((server.until_found(name) - start) * 1000)
                embedded.append(_embeddings(server.cache) - before)
            found[way] = _spread(took) | {"embeddings_per_edit": sorted(set(embedded))}
    return found


def typing(bench: Bench, units: int = 20_000) -> Figures:
    """From a keystroke in an open document, never saved, to searchable."""
    root = bench.tree(units)
    took = []
    with bench.settled(root) as server:
        before = _embeddings(server.cache)
        for number, file in enumerate(editable(root)[: bench.share(SAVES, units)]):
            name = new_name("typing", number)
            with server.opened(file, edited(file, [])) as change:
                start = time.perf_counter()
                change(edited(file, [name]))
                took.append((server.until_found(name) - start) * 1000)
        return _spread(took) | {"embeddings_stored": _embeddings(server.cache) - before}


def checkout(bench: Bench, units: int = 60_000) -> Figures:
    """From `git checkout` to all true, there and back."""
    root = bench.tree(units)
    files = editable(root)[: bench.share(CHECKED_OUT_FILES, units)]
    make_branches(root, files)
    found: Figures = {"files": len(files)}
    with bench.settled(root) as server:
        for way, branch in zip(("there", "back"), reversed(BRANCHES), strict=True):
            embedded = _embeddings(server.cache)
            with SteadyQuestions(server, questions(50), ASK_EVERY) as steady:
                start = time.perf_counter()
                git(root, "checkout", "-q", branch)
                switched = time.perf_counter()
                server.until_found(branch_names(branch, len(files) - 1)[-1])
                server.until_ready()
                end = time.perf_counter()
            found[way] = {
                "git_s": round(switched - start, 2),
                "true_s": round(end - start, 2),
                "embeddings": _embeddings(server.cache) - embedded,
                "search_ms": _spread(steady.took),
                "refused": steady.refused,
            }
    return found


def busy(bench: Bench, units: int = 50_000) -> Figures:
    """A first index, without and with somebody who searches and edits."""
    root = bench.tree(units)
    with bench.server(root) as server:
        server.greet()
        start = time.perf_counter()
        server.until_ready()
        alone = time.perf_counter() - start
    files = sorted(editable(root))
    with bench.server(root) as server:
        server.greet()
        start = time.perf_counter()
        with SteadyQuestions(server, questions(50), ASK_EVERY) as steady:
            left = _until_half_done(server)
            edits = _edit_at_once(server, {"of_a_file_taken_up": files[0], "of_a_file_to_come": files[-1]})
            server.until_ready()
            end = time.perf_counter()
        with SteadyQuestions(server, questions(50), ASK_EVERY) as at_rest:
            time.sleep(bench.share(REST_SECONDS, units))
    return {
        "index_s": round(alone, 2),
        "index_and_searches_s": round(end - start, 2),
        "search_ms": _spread(steady.took),
        "search_at_rest_ms": _spread(at_rest.took),
        "refused": steady.refused,
        "files_left_at_edits": left,
        "edit_ms": edits,
    }


def start(bench: Bench, units: int = 100_000) -> Figures:
    """A start on an index that was built before."""
    root, cache = bench.tree(units), Path(tempfile.mkdtemp(prefix="cache-", dir=bench.scratch))
    with bench.settled(root, cache):
        pass
    runs = [_one_start(bench, root, cache) for _ in range(STARTS)]
    return {
        **{name: round(statistics.median(run[name] for run in runs)) for name in ("initialize_ms", "first_answer_ms")},
        "first_answers_ms": sorted(round(run["first_answer_ms"]) for run in runs),
        "mb_after_first": runs[-1]["mb_after_first"],
        f"mb_after_{SEARCHES}_more": runs[-1]["mb_after_more"],
        "opened": _opened_by_start(bench, root, cache),
    }


def idle(bench: Bench, units: int = 20_000) -> Figures:
    """Silence."""
    root = bench.tree(units)
    with bench.settled(root) as server:
        seconds = bench.share(IDLE_SECONDS, units)
        before = usage.cpu_seconds(server.pid)
        time.sleep(seconds)
        used = usage.cpu_seconds(server.pid) - before
        return {
            "seconds": seconds,
            "cpu_percent": round(100 * used / seconds, 2),
            "threads": usage.threads(server.pid),
            "processes": len(usage.family(server.pid)),
            "inotify_watches": usage.inotify_watches(server.pid),
            "folders": sum(path.is_dir() for path in root.rglob("*")) + 1,
            "mb": usage.memory_mb(server.pid),
        }


def growth(bench: Bench, units: int = 2_000) -> Figures:
    """Many edits of one file, each waited for."""
    root = bench.tree(units)
    file = editable(root)[0]
    found: Figures = {}
    with bench.settled(root) as server:
        done, begin = 0, time.perf_counter()
        for step in [bench.share(step, units) if step else 0 for step in GROWTH_STEPS]:
            for number in range(done, step):
                name = new_name("growth", number)
                _save_in_place(server, file, edited(file, [name]))
                server.until_found(name)
            done = max(done, step)
            seconds = round(time.perf_counter() - begin, 1)
            size = usage.folder_mb(server.cache)
            found[str(step)] = {**usage.memory_mb(server.pid), "cache_mb": size, "seconds": seconds}
            _say(f"growth: {step} edits: {found[str(step)]}")
    return found


def watches(bench: Bench, units: int = 2_000) -> Figures:
    """Dependencies beside the code cost no watch."""
    root = bench.tree(units)
    folders = sum(path.is_dir() for path in root.rglob("*")) + 1
    for number in range(bench.share(DEPENDENCIES, units)):
        package = root / "node_modules" / f"package-{number // 5}" / f"part-{number % 5}"
        package.mkdir(parents=True)
        (package / "index.js").write_text(f"function part{number}() {{}}\n")
    with bench.settled(root) as server:
        return {"inotify_watches": usage.inotify_watches(server.pid), "folders_of_code": folders}


MEASUREMENTS: dict[str, Callable[[Bench], Figures]] = {
    each.__name__: each for each in (save, typing, checkout, busy, start, idle, growth, watches)
}


# -- parts of measurements


def _until_half_done(server: LiveServer) -> int:
    """Waits until half of the files are indexed; returns how many are left."""
    while True:
        status = server.status()
        if status["state"] == "ready" or 0 < status["total"] <= 2 * status["done"]:
            return int(status["total"] - status["done"])
        time.sleep(0.2)


def _edit_at_once(server: LiveServer, files: Mapping[str, Path]) -> dict[str, int]:
    """Edits the files; returns for each the milliseconds until it was found."""
    names = {which: new_name(which, 0) for which in files}
    saved = time.perf_counter()
    for which, file in files.items():
        _save_in_place(server, file, edited(file, [names[which]]))
    with ThreadPoolExecutor() as pool:
        found = {which: pool.submit(server.until_found, name, PATIENCE, ASK_EVERY) for which, name in names.items()}
    return {which: round((future.result() - saved) * 1000) for which, future in found.items()}


def _one_start(bench: Bench, root: Path, cache: Path) -> Figures:
    first, *more = questions(1 + SEARCHES)
    with bench.server(root, cache) as server:
        hello = server.greet()
        answer = server.search(first)
        memory = usage.memory_mb(server.pid)
        assert answer.result["items"], "the index was not there"
        for question in more:
            server.search(question)
        server.until_ready()
        return {
            "initialize_ms": (hello.at - server.started) * 1000,
            "first_answer_ms": (answer.at - server.started) * 1000,
            "mb_after_first": memory,
            "mb_after_more": usage.memory_mb(server.pid),
        }


def _opened_by_start(bench: Bench, root: Path, cache: Path) -> Figures | None:
    """How many files of the workspace a start opens that finds nothing changed; None without strace."""
    if not shutil.which(usage.STRACE[0]):
        return None
    trace = bench.scratch / "trace"
    with bench.server(root, cache, (*usage.STRACE, str(trace))) as server:
        server.greet()
        server.until_ready()
        time.sleep(SETTLE_SECONDS)
    opened = {path.relative_to(root).as_posix() for path in usage.opened_files(trace, root)}
    other = sorted(path for path in opened if Path(path).name not in IGNORE_FILES)
    return {"ignore_files": len(opened) - len(other), "other_files": len(other), "for_example": other[:3]}


def _save_by_rename(_: LiveServer, file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.tmp")
    write(beside, text)
    beside.replace(file)


def _save_in_place(server: LiveServer, file: Path, text: str) -> None:
    write(file, text)
    server.saved(file)


def _embeddings(cache: Path) -> int:
    """Embeddings in the only index of a cache folder."""
    (database,) = cache.glob("*/index.sqlite")
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM embeddings").fetchone()[0])


# -- telling


def _spread(values: Sequence[float]) -> Figures:
    cuts = statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else [*values] * 99
    found = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values)}
    return {"n": len(values)} | {name: round(value, 1) for name, value in found.items()}


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main() -> int:
    """Measure and print."""
    options = _options()
    found: Figures = {}
    for name in options.measurements or MEASUREMENTS:
        _say(f"{name} …")
        load, begin = [os.getloadavg()[0]], time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="live-") as scratch:
            figures = MEASUREMENTS[name](Bench(Path(scratch), options.root, options.units, options.model))
        load += [os.getloadavg()[0]]
        found[name] = {
            **figures,
            "load": [round(each, 2) for each in load],
            "whole_s": round(time.perf_counter() - begin),
        }
        _say(f"{name}: {json.dumps(found[name])}")
    print(json.dumps(found, indent=2))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measurements", nargs="*", choices=[[], *MEASUREMENTS], metavar="MEASUREMENT", help="(all)")
    parser.add_argument("--units", type=int, help="functions of the made-up tree (default: what each measurement asks)")
    parser.add_argument("--root", type=Path, help="a real folder instead of the made-up one")
    parser.add_argument("--model", default="default", help="default, or a bundle's folder")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
