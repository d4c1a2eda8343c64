"""Search judged repositories through the command line, as a user would, and score the answers.

    python -m tests.bench.quality BENCH [--repos NAME …] [--only dense|lexical] [--out RESULTS]

BENCH is a folder that shared/bench/export_repos.py laid out. Each repository is indexed from nothing and asked its
judged questions; RESULTS/<name>.json holds the ten best hits of each, in the form that shared/bench/score.py reads.
Without --out they are scored and not kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 10
SCORE = Path(__file__).resolve().parents[3] / "shared" / "bench" / "score.py"


@dataclass(frozen=True)
class Timing:
    """What one repository took, whole processes but for `query_ms`."""

    files: int
    units: int
    index_s: float
    batch_s: float
    query_ms: float
    """Median, as the answers tell it."""


@dataclass(frozen=True)
class Judged:
    """How good the answers to all questions of a benchmark are."""

    ndcg: float
    """NDCG@10, the mean over repositories."""
    questions: int


def judged(bench: Path, score: Path, model: str) -> Judged:
    """Index and ask every repository of `bench`, and have the answers scored."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "results")
        out.mkdir()
        options = argparse.Namespace(bench=bench, model=model, only=None, out=out)
        for spec in json.loads((bench / "repos.json").read_text("utf-8")):
            _run(spec, options, Path(scratch))
        command = [
            sys.executable,
            str(score),
            str(out),
            "--bench",
            str(bench),
            "--match",
            "semble",
            "--unit",
            "chunk",
            "--json",
        ]
        told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return Judged(told["mean_over_repos"]["ndcg"], told["queries"])


def main() -> int:
    """Run the benchmark, print a line for each repository and the score."""
    options = _options()
    specs = json.loads((options.bench / "repos.json").read_text("utf-8"))
    names = options.repos or [spec["name"] for spec in specs]
    if unknown := set(names) - {spec["name"] for spec in specs}:
        print(f"quality: no such repository in {options.bench}: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    print(f"{'':16}{'files':>7}{'units':>8}{'index s':>9}{'batch s':>9}{'query ms':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        options.out = options.out or Path(scratch, "results")
        options.out.mkdir(parents=True, exist_ok=True)
        for spec in specs:
            if spec["name"] in names:
                t = _run(spec, options, Path(scratch))
                row = f"{t.files:>7}{t.units:>8}{t.index_s:>9.2f}{t.batch_s:>9.2f}{t.query_ms:>10.1f}"
                print(f"{spec['name']:16}{row}", flush=True)
        return _score(options, names)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.quality", description="NDCG on judged repositories")
    parser.add_argument("bench", type=Path, help="a folder laid out by shared/bench/export_repos.py")
    parser.add_argument("--repos", nargs="+", metavar="NAME", help="these alone (default: all)")
    parser.add_argument("--only", choices=("dense", "lexical"), help="rank by one side alone")
    parser.add_argument("--model", help="the model: default, or a bundle's folder")
    parser.add_argument("--out", type=Path, metavar="RESULTS", help="keep the results here")
    parser.add_argument("--score", type=Path, default=SCORE, metavar="SCORE.PY", help="default: %(default)s")
    return parser.parse_args()


def _run(spec: dict[str, Any], options: argparse.Namespace, scratch: Path) -> Timing:
    """Index and ask one repository; its results are written."""
    name = spec["name"]
    root = str(options.bench / "repos" / name / (spec.get("benchmark_root") or ""))
    shared = ["--json", "--cache-dir", str(scratch / "cache"), *(["--model", options.model] if options.model else [])]
    judged = json.loads((options.bench / "annotations" / f"{name}.json").read_text("utf-8"))
    queries = scratch / "queries.txt"
    queries.write_text("".join(item["query"] + "\n" for item in judged), "utf-8")

    (report,), index_s = _command("index", root, *shared)
    only = ["--only", options.only] if options.only else []
    answers, batch_s = _command("search", root, "--batch", str(queries), "--limit", str(LIMIT), *only, *shared)
    if [answer["query"] for answer in answers] != [item["query"] for item in judged]:
        raise SystemExit(f"quality: {name}: the answers are not those to the questions, in their order")
    results = [{"query": answer["query"], "results": [_place(hit) for hit in answer["hits"]]} for answer in answers]
    (options.out / f"{name}.json").write_text(json.dumps(results, indent=1), "utf-8")
    median = statistics.median(answer["took_ms"] for answer in answers)
    return Timing(report["files"], report["units"], index_s, batch_s, median)


def _place(hit: dict[str, Any]) -> dict[str, Any]:
    return {key: hit[key] for key in ("path", "start_line", "end_line")}


def _command(*arguments: str) -> tuple[list[dict[str, Any]], float]:
    """One run of the program: the JSON objects that it printed, and its seconds."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "server", *arguments], stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"quality: `meaning-lsp {' '.join(arguments)}` failed with {done.returncode}")
    return [json.loads(line) for line in done.stdout.decode().splitlines()], seconds


def _score(options: argparse.Namespace, names: list[str]) -> int:
    command = [sys.executable, options.score, options.out, *names, "--bench", options.bench]
    return subprocess.run([*command, "--match", "semble", "--unit", "chunk", "--per-repo"]).returncode


if __name__ == "__main__":
    sys.exit(main())
