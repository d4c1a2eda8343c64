"""Whether an index tells the truth: what a cache holds for a folder, beside an index that is built from nothing.

    python -m tests.bench.truth ROOT CACHE

Compared are files, units, ranges, full text, vectors, and what searches find; ids are nobody's business. It prints
one JSON object, and ends with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from server.parse import NotText, Unit, decode, language_of, parse, settled
from server.settings import Settings
from server.workspace.discover import content_reason, discover

from .client import Found, Gone, Refused, Server, run_command

DATABASE = "index.sqlite"
DERIVED = ("vectors-*.usearch", "vectors-*.f16", "postings-*.segment")
QUESTIONS = 20
TOLD_DIFFERENCES = 3
"""Of one comparison; the first say enough."""
CLOSE = 1e-3
"""Vectors are kept in float16."""
SAME_SCORE = 2e-3
TIE = 5e-3
"""Hits whose scores are so near may change places, and the last of them with one that is left out."""
CLOCK_SLACK_NS = 20_000_000
"""By how much a file's time may lie before the clock's: the kernel stamps with its last tick."""
LEAST_COMMON = 0.9
"""Share of hits that two searches which are not exact have in common, over all questions."""

_COLUMNS = (
    "path digest language skipped key name container kind start_line end_line name_line name_start name_end"
    " preview terms"
).split()
_CONTENT = (
    "SELECT f.path, f.digest, f.language, f.skipped, u.key, u.name, u.container, u.kind, u.start_line, u.end_line,"
    " u.name_line, u.name_start, u.name_end, u.preview, t.terms,"
    " e.vectors, p.vectors FROM files f LEFT JOIN units u ON u.file = f.id LEFT JOIN terms t ON t.unit = u.id"
    " LEFT JOIN embeddings e ON e.key = u.key LEFT JOIN embeddings p ON u.id IS NOT NULL AND p.key = f.path_key"
)
_ORPHANS = (
    ("full text of no unit", "SELECT count(*) FROM terms WHERE unit NOT IN (SELECT id FROM units)"),
    ("units of no file", "SELECT count(*) FROM units WHERE file NOT IN (SELECT id FROM files)"),
    ("units without full text", "SELECT count(*) FROM units WHERE id NOT IN (SELECT unit FROM terms)"),
)

Row: TypeAlias = tuple[Any, ...]
Answer: TypeAlias = list[Found]


# -- what an index holds


def index_folder(cache: Path) -> Path:
    """The folder of the one workspace that a cache has an index for."""
    [folder] = (found for found in cache.iterdir() if found.is_dir())
    return folder


@contextmanager
def reading(cache: Path) -> Iterator[sqlite3.Connection]:
    """The database, as a stranger who only looks."""
    uri = f"{(index_folder(cache) / DATABASE).as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)) as database:
        yield database


def files_in(cache: Path) -> dict[str, bytes]:
    """Path -> digest of all that the index has; nothing where there is no index yet."""
    try:
        with reading(cache) as database:
            return dict(database.execute("SELECT path, digest FROM files"))
    except (sqlite3.OperationalError, OSError, ValueError):
        return {}


def files_on_disk(root: Path) -> dict[str, bytes]:
    """The same of all that it should have."""
    paths = (found.path for found in discover(root, Settings()))
    return {path: _digest((root / path).read_bytes()) for path in paths}


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def differences(cache: Path, fresh: Path) -> list[str]:
    """What an index has otherwise than a fresh one, in words; empty if nothing."""
    with reading(cache) as one, reading(fresh) as other:
        found = _orphans(one)
        mine, others = (sorted(db.execute(_CONTENT), key=repr) for db in (one, other))
    found += _unequal([row[:-2] for row in mine], [row[:-2] for row in others])
    if found:
        return found
    return _unequal_vectors(mine, others)


def _orphans(database: sqlite3.Connection) -> list[str]:
    counted = ((what, database.execute(sql).fetchone()[0]) for what, sql in _ORPHANS)
    [(sound,)] = database.execute("PRAGMA quick_check(1)").fetchall()
    return [f"{count} {what}" for what, count in counted if count] + ([] if sound == "ok" else [f"damaged: {sound}"])


def _unequal(mine: Sequence[Row], others: Sequence[Row]) -> list[str]:
    more, less = Counter(mine) - Counter(others), Counter(others) - Counter(mine)
    found = [f"too much: {_shown(row)}" for row in list(more)[:TOLD_DIFFERENCES]]
    found += [f"missing: {_shown(row)}" for row in list(less)[:TOLD_DIFFERENCES]]
    left = len(more) + len(less) - len(found)
    return [*found, f"and {left} rows more"] if left else found


def _shown(row: Row) -> str:
    values = dict(zip(_COLUMNS, row, strict=True))
    return f"{values['path']}:{values['start_line']}-{values['end_line']} {values['kind']} {values['name']!r}"


def _unequal_vectors(mine: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Rows that are equal else, sorted by all but their vectors' values."""
    found = []
    for one, other in zip(mine, others, strict=True):
        for a, b in zip(one[-2:], other[-2:], strict=True):
            if (a is None) != (b is None):
                found.append(f"a vector is missing: {_shown(one[:-2])}")
            elif a is not None and (len(a) != len(b) or not _close(_floats(a), _floats(b), CLOSE)):
                found.append(f"another vector: {_shown(one[:-2])}")
    return found[:TOLD_DIFFERENCES]


def _floats(blob: bytes) -> Any:
    return np.frombuffer(blob, np.float16).astype(np.float32)


def _close(one: Any, other: Any, by: float) -> bool:
    return bool(np.allclose(one, other, atol=by, rtol=0))


def untidy(cache: Path) -> list[str]:
    """Files that have no business in a cache at rest, and those that others may read."""
    folder = index_folder(cache)
    locks = {"writer.lock", "making.lock"}
    known = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", *locks, "CACHEDIR.TAG", f"{DATABASE}.damaged"}
    derived = [sorted(file.name for file in folder.glob(pattern)) for pattern in DERIVED]
    strays = {file.name for file in folder.iterdir()}.difference(known, *derived)
    found = [f"left behind: {name}" for name in sorted(strays)]
    found += [f"{len(names)} files of one sort: {', '.join(names)}" for names in derived if len(names) > 1]
    open_to_others = [each.name for each in (folder, *folder.iterdir()) if each.stat().st_mode & 0o077]
    return found + [f"open to others: {name}" for name in open_to_others]


def work_done_twice(cache: Path) -> int:
    """Embeddings that were stored though they were there: their ids are never used again, so the gaps tell."""
    with reading(cache) as database:
        [(last,)] = database.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'embeddings'").fetchall()
    return int(last or 0) - embeddings_in(cache)


def embeddings_in(cache: Path) -> int:
    """How many are stored, of code and of paths."""
    with reading(cache) as database:
        return int(database.execute("SELECT count(*) FROM embeddings").fetchone()[0])


# -- what searches find


def questions_about(cache: Path, count: int = QUESTIONS, seed: int = 0) -> list[str]:
    """Names, and words of signatures, of what is in an index."""
    with reading(cache) as database:
        names = [row[0] for row in database.execute("SELECT DISTINCT name FROM units WHERE name != '' ORDER BY name")]
        previews = [row[0] for row in database.execute("SELECT DISTINCT preview FROM units ORDER BY preview")]
    draw = random.Random(seed)
    chosen = draw.sample(names, min(count // 2, len(names)))
    chosen += [
        " ".join(re.findall(r"\w+", preview)[:8])
        for preview in draw.sample(previews, min(count - count // 2, len(previews)))
    ]
    return [text for text in chosen if text.strip() and ":" not in text]


def answers(root: Path, cache: Path, queries: Sequence[str], only: str | None = None) -> list[Answer]:
    """What the command line finds, without an update before."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as batch:
        batch.write("\n".join(queries))
        batch.flush()
        arguments = ["--batch", batch.name, str(root), "--no-index", "--json", "--cache-dir", str(cache)]
        printed = run_command("search", *arguments, *(["--only", only] if only else []))
    return [[_of_json(hit) for hit in json.loads(line)["hits"]] for line in printed.splitlines()]


def _of_json(hit: dict[str, Any]) -> Found:
    return Found(
        hit["path"], hit["start_line"] - 1, hit["end_line"] - 1, hit["name"], hit["preview"], float(hit["score"])
    )


def unlike(queries: Sequence[str], mine: Sequence[Answer], others: Sequence[Answer], exact: bool) -> list[str]:
    """Where two indexes answer otherwise.

    Not exact are searches that choose a few hundred candidates first: which of those at the edge come in is told by
    a graph, or by the order of ids. They have to agree on the first hit, and on almost all.
    """
    found = []
    for query, a, b in zip(queries, mine, others, strict=True):
        sure = max((hits[-1].score for hits in (a, b) if hits), default=0) + TIE
        scores = [hit.score for hit in a], [hit.score for hit in b]
        first = max(sure, *(hits[0].score - TIE for hits in (a, b) if hits)) if a and b else sure
        if exact and (len(a) != len(b) or not _close(*scores, SAME_SCORE)):
            found.append(f"{query!r}: scores {_listed(a)}, fresh {_listed(b)}")
        elif not _places(a, sure if exact else first) <= _places(b) or not _places(
            b, sure if exact else first
        ) <= _places(a):
            found.append(f"{query!r}: {_listed(a)}, fresh {_listed(b)}")
    common = [len(_places(a) & _places(b)) / max(len(a), len(b), 1) for a, b in zip(mine, others, strict=True)]
    if not found and (share := sum(common) / max(len(common), 1)) < LEAST_COMMON:
        found.append(f"only {share:.2f} of all hits in common")
    return found[:TOLD_DIFFERENCES]


def _places(hits: Answer, least: float = -np.inf) -> set[tuple[str, int, str]]:
    return {(hit.path, hit.start, hit.name) for hit in hits if hit.score > least}


def _listed(hits: Answer) -> str:
    return " ".join(f"{hit.path}:{hit.start}:{hit.name}={hit.score}" for hit in hits[:5])


# -- the whole comparison


def lies(root: Path, cache: Path, ask: Callable[[Sequence[str]], list[Answer]], graph: bool = False) -> list[str]:
    """All in which the cache's index of `root`, and what `ask` finds by it, is other than a fresh one's.

    `graph` says that vectors may be in a graph, which finds almost all of the nearest; without one, each side of
    the search has to find exactly the same.
    """
    with tempfile.TemporaryDirectory(prefix="meaning-fresh-") as scratch:
        fresh = Path(scratch)
        run_command("index", str(root), "--json", "--cache-dir", str(fresh))
        found = differences(cache, fresh)
        if found or not (queries := questions_about(fresh)):
            return found
        found += unlike(queries, ask(queries), answers(root, fresh, queries), exact=False)
        for only in () if graph else ("lexical", "dense"):
            mine, others = (answers(root, each, queries, only) for each in (cache, fresh))
            found += [f"{only}: {lie}" for lie in unlike(queries, mine, others, exact=True)]
    return found


# -- a server that is watched


@lru_cache(maxsize=4096)
def _possible(path: str, data: bytes) -> frozenset[tuple[str, int, int, str]]:
    """What a hit in this text may be."""
    return frozenset((unit.name, unit.start_line, unit.end_line, _preview(unit)) for unit in _units(path, data))


def _units(path: str, data: bytes) -> list[Unit]:
    if content_reason(data, path):
        return []
    try:
        text = decode(data)
    except NotText:
        return []
    language = settled(language_of(path, text[:200].split("\n", 1)[0]), text)
    return parse(text, language, PurePosixPath(path).stem)


def _preview(unit: Unit) -> str:
    return unit.signature or next((line.strip() for line in unit.text.splitlines() if line.strip()), "")


def untrue(root: Path, hit: Found, asked_ns: int) -> str | None:
    """What is wrong with a hit, by the file as it is; None if nothing, or if the file changed since the question."""
    try:
        here = (hit.name, hit.start, hit.end, hit.preview) in _possible(hit.path, (root / hit.path).read_bytes())
    except OSError as error:
        here, why = False, error.strerror
    else:
        why = "no such unit there"
    if here or _changed_since(root / hit.path, asked_ns - CLOCK_SLACK_NS):
        return None
    return f"{hit.path}:{hit.start}-{hit.end} {hit.name!r}: {why}"


def _changed_since(path: Path, moment_ns: int) -> bool:
    """Whether the file, or the nearest folder that is still there, was changed after a moment."""
    there = next(each for each in (path, *path.parents) if os.path.lexists(each))
    try:
        return there.lstat().st_ctime_ns >= moment_ns
    except OSError:
        return True


def checked_search(server: Server, query: str, patience: float) -> tuple[float, list[str]]:
    """How many seconds the answer took, and what is untrue in it."""
    asked_ns, start = time.time_ns(), time.monotonic()
    hits = server.search(query, patience=patience)
    seconds = time.monotonic() - start
    return seconds, [f"{query!r}: {lie}" for hit in hits if (lie := untrue(server.root, hit, asked_ns))]


class Asker:
    """Somebody who searches all the time, in a thread, and believes no hit that they have not looked at."""

    PAUSE = 0.02
    PATIENCE = 10.0
    """Seconds for one answer; whatever the server is at, more is a fault."""

    def __init__(self, server: Server, queries: Sequence[str]) -> None:
        self.failures: list[str] = []
        self.seconds: list[float] = []
        """How long each answer took."""
        self._server, self.queries = server, list(queries)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Asker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(self.PAUSE):
            query = self.queries[turn % len(self.queries)]
            turn += 1
            try:
                seconds, lies_told = checked_search(self._server, query, self.PATIENCE)
            except (Gone, Refused, TimeoutError) as error:
                self.failures.append(f"{query!r}: {type(error).__name__}: {error}")
                if isinstance(error, Gone):
                    return
            else:
                self.seconds.append(seconds)
                self.failures += lies_told


POLL = 0.01


def until_true(server: Server, cache: Path, patience: float = 60.0) -> float:
    """Waits until the index has exactly the files on disk, and the server says that it is done; returns the seconds.

    Nobody may change a file meanwhile. Raises TimeoutError with what is not as it should be, and Gone.
    """
    start = time.monotonic()
    wanted = files_on_disk(server.root)
    while True:
        if (ended := server.process.poll()) is not None:
            raise Gone(f"the server has ended with {ended}: {server.log.read_text('utf-8', 'replace')[-1000:]}")
        there = files_in(cache)
        status = server.status() if there == wanted else None
        if status and status["state"] == "ready" and not status["pending"]:
            return time.monotonic() - start
        if time.monotonic() - start > patience:
            wrong = sorted(path for path in {*there, *wanted} if there.get(path) != wanted.get(path))
            raise TimeoutError(f"not true after {patience} s: {len(wrong)} files, {wrong[:3]}; {server.status()}")
        time.sleep(POLL)


def spread(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and the greatest of some seconds."""
    if not values:
        return {}
    p50, p99 = np.quantile(values, (0.5, 0.99))
    return {"p50": round(float(p50), 4), "p99": round(float(p99), 4), "max": round(max(values), 4)}


def told(figures: dict[str, Any]) -> int:
    """Print a program's figures; its exit status."""
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    return 1 if figures["failures"] else 0


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.truth", description="an index beside a fresh one")
    parser.add_argument("root", type=Path)
    parser.add_argument("cache", type=Path)
    options = parser.parse_args()
    root = options.root.resolve()
    failures = lies(root, options.cache, lambda queries: answers(root, options.cache, queries))
    return told({"files": len(files_in(options.cache)), "failures": failures + untidy(options.cache)})


if __name__ == "__main__":
    sys.exit(main())
