"""What ships is rebuilt by one command: here for real, on a corpus of a few lines and a BERT of a few kilobytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs the `export` extra")

from export.models import WORDS_MODEL, main
from server.embed.bundle import MANIFEST, Bundle

from . import tiny_bert


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """What a run has left that was stopped before the training."""
    tiny_bert.write_corpus(tmp_path / "work" / "corpus")
    (tmp_path / "work" / "corpus" / "counts.json").write_text(json.dumps({"train": {"python": 56}}))
    tiny_bert.write_model(tmp_path / "work" / "words" / WORDS_MODEL)
    return tmp_path / "work"


def test_a_stopped_run_goes_on_and_leaves_a_sound_bundle(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = work.parent / "default"
    command = ["--out", str(work), "--default", str(shipped), "--steps", "3"]
    assert main([*command, "--list"]) == 0
    assert not shipped.exists()
    assert capsys.readouterr().err.count("there:") == 2
    assert main(command) == 0
    assert Bundle.load(shipped).dim == 256
    said = json.loads((shipped / MANIFEST).read_text())
    assert "all-MiniLM-L6-v2 (Apache-2.0)" in said["source"]
    assert said["training"]["recipe"]["steps"] == 3
    before = (shipped / MANIFEST).stat().st_mtime_ns
    assert main(command) == 0
    assert (shipped / MANIFEST).stat().st_mtime_ns == before


def test_ranking_is_fitted_where_there_are_judged_repositories(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(work), "--bench", "BENCH", "--list"]) == 0
    commands = capsys.readouterr().err
    assert f"export.made_bench --corpus {work / 'corpus'}" in commands
    assert f"export.fit_ranking BENCH --made {work / 'made'}" in commands


def test_a_stage_that_fails_is_told_and_nothing_ships(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "corpus" / "train.jsonl").write_text("no JSON")
    shipped = work.parent / "default"
    assert main(["--out", str(work), "--default", str(shipped), "--steps", "3"]) == 1
    assert "export.train_student" in capsys.readouterr().err
    assert not shipped.exists()
