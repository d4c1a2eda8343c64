"""The benchmarks run, on something small; what they measure is for them to say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.embed.tiny import write_bundle

from . import processes
from .edits import EDITS_PER_FILE
from .made_up import FUNCTIONS_PER_FILE, NOUNS, VERBS, questions, write_tree
from .renamed import write_renamed_tree
from .scenarios import restored

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
def test_a_quick_run_measures_every_figure_and_draws_them(tmp_path: Path, bundle: str) -> None:
    bench, out = tmp_path / "bench", tmp_path / "out"
    write_tree(bench / "repos/app", 4 * FUNCTIONS_PER_FILE)
    parts = ("repositories", "sizes", "checkout")
    places = ("--bench", str(bench), "--out", str(out), "--trees", str(tmp_path / "trees"))
    run("tests.bench", "--quick", "--alone", "--model", bundle, *places, "--only", *parts)
    found = json.loads((out / "results.json").read_text())
    for tree in (found["repositories"]["figures"]["app"], found["sizes"]["figures"]["300"]):
        ours = tree["peers"]["meaning-lsp"]
        for scenario in ("cold", "unchanged", "edited"):
            assert 0 < ours[scenario]["seconds"]["min"] <= ours[scenario]["seconds"]["max"] < 60
            assert 0 < ours[scenario]["cpu_seconds"] < 60
            assert 20 < ours[scenario]["peak_mb"] < 2_000
        assert 0 < ours["warm"]["query_ms"]["p50"] <= ours["warm"]["query_ms"]["p99"]
        assert 0 < ours["warm"]["imports_mb"] <= ours["warm"]["resident_mb"]
        assert ours["units"] >= 80
    assert found["checkout"]["figures"]["peers"]["meaning-lsp"]["checkout"]["seconds"]["n"] == 1
    assert "| app | 4 |" in (out / "results.md").read_text()
    assert ElementTree.fromstring((out / "sizes.svg").read_text()).tag.endswith("svg")


def test_a_file_is_as_it_was_whatever_happens(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("before")
    with pytest.raises(ZeroDivisionError), restored(file):
        file.write_text("edited")
        raise ZeroDivisionError
    assert file.read_text() == "before"


def test_a_commands_cost_is_told() -> None:
    script = "import time; held = bytearray(b'x') * 50_000_000; time.sleep(0.7); print(len(held))"
    cost = processes.run([sys.executable, "-c", script])
    assert cost.output == "50000000\n"
    assert 0.7 < cost.seconds < 30
    assert 0 < cost.cpu_seconds < cost.seconds
    assert 50 < cost.peak_mb < 200
    with pytest.raises(processes.CommandFailed, match="ended with 3: out of luck"):
        processes.run([sys.executable, "-c", "import sys; sys.stderr.write('out of luck'); sys.exit(3)"])


def test_a_renamed_tree_is_real_code_with_other_words(tmp_path: Path) -> None:
    source = tmp_path / "app"
    source.mkdir()
    words = "".join(f"def {verb}_{noun}(): ...\n" for verb, noun in zip(VERBS, NOUNS, strict=False))
    code = "def parse_table(stream):\n    return stream.parse(table)\n\n\ndef second(): ...\n"
    (source / "words.py").write_text(words[: words.index("def", 600)])
    (source / "code.py").write_text(code)
    trees = [tmp_path / "a", tmp_path / "b"]
    written = [write_renamed_tree(tree, 100, [source], lambda _: None) for tree in trees]
    assert written[0] == written[1] >= 100
    texts = [{file.relative_to(tree): file.read_text() for file in tree.rglob("*.py")} for tree in trees]
    assert texts[0] == texts[1]
    copies = [text for file, text in texts[0].items() if not text.startswith(words[:20]) and "return" in text]
    assert code in copies
    for text in copies:  # keywords stay, and a word has one new name wherever it stands
        shape = r"def (\w+)_(\w+)\((\w+)\):\n    return \3\.\1\(\2\)\n\n\ndef \w+\(\): \.\.\.\n"
        assert re.fullmatch(shape, text)


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
