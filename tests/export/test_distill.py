"""The student that learns from a teacher: its encoders, what it gains from samples, and that kills change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the `export` extra")
ort = pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` extra")

from safetensors.torch import load_file  # noqa: E402

from export.bundle import graph  # noqa: E402
from export.data import Example  # noqa: E402
from export.distill import Pairs, _counted, main, words_of  # noqa: E402
from export.encoders import BundleEncoder  # noqa: E402
from export.evaluate import on_pairs  # noqa: E402
from export.student import ENCODERS, LANGUAGES, SHARED, TWO, Students, fresh  # noqa: E402
from server.embed.bundle import Bundle  # noqa: E402
from server.embed.embedder import Embedder  # noqa: E402

from . import pairs  # noqa: E402
from .cut_short import failing_at  # noqa: E402

QUICK = ["--steps", "40", "--batch", "48", "--learning-rate", "0.02"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pairs.write(tmp_path_factory.mktemp("data") / "made.jsonl", [*pairs.rows(), *pairs.rows("go")])


def command(data: Path, out: Path, *more: str) -> list[str]:
    return ["--pairs", str(data), "--valid", str(data), "--out", str(out), *QUICK, *more]


def figures(out: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((out / "figures.json").read_text())
    return found


def samples(path: Path, lines: list[dict[str, Any]]) -> Path:
    known = {"source": "sampled document", "row": 0, "batch": 0}
    path.write_text("".join(json.dumps({**line, **known}) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("encoders", ENCODERS)
def test_a_student_learns_and_its_bundle_is_what_it_was_measured_as(data: Path, tmp_path: Path, encoders: str) -> None:
    assert main(command(data, tmp_path, "--encoders", encoders)) == 0
    told = figures(tmp_path)
    assert told["mrr"] > 0.9
    folders = [tmp_path / "bundle" / name for name in (("go", "python") if encoders == LANGUAGES else ("",))]
    for folder in folders:
        files = set(Bundle.load(folder).files)
        assert files == {"tokenizer.json", *(["model.onnx"] if encoders == SHARED else ["query.onnx", "code.onnx"])}
    lines = pairs.rows("go")
    found = on_pairs(BundleEncoder(folders[0]), pairs.write(tmp_path / "go.jsonl", lines))
    assert found["mrr"] == pytest.approx(told["mrr_go"], abs=0.03)  # int8 rows
    vectors = Embedder(Bundle.load(folders[0]), threads=1).embed_queries(["open the file"])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-3)


def test_log_and_figures_tell_mrr_and_nll_of_each_language(data: Path, tmp_path: Path) -> None:
    assert main(command(data, tmp_path, "--validate-every", "20")) == 0
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    told = [row for row in rows if "valid_mrr" in row]
    assert [row["step"] for row in told] == [20, 40]
    assert {"valid_nll", "valid_mrr_go", "valid_nll_go", "valid_mrr_python"} <= set(told[-1])


def test_what_a_teacher_wrote_teaches_words_that_the_pairs_do_not(data: Path, tmp_path: Path) -> None:
    """In the pairs `merge` is another verb; in the samples it is what `send` is, too."""
    lines = [line for line in pairs.rows() if line["query"].startswith("send")]
    said = [{**line, "query": line["query"].replace("send", "merge", 1)} for line in lines]
    path = samples(tmp_path / "samples.jsonl", [{**line, "turn": turn} for line in said for turn in range(4)])
    found = {}
    for count in (0, 4):
        out = tmp_path / str(count)
        assert main(command(data, out, "--samples", str(count), "--teacher", str(path))) == 0
        codes = BundleEncoder(out / "bundle").codes([line["code"] for line in said])
        found[count] = (BundleEncoder(out / "bundle").queries([line["query"] for line in said]) * codes).sum(axis=1)
    assert found[4].mean() > found[0].mean() + 0.1


def test_a_killed_run_goes_on_and_ends_the_same(data: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(command(data, whole)) == 0
    with failing_at(23):
        main(command(data, cut, "--save-minutes", "0"))
    assert main(command(data, cut, "--save-minutes", "0")) == 0
    one, other = (load_file(folder / "state-40" / "trained.safetensors") for folder in (whole, cut))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert figures(whole) == figures(cut)


def test_another_run_does_not_go_on_from_here(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(data, tmp_path)) == 0
    assert main(command(data, tmp_path, "--encoders", TWO)) == 1
    assert "holds a run with kind 'shared'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--samples", "2"], "--teacher"),
        (["--samples", "2", "--teacher", __file__], "lines of"),
        (["--languages", "cobol"], "no pairs of cobol"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main(command(data, tmp_path / "run", *more)) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert said in told[0]


def test_a_code_that_answers_a_query_too_is_no_wrong_answer() -> None:
    examples = [
        Example("open it", "one", "go", "pairs"),
        Example("Open  it", "two", "go", "pairs"),
        Example("close it", "one", "go", "pairs"),
        Example("send it", "three", "go", "pairs"),
    ]
    counted = _counted(Pairs.of(examples, words_of(examples)), torch.arange(4))
    assert counted.int().tolist() == [[1, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]


def test_all_encoders_start_alike_and_are_apart_where_they_should_be() -> None:
    frequencies = torch.full((20,), 0.1)
    shared, two, languages = (Students(kind, ["go", "php"], frequencies, 0) for kind in (SHARED, TWO, LANGUAGES))
    assert shared.code("go") is shared.query
    assert two.code("go") is two.code("php") is not two.query
    assert languages.code("go") is not languages.code("php")
    assert torch.equal(languages.code("go").table, languages.query.table)


def test_the_graph_has_the_maximum_of_the_words_that_are_there() -> None:
    student = fresh(torch.linspace(0.001, 0.9, 50), dim=16, maximum=True)
    with torch.no_grad():
        student.mix.copy_(torch.tensor([0.0, 0.0, 1.0]))
    session = ort.InferenceSession(graph(student).SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {
        "input_ids": np.array([[3, 4, 5, 0], [7, 0, 0, 0]]),
        "attention_mask": np.array([[1, 1, 1, 0], [1, 0, 0, 0]]),
    }
    (found,) = session.run(["vector"], feed)
    words = [student.table[[3, 4, 5]].amax(0), student.table[7]]
    expected = torch.nn.functional.normalize(torch.stack(words), dim=1).detach().numpy()
    assert np.abs(found - expected).max() < 0.01  # int8 rows
