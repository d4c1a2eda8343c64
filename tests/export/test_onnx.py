"""python -m export.onnx, from a tiny checkpoint to the server's own embedder; and all that it refuses in one line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch", reason="exporting needs the `export` extra")
pytest.importorskip("transformers", reason="exporting needs the `export` extra")
ort = pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` extra")

import huggingface_hub  # noqa: E402
from huggingface_hub.errors import LocalEntryNotFoundError  # noqa: E402

from export import exporter, memory, quantize  # noqa: E402
from export.checkpoint import Checkpoint, load  # noqa: E402
from export.encoders import padded  # noqa: E402
from export.onnx import main  # noqa: E402
from export.reduce import Projected, by_distillation, by_pca, embed, nearest_agreement  # noqa: E402
from server.embed.bundle import Bundle  # noqa: E402
from server.embed.embedder import Embedder  # noqa: E402

from .tiny_checkpoint import CODE, VOCABULARY, WIDTH, write_checkpoint, write_plain  # noqa: E402

SHAPES = [(1, 1), (1, 2), (1, 9), (1, 64), (2, 2), (2, 33), (3, 7), (4, 128), (5, 16), (8, 5), (13, 11), (16, 24)]
"""Batches and lengths, none of them the one that is traced."""
COMPANY = 3e-4
"""The last bit of a sum, which a batch's shape decides, may round one activation to the next part of a step."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("made") / "tiny")


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    return load(str(folder))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 short texts to calibrate with."""
    texts = [
        f"{first}\n{second.upper()[:at]}" for at, first in enumerate(CODE, 3) for second in CODE[:5] for _ in "abc"
    ]
    lines = [json.dumps({"code": f"{text} # {at}"}) + "\n" for at, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("code") / "code.jsonl"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def exported(folder: Path, code: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "bundle"
    assert main(["--checkpoint", str(folder), "--out", str(out), "--calibrate", str(code)]) == 0
    return out


@dataclass(frozen=True)
class Narrow:
    """A bundle that is narrower than its checkpoint, and what was said while it was made."""

    bundle: Path
    out: str
    err: str


@pytest.fixture(scope="module")
def narrow(folder: Path, code: Path, tmp_path_factory: pytest.TempPathFactory) -> Narrow:
    bundle = tmp_path_factory.mktemp("out") / "bundle"
    arguments = ["--dim", "16", "--quantize", "int8", "--max-tokens", "99", "--calibrate", str(code)]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        assert main(["--checkpoint", str(folder), "--out", str(bundle), *arguments]) == 0
    return Narrow(bundle, out.getvalue(), err.getvalue())


def manifest(bundle: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((bundle / "bundle.json").read_text())
    return values


def run(bundle: Path, rows: list[list[int]]) -> npt.NDArray[np.float32]:
    session = ort.InferenceSession(str(bundle / "model.onnx"), providers=["CPUExecutionProvider"])
    (vectors,) = session.run(["vector"], dict(zip(("input_ids", "attention_mask"), padded(rows), strict=True)))
    return np.asarray(vectors)


def texts(batch: int, tokens: int) -> list[list[int]]:
    """Rows of up to `tokens` tokens: the first as long, the others shorter, so that they are padded."""
    random = np.random.default_rng(batch * tokens)
    lengths = [tokens, *random.integers(1, tokens + 1, batch - 1)]
    return [random.integers(0, VOCABULARY, length).tolist() for length in lengths]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_graph_is_the_model_at_every_shape(exported: Path, checkpoint: Checkpoint, shape: tuple[int, int]) -> None:
    rows = texts(*shape)
    assert (run(exported, rows) * embed(checkpoint.model, rows)).sum(axis=1).min() > 0.9999


def test_half_precision_is_the_model_nearly(folder: Path, code: Path, tmp_path: Path, checkpoint: Checkpoint) -> None:
    out = tmp_path / "half"
    arguments = ["--quantize", "fp16", "--calibrate", str(code)]
    assert main(["--checkpoint", str(folder), "--out", str(out), *arguments]) == 0
    for shape in SHAPES:
        rows = texts(*shape)
        assert (run(out, rows) * embed(checkpoint.model, rows)).sum(axis=1).min() > 0.999
    assert manifest(out)["dtype"] == "fp16"


def test_the_server_embeds_with_it_as_the_checkpoint_does(exported: Path, checkpoint: Checkpoint) -> None:
    embedder = Embedder(Bundle.load(exported), threads=1)
    texts = [text[:40] for text in CODE]
    prompts = [(checkpoint.query_prompt, embedder.embed_queries(texts))]
    prompts.append((checkpoint.code_prompt, np.concatenate(embedder.embed_code([(text, ()) for text in texts]))))
    for prompt, found in prompts:
        rows = [checkpoint.tokenizer.encode(prompt + text, add_special_tokens=False).ids for text in texts]
        assert max(map(len, rows)) <= checkpoint.max_tokens
        np.testing.assert_allclose(found, embed(checkpoint.model, rows), atol=1e-4)


def test_bundle_json_says_what_it_is(exported: Path, narrow: Narrow) -> None:
    whole, short = manifest(exported), manifest(narrow.bundle)
    assert (whole["dim"], whole["dtype"], whole["max_tokens"], whole["reduction"]) == (WIDTH, "fp32", 128, None)
    assert (short["dim"], short["dtype"], short["max_tokens"]) == (16, "int8", 99)
    assert whole["id"].startswith("tiny-32-fp32-")
    assert short["id"].startswith("tiny-16-int8-")
    assert short["reduction"]["method"] == "pca"
    assert short["reduction"]["from_dim"] == WIDTH
    assert 0.5 < short["reduction"]["share_of_variance_kept"] <= 1
    assert short["report"]["cosine_to_fp32_min"] > 0.99
    assert whole["report"]["cosine_to_fp32_min"] > 0.9999
    assert whole["report"]["bytes"] > short["report"]["bytes"]


def test_neither_padding_nor_company_changes_the_server_s_int8_vectors(narrow: Narrow) -> None:
    embedder = Embedder(Bundle.load(narrow.bundle), threads=1)
    texts = [(text[:at], ()) for text in CODE for at in (9, 20, 31)]
    together = np.concatenate(embedder.embed_code(texts))
    assert together.shape == (24, 16)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder.embed_code([text])[0][0], vector, atol=COMPANY)


def test_the_report_is_told(narrow: Narrow) -> None:
    for part in ("MB", "mean 0.", "min 0.", "nearest neighbour", "functions per second", "share of variance kept"):
        assert part in narrow.out
    for part in ("embedding", "share of variance kept", "tracing"):
        assert part in narrow.err


def test_pca_keeps_the_directions_that_code_uses() -> None:
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((12, 12)))[0]
    vectors = (random.standard_normal((400, 12)) * ([3, 2, 1] + [0.01] * 9) @ basis).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reduced = by_pca(torch.nn.Identity(), vectors, 3)
    assert isinstance(reduced.model, Projected)
    projection = reduced.model.projection.numpy()
    np.testing.assert_allclose(projection.T @ projection, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(np.abs(np.linalg.svd(basis[:3] @ projection)[1]), 1, atol=1e-2)
    assert reduced.facts["share_of_variance_kept"] > 0.99
    assert by_pca(torch.nn.Identity(), vectors, 2).facts["share_of_variance_kept"] < 0.95


def test_a_distilled_head_learns_the_similarities(checkpoint: Checkpoint) -> None:
    random = np.random.default_rng(0)
    rows = [random.integers(0, 9, length).tolist() for length in random.integers(2, 6, 120)]
    vectors = embed(checkpoint.model, rows)

    def learned(steps: int) -> float:
        reduced = by_distillation(checkpoint.model, vectors, rows, 16, lambda _: None, steps)
        assert embed(reduced.model, rows[:2]).shape == (2, 16)
        return float(reduced.facts["similarity_correlation"])

    before = [value.clone() for value in checkpoint.model.backbone.parameters()]
    assert learned(60) > learned(2) + 0.1
    assert all(torch.equal(a, b) for a, b in zip(before, checkpoint.model.backbone.parameters(), strict=True))


def test_neighbours_agree_or_do_not() -> None:
    first = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    assert nearest_agreement(first, first) == 1
    assert nearest_agreement(first, first[[0, 2, 1, 3]]) == 0


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that the command ends with; its exit code is 1."""
    assert main(arguments) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("export.onnx: ")
    return line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--dim", "0"],
        ["--dim", "-5"],
        ["--dim", "5000"],
        ["--dim", "many"],
        ["--quantize", "int3"],
        ["--max-tokens", "0"],
        ["--opset", "17"],
        ["--head", "linear"],
    ],
)
def test_what_no_export_takes_is_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert arguments[0] in line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--dim", "48"], "give 1 to 32"),
        (["--max-tokens", "1000"], "at most 256"),
        (["--max-tokens", "3"], "a prompt alone takes"),
        (["--revision", "main"], "no revision"),
        (["--calibrate", "/nowhere"], "/nowhere"),
    ],
)
def test_what_this_checkpoint_does_not_take_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert told in refused(["--checkpoint", str(folder), "--out", str(tmp_path / "out"), *arguments], capsys)
    assert list(tmp_path.iterdir()) == []


def test_too_little_code_to_fit_to_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps({"code": text}) + "\n" for text in CODE))
    arguments = ["--dim", "16", "--calibrate", str(path), "--out", str(tmp_path / "out")]
    assert "name more code" in refused(["--checkpoint", str(folder), *arguments], capsys)


@pytest.mark.parametrize(
    ("text", "told"), [("", "no functions"), ("{}\n", "code.jsonl:1"), ("nothing\n", "not JSON")], ids=str
)
def test_code_that_cannot_be_read_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    (tmp_path / "code.jsonl").write_text(text)
    arguments = ["--calibrate", str(tmp_path / "code.jsonl"), "--out", str(tmp_path / "out")]
    assert told in refused(["--checkpoint", str(folder), *arguments], capsys)


def test_weights_without_a_head_are_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--checkpoint", str(write_plain(tmp_path / "plain")), "--out", str(tmp_path / "out")]
    assert "export.train" in refused(arguments, capsys)


def test_too_little_memory_is_told_before_anything_begins(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda _: 1_000_000)
    assert "memory" in refused(["--checkpoint", str(folder), "--out", str(tmp_path / "out")], capsys)


def test_too_little_disk_is_told_before_anything_begins(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    assert "disk" in refused(["--checkpoint", str(folder), "--out", str(tmp_path / "out")], capsys)


def test_no_network_and_no_cache_says_how_to_get_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    assert "`hf download codefuse-ai/C2LLM-0.5B --revision" in refused(["--out", str(tmp_path / "out")], capsys)


def test_without_torch_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['torch'] = None; from export.onnx import main; sys.exit(main(['--dim', '512']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "export.onnx: torch is not installed; run `pip install -e '.[export]'` in the clone\n"


def fails(*_: object) -> None:
    raise OSError(28, "No space left on device")


def is_killed(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def is_interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("trouble", [fails, is_killed, is_interrupted], ids=lambda f: f.__name__)
@pytest.mark.parametrize("before", [False, True], ids=["new", "over-another"])
def test_what_ends_it_half_way_leaves_nothing_behind(
    folder: Path,
    code: Path,
    exported: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Any,
    before: bool,
) -> None:
    def untraced(_model: object, path: Path, _opset: int) -> None:
        path.write_bytes(b"half a graph")

    monkeypatch.setattr(exporter, "write_graph", untraced)
    monkeypatch.setattr(quantize, "as_it_is", trouble)
    previous = signal.getsignal(signal.SIGTERM)
    out = tmp_path / "bundle"
    if before:
        shutil.copytree(exported, out)
    try:
        ended = main(["--checkpoint", str(folder), "--out", str(out), "--calibrate", str(code)])
    except (SystemExit, KeyboardInterrupt):
        ended = 1
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended == 1
    assert [path.name for path in tmp_path.iterdir()] == (["bundle"] if before else [])
    if before:
        assert manifest(out) == manifest(exported)


def test_a_folder_that_is_no_bundle_is_not_replaced(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "no bundle" in refused(["--checkpoint", str(folder), "--out", str(tmp_path)], capsys)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
