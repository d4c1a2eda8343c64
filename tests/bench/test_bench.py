"""The benchmarks run, on something small; what they measure is for them to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embed.tiny import write_bundle

from .edits import EDITS_PER_FILE
from .made_up import FUNCTIONS_PER_FILE, questions, write_tree

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    return str(write_bundle(tmp_path / "bundle"))


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


def test_quality_writes_what_score_reads_and_runs_it(tmp_path: Path, bundle: str) -> None:
    bench = tmp_path / "bench"
    code = bench / "repos/app/src"
    code.mkdir(parents=True)
    (code / "dates.py").write_text("import time\n\n\ndef parse_date(text):\n    return time.strptime(text)\n")
    (code.parent / "outside.py").write_text("def parse_date(): ...\n")
    (bench / "annotations").mkdir()
    (bench / "annotations/app.json").write_text(json.dumps([{"query": "parse_date", "relevant": ["src/dates.py"]}]))
    (bench / "repos.json").write_text(json.dumps([{"name": "app", "language": "python", "benchmark_root": "src"}]))
    score = tmp_path / "score.py"
    score.write_text("import sys; print('scored', *sys.argv[2:4])")
    out = tmp_path / "results"
    program = ("tests.bench.quality", str(bench), "--out", str(out), "--score", str(score))
    assert "scored app --bench" in run(*program, "--only", "lexical", "--model", bundle)
    (answer,) = json.loads((out / "app.json").read_text())
    assert answer["query"] == "parse_date"
    assert answer["results"][0] == {"path": "dates.py", "start_line": 4, "end_line": 5}


@pytest.mark.slow
def test_speed_measures_every_figure(bundle: str) -> None:
    figures = json.loads(run("tests.bench.speed", "--units", "80", "--model", bundle))
    assert figures["files"] == 4
    assert figures["units"] >= 80
    for name in ("cold_index_s", "noop_search_s", "batch_s", "first_query_s"):
        assert 0 < figures[name] < 60
    assert 0 < figures["query_ms"]["p50"] <= figures["query_ms"]["p99"]
    assert 0 < figures["resident_mb"]["imports"] <= figures["resident_mb"]["all"]


@pytest.mark.slow
def test_live_measures_every_figure(bundle: str) -> None:
    measured = ("save", "typing", "checkout", "start", "watches")
    found = json.loads(run("tests.bench.live", *measured, "--units", "200", "--model", bundle))
    for way in ("renamed_ms", "did_save_ms"):
        assert found["save"][way]["embeddings_per_edit"] == [1]
        assert 0 < found["save"][way]["p50"] <= found["save"][way]["p99"] < 60_000
    assert 0 < found["typing"]["p50"] < 60_000
    assert found["checkout"]["there"]["embeddings"] == EDITS_PER_FILE * found["checkout"]["files"]
    assert found["checkout"]["back"]["embeddings"] == 0
    assert found["checkout"]["there"]["search_ms"]["n"] > 0
    assert 0 < found["start"]["initialize_ms"] < found["start"]["first_answer_ms"]
    assert found["start"]["opened"] in (None, {"ignore_files": 1, "other_files": 0, "for_example": []})
    # A few more are for the rules outside of the tree, such as the user's git settings.
    assert found["watches"]["inotify_watches"] - found["watches"]["folders_of_code"] in range(10)


def test_the_made_up_tree_is_always_the_same(tmp_path: Path) -> None:
    trees = []
    for name in ("a", "b"):
        write_tree(tmp_path / name, 5 * FUNCTIONS_PER_FILE)
        files = (tmp_path / name).rglob("*.*")
        trees.append({file.relative_to(tmp_path / name): file.read_bytes() for file in files})
    assert trees[0] == trees[1]
    assert len(trees[0]) == 5
    assert questions(4) == questions(4)
