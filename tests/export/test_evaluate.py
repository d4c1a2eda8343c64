"""Measuring: figures that can be worked out by hand, and every kind of model on every kind of benchmark."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="measuring a checkpoint needs the `export` extra")
pytest.importorskip("transformers", reason="measuring a checkpoint needs the `export` extra")
pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` extra")

from export.bundle import write_bundle  # noqa: E402
from export.encoders import BATCH_TOKENS, BundleEncoder, open_encoder, padded  # noqa: E402
from export.errors import ExportError  # noqa: E402
from export.evaluate import main, on_cosqa, on_pairs  # noqa: E402
from export.judged import Place, Target, evaluate_repository, repositories  # noqa: E402
from export.metrics import Vectors, figures, held_out_mrr, mean, nll, paired, ranks_of, several  # noqa: E402
from export.mteb_model import MtebModel, run_tasks  # noqa: E402
from export.student import fresh  # noqa: E402
from export.tokenizer import make_tokenizer  # noqa: E402
from server.embed.bundle import Bundle  # noqa: E402
from server.embed.embedder import Embedder  # noqa: E402

from . import pairs, tiny_checkpoint  # noqa: E402


class Words:
    """An encoder that knows what tests tell it: a text's vector is that of the first known word in it."""

    name = "words"

    def __init__(self, *words: str) -> None:
        self.words = words
        self.asked: list[str] = []

    def queries(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return self.codes(texts)

    def codes(self, texts: Sequence[str]) -> Vectors:
        found = [next((at for at, word in enumerate(self.words) if word in text), -1) for text in texts]
        return np.eye(len(self.words) + 1, dtype=np.float32)[found]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    words = ["[UNK]", *pairs.VERBS, *pairs.NOUNS]
    student = fresh(torch.full((len(words),), 0.01), dim=16)
    write_bundle(folder, student, make_tokenizer(words), {"source": "a test", "licence": "Apache-2.0"})
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint.write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


def test_the_figures_of_one_right_answer_each() -> None:
    found = figures(np.array([1, 2, 11, 100]))
    assert found["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 11 + 1 / 100) / 4)
    assert found["mrr@10"] == pytest.approx((1 + 1 / 2) / 4)
    assert found["ndcg@10"] == pytest.approx((1 + 1 / math.log2(3)) / 4)
    assert [found[f"recall@{k}"] for k in (1, 5, 10, 100)] == [0.25, 0.5, 0.5, 1.0]


def test_the_figures_of_several_right_answers() -> None:
    found = several([1, 3, 3, 12], targets=5)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 6))
    assert found == {
        "mrr@10": 1.0,
        "ndcg@10": pytest.approx((1 + 1 / 2) / ideal),
        "recall@10": pytest.approx(3 / 5),
    }
    assert several([], targets=2) == {"mrr@10": 0.0, "ndcg@10": 0.0, "recall@10": 0.0}


def test_ranks_count_what_scores_as_high_as_the_right_one() -> None:
    queries = np.array([[1, 0]] * 3, dtype=np.float32)
    codes = np.array([[0.9, 0], [0.5, 0], [0.5, 0], [0.1, 0]], dtype=np.float32)
    assert ranks_of(queries, codes, np.array([0, 1, 3])).tolist() == [1, 3, 4]


def test_nll_is_the_loss_of_training() -> None:
    queries, codes = np.eye(2, dtype=np.float32), np.array([[0.6, 0.8], [0, 1]], dtype=np.float32)
    expected = (math.log(1 + math.exp(-0.6 / 0.05)) + math.log(1 + math.exp(-0.2 / 0.05))) / 2
    assert nll(queries, codes, np.array([0, 1])) == pytest.approx(expected, rel=1e-5)


def test_pairs_are_ranked_in_pools_of_one_size() -> None:
    vectors = np.eye(5, dtype=np.float32)
    assert paired(vectors, vectors[[0, 1, 2, 4, 3]], pool=2) == {
        **figures(np.array([1, 1, 1, 2])),
        "nll": pytest.approx(math.log(2) / 4),  # The fourth of four is as far from both codes of its pool.
        "queries": 4,
    }
    assert held_out_mrr(vectors, vectors) == 1.0
    assert mean([{"a": 1.0}, {"a": 2.0}]) == {"a": 1.5}


def test_an_encoder_s_vectors_do_not_depend_on_what_is_beside_them(checkpoint: Path, bundle: Path) -> None:
    texts = [row["code"] * (1 + at % 4) for at, row in enumerate(pairs.rows())]
    for folder in (checkpoint, bundle):
        encoder = open_encoder(str(folder))
        together = encoder.codes(texts)
        assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
        for at in (0, 7, 19):
            assert np.allclose(encoder.codes([texts[at]])[0], together[at], atol=1e-5)
        assert encoder.queries([]).shape[0] == 0


def test_a_bundle_gives_what_the_server_s_embedder_gives(bundle: Path) -> None:
    texts = [row["code"] for row in pairs.rows()]
    embedder = Embedder(Bundle.load(bundle), threads=1)
    mine = BundleEncoder(bundle)
    assert np.allclose(mine.queries(texts), embedder.embed_queries(texts), atol=1e-6)
    assert np.allclose(mine.codes(texts), np.concatenate(embedder.embed_code([(t, []) for t in texts])), atol=1e-6)


def test_queries_and_code_get_their_prompts(checkpoint: Path) -> None:
    encoder = open_encoder(str(checkpoint))
    assert np.abs(encoder.queries(["x = 1"]) - encoder.codes(["x = 1"])).max() > 1e-3


def test_long_code_is_cut(checkpoint: Path) -> None:
    long = "alpha beta gamma " * BATCH_TOKENS
    short = open_encoder(str(checkpoint), max_tokens=40)
    assert np.allclose(short.codes([long]), short.codes([long[:400]]), atol=1e-5)
    assert not np.allclose(short.codes([long]), open_encoder(str(checkpoint)).codes([long]), atol=1e-4)


def test_padding_is_at_the_side_that_is_asked_for() -> None:
    ids, mask = padded([[1, 2, 3], [4]], "left")
    assert (ids.tolist(), mask.tolist()) == ([[1, 2, 3], [0, 0, 4]], [[1, 1, 1], [0, 0, 1]])
    assert padded([[1, 2], [4]], "right")[0].tolist() == [[1, 2], [4, 0]]


def test_pairs_are_found_by_who_knows_them(tmp_path: Path) -> None:
    rows = [{"query": f"{noun} please", "code": f"{noun}()"} for noun in pairs.NOUNS]
    found = on_pairs(Words(*pairs.NOUNS), pairs.write(tmp_path / "p.jsonl", rows))
    assert (found["mrr"], found["recall@1"], found["queries"]) == (1.0, 1.0, 6)


def cosqa(folder: Path) -> Path:
    folder.mkdir()
    (folder / "code_idx_map.txt").write_text(json.dumps({"file()": 1, "tree()": 0, "queue()": 2}))
    questions = [{"doc": "a tree", "retrieval_idx": 0}, {"doc": "a socket", "retrieval_idx": 1}]
    (folder / "cosqa-retrieval-dev-500.json").write_text(json.dumps(questions))
    return folder


def test_cosqa_s_files_are_ranked_by_their_numbers(tmp_path: Path) -> None:
    found = on_cosqa(Words("tree", "file", "queue"), cosqa(tmp_path / "cosqa"))
    assert found["mrr"] == pytest.approx((1 + 1 / 3) / 2)  # Nothing is like "socket": all tie.
    assert found["queries"] == 2
    with pytest.raises(ExportError, match="not a folder with CoSQA's"):
        on_cosqa(Words("a"), tmp_path)


def bench(folder: Path, root: str | None) -> Path:
    """One repository of three files; the questions name paths as the public benchmark does."""
    code = folder / "repos" / "app" / (root or "")
    (code / "net").mkdir(parents=True)
    (code / "net" / "up.py").write_text("def first(a):\n    return file(a)\n\n\ndef second(b):\n    return tree(b)\n")
    (code / "util.py").write_text("def third(c):\n    return queue(c)\n")
    (code / ".hidden").mkdir()
    (code / ".hidden" / "tree.py").write_text("def tree():\n    pass\n")
    (folder / "repos.json").write_text(json.dumps([{"name": "app", "benchmark_root": root}]))
    prefix = f"{root}/" if root else ""
    judged = [
        {"query": "tree", "relevant": [{"path": f"{prefix}net/up.py", "start_line": 5, "end_line": 6}]},
        {"query": "queue", "relevant": ["util.py"], "secondary": [f"{prefix}net/up.py"]},
        {"query": "file", "relevant": [{"path": f"{prefix}net/up.py", "start_line": 5, "end_line": 6}]},
    ]
    (folder / "annotations").mkdir()
    (folder / "annotations" / "app.json").write_text(json.dumps(judged))
    return folder


@pytest.mark.parametrize("root", [None, "src/app"])
def test_a_repository_s_questions_find_files_and_lines(root: str | None, tmp_path: Path) -> None:
    (repository,) = repositories(bench(tmp_path, root))
    found = evaluate_repository(Words("file", "tree", "queue"), repository)
    # The first is found by its lines. The second has both of its files. The third's file is found by other lines.
    assert found["ndcg@10"] == pytest.approx(2 / 3)
    assert found["recall@10"] == pytest.approx(2 / 3)
    assert (found["queries"], found["functions"]) == (3, 3)


def test_a_path_counts_for_one_that_ends_in_it() -> None:
    hit, deep = Place("a.py", 1, 9), Place("deep/a.py", 1, 9)
    assert [hit.answers(Target(path, None)) for path in ("a.py", "src/a.py", "ba.py")] == [True, True, False]
    assert [deep.answers(Target(path, None)) for path in ("a.py", "src/a.py", "deep/a.py")] == [True, False, True]
    assert [hit.answers(Target("a.py", lines)) for lines in ((9, 12), (10, 12))] == [True, False]


def test_a_benchmark_that_is_not_laid_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"repos\.json: .*lay the benchmark out first"):
        list(repositories(tmp_path))
    bench(tmp_path, None)
    with pytest.raises(ExportError, match="no repository other; there are app"):
        list(repositories(tmp_path, ["other"]))
    (tmp_path / "repos").rename(tmp_path / "moved")
    with pytest.raises(ExportError, match="not there; lay the benchmark out first"):
        list(repositories(tmp_path))


def test_the_command_line_measures_bundles_and_checkpoints_on_everything(
    bundle: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pairs.write(tmp_path / "mine.jsonl", pairs.rows())
    benchmarks = [
        "--pairs",
        str(data),
        "--cosqa",
        str(cosqa(tmp_path / "cosqa")),
        "--bench",
        str(bench(tmp_path, None)),
    ]
    assert main([str(bundle), str(checkpoint), *benchmarks]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["benchmark"] for line in lines] == ["mine", "cosqa", "app", "mean of repositories"] * 2
    assert len({line["model"] for line in lines}) == 2
    assert lines[0]["figures"].keys() >= {"mrr", "recall@10", "ndcg@10", "nll", "queries"}
    assert lines[0]["figures"]["queries"] == 48


def test_a_terminal_gets_a_table(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pairs.write(tmp_path / "mine.jsonl", pairs.rows())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main([str(bundle), "--pairs", str(data)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["model", "benchmark", "mrr"]
    assert row.split()[1] == "mine"
    assert row.split()[-1] == "48"


def test_wrong_inputs_are_told_in_one_line(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(pairs.write(tmp_path / "mine.jsonl", pairs.rows()))
    for arguments, told in (
        ([str(tmp_path / "none"), "--pairs", data], "no such file or folder"),
        ([str(bundle), "--pairs", str(tmp_path / "none.jsonl")], "No such file"),
        ([str(bundle), "--bench", str(tmp_path)], "lay the benchmark out first"),
        ([str(bundle), "--cosqa", str(tmp_path)], "not a folder with CoSQA's"),
    ):
        assert main(arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("export.evaluate: ")
        assert told in line
    with pytest.raises(SystemExit) as ended:
        main([str(bundle)])
    assert ended.value.code == 2
    monkeypatch.setitem(__import__("sys").modules, "mteb", None)
    capsys.readouterr()
    assert main([str(bundle), "--mteb", "CosQA"]) == 1
    assert "pip install 'mteb>=2,<3'" in capsys.readouterr().err


class Task:
    """A retrieval task as mteb runs one: it asks the model for vectors in batches, then for their similarities."""

    corpus = ("tree()", "file()", "queue()")
    queries = ("a queue", "a tree")
    right = (2, 0)

    def evaluate(self, model: Any) -> float:
        common = {"task_metadata": object(), "hf_split": "test", "hf_subset": "default", "batch_size": 2}
        documents = model.encode(
            iter([{"text": list(self.corpus[:2])}, {"text": list(self.corpus[2:])}]), prompt_type="document", **common
        )
        asked = model.encode(iter([{"text": list(self.queries)}]), prompt_type="query", **common)
        best = model.similarity(asked, documents).argmax(dim=1).tolist()
        return float(np.mean([mine == right for mine, right in zip(best, self.right, strict=True)]))


def test_mteb_s_protocol_is_kept_by_the_wrapper() -> None:
    words = Words("tree", "file", "queue")
    model = MtebModel(words)
    assert Task().evaluate(model) == 1.0
    assert words.asked == list(Task.queries)
    same = model.encode([{"text": ["a tree", "no"]}])
    assert model.similarity_pairwise(torch.from_numpy(same), same).tolist() == [1.0, 1.0]


def test_the_mteb_package_takes_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    mteb = pytest.importorskip("mteb", reason="only where mteb is installed")
    from mteb.models.models_protocols import EncoderProtocol

    model = MtebModel(Words("tree"))
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "meaning-lsp/words"
    asked: list[Any] = []

    class Done:
        def get_score(self) -> float:
            return 0.5

    def evaluate(model: Any, task: Any, cache: Any) -> Any:
        asked.append(task)
        return type("Result", (), {"task_results": [Done()]})

    monkeypatch.setattr(mteb, "evaluate", evaluate)
    assert list(run_tasks(Words("tree"), ["CosQA"])) == [("CosQA", 0.5)]
    with pytest.raises(ExportError, match="name tasks as mteb does"):
        list(run_tasks(Words("tree"), ["NoSuchTask"]))
