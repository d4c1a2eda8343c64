"""Does search over many repositories at once find what search in one finds? And how fast, with how many units?

    python -m tests.bench.organisation BENCH [--repos NAME …] [--url postgresql://…]

Publishes judged repositories (see tests/bench/quality.py) to one PostgreSQL, a new one of the tests' unless a URL is
given, and asks each its questions three times: of its own index, of the organisation's with `repo:`, and of all
repositories at once, where a hit in another one is wrong. Prints NDCG and the median time of an answer for each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.services.postgres import running

from .quality import LIMIT, SCORE, _command, _place, _score

WAYS = ("alone", "repo:", "all at once")


def main() -> int:
    """Publish, ask, and print the scores."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.organisation", description=__doc__)
    parser.add_argument("bench", type=Path, help="a folder laid out by shared/bench/export_repos.py")
    parser.add_argument("--repos", nargs="+", metavar="NAME", help="these alone (default: all)")
    parser.add_argument("--url", help="a PostgreSQL with pgvector (default: one of the tests')")
    parser.add_argument("--score", type=Path, default=SCORE, metavar="SCORE.PY", help="default: %(default)s")
    options = parser.parse_args()
    specs = json.loads((options.bench / "repos.json").read_text("utf-8"))
    specs = [spec for spec in specs if not options.repos or spec["name"] in options.repos]
    with tempfile.TemporaryDirectory() as scratch, _database(options.url) as url:
        os.environ |= {"MEANING_ORG_INDEX": url, "MEANING_CACHE_DIR": str(Path(scratch, "cache"))}
        for spec in specs:
            ((sent,), seconds) = _command("publish", _root(options.bench, spec), "--name", spec["name"], "--json")
            print(f"{spec['name']:16}{sent['units']:>8} units  {seconds:6.1f} s", flush=True)
        for way in WAYS:
            options.out = Path(scratch, way)
            options.out.mkdir()
            times = [time for spec in specs for time in _ask(options, spec, way, Path(scratch, "queries.txt"))]
            print(f"\n{way}: an answer takes {statistics.median(times):.1f} ms", flush=True)
            _score(options, [spec["name"] for spec in specs])
    return 0


@contextmanager
def _database(url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    with running() as server:
        yield server.database()


def _root(bench: Path, spec: dict[str, Any]) -> str:
    return str(bench / "repos" / spec["name"] / (spec.get("benchmark_root") or ""))


def _ask(options: argparse.Namespace, spec: dict[str, Any], way: str, queries: Path) -> list[float]:
    """Ask one repository's questions in one way, write the results, and tell the milliseconds."""
    name = spec["name"]
    judged = json.loads((options.bench / "annotations" / f"{name}.json").read_text("utf-8"))
    queries.write_text("".join(item["query"] + "\n" for item in judged), "utf-8")
    where = {
        "alone": ["--no-index", *([_root(options.bench, spec)])],
        "repo:": ["--scope", "org", "--repo", name],
        "all at once": ["--scope", "org"],
    }[way]
    answers, _ = _command("search", "--batch", str(queries), "--limit", str(LIMIT), "--json", *where)
    results = [{"query": each["query"], "results": [_own(hit, name) for hit in each["hits"]]} for each in answers]
    (options.out / f"{name}.json").write_text(json.dumps(results, indent=1), "utf-8")
    return [answer["took_ms"] for answer in answers]


def _own(hit: dict[str, Any], name: str) -> dict[str, Any]:
    """A hit as it is scored: that of another repository is at no path of this one's."""
    place = _place(hit)
    return place if hit.get("repository", name) == name else place | {"path": f"another/{place['path']}"}


if __name__ == "__main__":
    sys.exit(main())
