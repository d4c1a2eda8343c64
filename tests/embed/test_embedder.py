"""The embedder's promises, kept with a real (tiny) model in the real runtime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.embed import embedder as module
from server.embed.bundle import Bundle, BundleError
from server.embed.embedder import Embedder, EmbeddingError, RuntimeMissingError, Vectors

from .tiny import DIM, SILENT, UNSOUND, WORDS, write_bundle, write_manifest, write_model


def make(folder: Path, encoders: Sequence[str] = ("model.onnx",), special: bool = False, **changed: object) -> Embedder:
    return Embedder(Bundle.load(write_bundle(folder, encoders, special, changed)), threads=1)


def code(embedder: Embedder, *texts: str) -> list[Vectors]:
    return embedder.embed_code([(text, ()) for text in texts])


def same(found: Vectors, expected: Vectors) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-6)


def words(count: int, start: int = 0) -> str:
    return " ".join(WORDS[(start + i) % len(WORDS)] for i in range(count))


@pytest.fixture
def embedder(tmp_path: Path) -> Embedder:
    return make(tmp_path)


def test_vectors_are_float32_and_of_unit_length(embedder: Embedder) -> None:
    vectors = code(embedder, "w1 w2", "w3")
    queries = embedder.embed_queries(["w1 w2", "w3"])
    assert [v.shape for v in vectors] == [(1, DIM), (1, DIM)]
    assert queries.shape == (2, DIM)
    assert queries.dtype == vectors[0].dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1, atol=1e-6)


def test_nothing_asked_nothing_answered(embedder: Embedder) -> None:
    assert embedder.embed_code([]) == []
    assert embedder.embed_queries([]).shape == (0, DIM)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("special", [False, True])
def test_neither_padding_nor_company_changes_a_vector(tmp_path: Path, side: str, special: bool) -> None:
    embedder = make(tmp_path, padding_side=side, special=special)
    texts = [words(1 + i % 10, i) for i in range(200)]
    together = code(embedder, *texts)
    for text, vectors in zip(texts, together, strict=True):
        same(vectors, code(embedder, text)[0])


def test_results_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = [words(9), words(1), words(5), words(1, 3)]
    for text, query in zip(texts, embedder.embed_queries(texts), strict=True):
        same(query, embedder.embed_queries([text])[0])


def test_batches_hold_every_input_once_and_are_bounded_by_tokens() -> None:
    lengths = [0, *(1 + (i * 37) % 700 for i in range(3000)), 9000, 0]
    batches = list(module._batches(lengths))
    assert sorted(i for batch in batches for i in batch) == [i for i, length in enumerate(lengths) if length]
    for batch in batches:
        padded = len(batch) * max(lengths[i] for i in batch)
        assert padded <= module.BATCH_TOKENS or len(batch) == 1


def test_many_inputs_of_one_length_are_not_padded() -> None:
    lengths = [100] * 30 + [99] * 30
    assert all(len({lengths[i] for i in batch}) == 1 for batch in module._batches(lengths))


def test_prompts_go_before_queries_and_before_code(tmp_path: Path) -> None:
    plain = make(tmp_path / "plain")
    prompted = make(tmp_path / "prompted", query_prompt="find: ", code_prompt="def ")
    same(prompted.embed_queries(["w1"]), plain.embed_queries(["find: w1"]))
    same(code(prompted, "w1")[0], code(plain, "def w1")[0])


def test_special_tokens_go_around_every_part(tmp_path: Path) -> None:
    plain, special = make(tmp_path / "plain"), make(tmp_path / "special", special=True)
    same(code(special, "w1 w2")[0], code(plain, "[cls] w1 w2 [sep]")[0])
    first, second = code(special, "def\n" + words(17))[0]
    same(first, code(plain, f"[cls] def {words(9)} [sep]")[0][0])
    same(second, code(plain, f"[cls] def {words(8, 9)} [sep]")[0][0])


def test_a_long_query_is_cut_at_the_limit(embedder: Embedder) -> None:
    same(embedder.embed_queries([words(1000)]), embedder.embed_queries([words(12)]))


def test_a_long_text_is_split_at_its_last_break_that_fits(embedder: Embedder) -> None:
    text = "def w0\n" + words(20, 1)
    breaks = [text.index(word) for word in ("w3 ", "w9 ", "w17 ")]
    (parts,) = embedder.embed_code([(text, breaks)])
    expected = ["def w0 " + words(8, 1), "def w0 " + words(8, 9), "def w0 " + words(4, 17)]
    same(parts, np.concatenate(code(embedder, *expected)))


def test_a_stretch_without_breaks_is_cut_at_the_limit(embedder: Embedder) -> None:
    (parts,) = code(embedder, "def w0\n" + words(25, 1))
    expected = ["def w0 " + words(10, 1), "def w0 " + words(10, 11), "def w0 " + words(5, 21)]
    same(parts, np.concatenate(code(embedder, *expected)))


def test_a_first_line_that_takes_too_much_room_is_not_repeated(tmp_path: Path) -> None:
    embedder = make(tmp_path, code_prompt="def ")
    (parts,) = code(embedder, words(8) + "\n" + words(12, 8))
    expected = [words(11), words(9, 11)]
    same(parts, np.concatenate(code(embedder, *expected)))


def test_breaks_count_code_points(tmp_path: Path) -> None:
    embedder = make(tmp_path, code_prompt="def ")
    text = "w0 w1 ünïcödé😀 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12"
    (parts,) = embedder.embed_code([(text, [text.index("w7")])])
    assert len(parts) == 2
    same(parts[0], code(embedder, text[: text.index("w7")])[0][0])


def test_text_without_tokens_gets_one_constant_unit_vector(embedder: Embedder) -> None:
    empty, blank, silent, full = code(embedder, "", " \n\t", SILENT, "w1")
    np.testing.assert_allclose(np.linalg.norm(empty), 1, atol=1e-6)
    same(empty, blank)
    same(empty, embedder.embed_queries([""]))
    assert not np.allclose(empty, full)
    assert np.isfinite(silent).all()


def test_half_a_character_is_no_reason_to_fail(embedder: Embedder) -> None:
    assert np.isfinite(embedder.embed_queries(["w1 \ud800"])).all()
    assert np.isfinite(code(embedder, "w1 \udcff")[0]).all()


def test_two_encoders_embed_apart(tmp_path: Path) -> None:
    two = make(tmp_path / "two", ("query.onnx", "code.onnx"))
    one = make(tmp_path / "one")
    same(two.embed_queries(["w1"]), one.embed_queries(["w1"]))
    assert not np.allclose(code(two, "w1")[0], code(one, "w1")[0])


def test_a_vector_that_is_not_finite_is_an_error(embedder: Embedder) -> None:
    with pytest.raises(EmbeddingError, match="tiny-1 gave a vector that is not finite"):
        code(embedder, "w1", f"w2 {UNSOUND}")


def test_a_graph_that_fails_on_a_text_is_an_error(tmp_path: Path) -> None:
    write_bundle(tmp_path)
    tokenizer = (tmp_path / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(tokenizer.replace('"w1":6', '"w1":6000').replace('"w1": 6', '"w1": 6000'))
    embedder = Embedder(Bundle.load(write_manifest(tmp_path)), threads=1)
    assert len(code(embedder, "w2")) == 1
    with pytest.raises(EmbeddingError, match="tiny-1 failed on a text"):
        code(embedder, "w1")


def test_many_threads_may_embed_at_once(embedder: Embedder) -> None:
    texts = [words(1 + i % 12, i) for i in range(40)]
    expected = embedder.embed_queries(texts)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(embedder.embed_queries, [texts] * 16):
            same(found, expected)


@pytest.mark.parametrize("keywords", [{"output": "other"}, {"extra_output": True}])
def test_outputs_have_to_be_the_promised_one(tmp_path: Path, keywords: dict[str, Any]) -> None:
    write_bundle(tmp_path)
    write_model(tmp_path / "model.onnx", **keywords)
    bundle = Bundle.load(write_manifest(tmp_path))
    with pytest.raises(BundleError, match="it should take input_ids and attention_mask and give vectors"):
        Embedder(bundle, 1)


def test_another_width_than_promised_is_refused(tmp_path: Path) -> None:
    embedder = make(tmp_path, dim=DIM + 1)
    with pytest.raises(BundleError, match="`dim` is 9"):
        embedder.embed_queries(["w1"])


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, name: str) -> None:
    write_bundle(tmp_path)
    (tmp_path / name).write_text("something else")
    bundle = Bundle.load(write_manifest(tmp_path))
    with pytest.raises(BundleError) as caught:
        Embedder(bundle, 1)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_prompt_that_fills_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="`code_prompt` leaves no room in max_tokens 12"):
        make(tmp_path, code_prompt=words(12) + " ")


def test_without_a_runtime_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RuntimeMissingError, match=r"meaning-lsp\[cpu\]"):
        make(tmp_path)


def test_the_runtime_is_imported_only_when_an_embedder_is_made() -> None:
    program = "import sys, server.embed.embedder; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_device_that_is_asked_for_is_used_or_refused(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path))
    assert Embedder(bundle, 1, "cpu").device == "cpu"
    if "CUDAExecutionProvider" in module._runtime().get_available_providers():
        pytest.skip("this machine may have a card")
    assert Embedder(bundle, 1, "auto").device == "cpu"
    with pytest.raises(RuntimeMissingError, match=r'device "cuda": .*meaning-lsp\[gpu\]'):
        Embedder(bundle, 1, "cuda")


def test_a_card_that_cannot_be_used_is_told_only_to_who_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime takes the processor then, and says so on stderr alone."""
    bundle = Bundle.load(write_bundle(tmp_path))
    runtime = module._runtime()
    original = runtime.InferenceSession
    asked: list[list[str]] = []

    def on_the_processor(path: str, options: Any, providers: list[str]) -> Any:
        asked.append(providers)
        return original(path, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(runtime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"])
    monkeypatch.setattr(runtime, "InferenceSession", on_the_processor)
    assert Embedder(bundle, 1, "auto").device == "cpu"
    assert asked == [["CUDAExecutionProvider", "CPUExecutionProvider"]]
    with pytest.raises(RuntimeMissingError, match="the NVIDIA card cannot be used"):
        Embedder(bundle, 1, "cuda")
    asked.clear()
    assert Embedder(bundle, 1, "cpu").device == "cpu"
    assert asked == [["CPUExecutionProvider"]]
