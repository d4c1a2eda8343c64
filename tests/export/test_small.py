"""The small model: what it reads, what its training asks, what a kill may not change, and its bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the `export` extra")
pytest.importorskip("transformers", reason="training needs the `export` extra")
pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` extra")

from export import small_bundle  # noqa: E402
from export.encoders import CheckpointEncoder, open_encoder, padded, tokenized  # noqa: E402
from export.hub import CheckpointError  # noqa: E402
from export.metrics import paired  # noqa: E402
from export.small import Small, for_code, load_small, save_small  # noqa: E402
from export.train_small import CHECKPOINT, main  # noqa: E402
from export.trainer import Trainer  # noqa: E402
from export.trim import trimmed, word_counts  # noqa: E402
from server.embed.bundle import Bundle  # noqa: E402
from server.embed.embedder import Embedder  # noqa: E402

from . import tiny_bert  # noqa: E402
from .cut_short import killed_once_saved, stopping_at  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SHORT = ["--steps", "6", "--batch", "8", "--precision", "fp32", "--validate-every", "3", "--learning-rate", "1e-3"]
WORDS = len(tiny_bert.VOCABULARY)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert.write_model(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def small(base: Path) -> Small:
    return for_code(load_small(base))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def whole(base: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of SHORT that nothing came in between."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(command(base, corpus, out)) == 0
    return out


def command(base: Path, corpus: Path, out: Path, *more: str) -> list[str]:
    return ["--model", str(base), "--corpus", str(corpus), "--out", str(out), *SHORT, *more]


def furthest(one: Path, other: Path) -> float:
    mine, theirs = (load_small(run / CHECKPOINT).model.state_dict() for run in (one, other))
    assert mine.keys() == theirs.keys()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


def vectors(small: Small, rows: list[list[int]], side: str = "right") -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(small.model(*map(torch.from_numpy, padded(rows, side))))


def test_neither_padding_nor_company_changes_a_vector(small: Small) -> None:
    rows = [[2, 40, 41, 3], [2, *range(30, 60), 3]]
    alone = np.concatenate([vectors(small, [row]) for row in rows])
    for side in ("left", "right"):
        assert np.allclose(vectors(small, rows, side), alone, atol=1e-6)
    assert np.allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-6)


def test_words_are_read_as_programmers_join_them(small: Small) -> None:
    tokens = small.tokenizer.encode("closeFile(parse_tree));").tokens
    assert " ".join(tokens) == "[CLS] close file ( parse tree ) [SEP]"
    again = for_code(small)
    assert again.tokenizer.to_str() == small.tokenizer.to_str()


def test_tokens_stand_between_the_special_ones_and_are_cut_inside_of_them(small: Small) -> None:
    cls, sep = (tiny_bert.VOCABULARY.index(word) for word in ("[CLS]", "[SEP]"))
    close, file = (tiny_bert.VOCABULARY.index(word) for word in ("close", "file"))
    assert tokenized(small.tokenizer, "", ["close file", "close file close", ""], 4) == [
        [cls, close, file, sep],
        [cls, close, file, sep],
        [cls, sep],
    ]


def test_what_was_saved_is_loaded(small: Small, tmp_path: Path) -> None:
    save_small(small, tmp_path)
    again = load_small(tmp_path)
    assert again.tokenizer.to_str() == small.tokenizer.to_str()
    rows = [[2, 50, 51, 3]]
    assert np.array_equal(vectors(again, rows), vectors(small, rows))


def test_a_checkpoint_with_a_tensor_missing_is_refused_by_name(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, tmp_path / "model")
    tensors = load_file(base / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, tmp_path / "model" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.1\.output\.dense\.weight is missing"):
        load_small(tmp_path / "model")


def test_training_learns_to_find_code_of_other_packages(base: Path, corpus: Path, tmp_path: Path) -> None:
    more = ["--steps", "80", "--batch", "32", "--learning-rate", "5e-3"]
    assert main(command(base, corpus, tmp_path / "run", *more)) == 0
    rows = [json.loads(line) for line in (corpus / "valid.jsonl").read_text().splitlines()][:8]
    before, after = (mrr(open_encoder(str(place)), rows) for place in (base, tmp_path / "run" / CHECKPOINT))
    assert after > max(0.8, before + 0.2)


def mrr(encoder: object, rows: list[dict[str, str]]) -> float:
    assert isinstance(encoder, CheckpointEncoder)
    return paired(encoder.queries([r["query"] for r in rows]), encoder.codes([r["code"] for r in rows]))["mrr"]


def test_texts_of_all_lengths_come_back_in_their_order(
    base: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [[2, *range(30, 30 + length), 3] for length in (9, 1, 30, 4, 2, 17)]

    def compared(trainer: Trainer) -> dict[str, float]:
        with torch.no_grad():
            found = trainer._embed(rows)
        single = torch.cat([trainer._embed([row]) for row in rows])
        assert torch.allclose(found, single, atol=1e-6)
        return {}

    monkeypatch.setattr(Trainer, "run", compared)
    assert main(command(base, corpus, tmp_path / "run")) == 0


def test_half_of_a_trained_model_is_what_it_was_before(base: Path, corpus: Path, whole: Path, tmp_path: Path) -> None:
    assert main(command(base, corpus, tmp_path, "--kept", "0")) == 0
    begun, trained, kept = (
        load_small(folder).model.state_dict() for folder in (base, tmp_path / CHECKPOINT, whole / CHECKPOINT)
    )
    for name, value in kept.items():
        assert torch.allclose(value, (begun[name] + trained[name]) / 2, atol=1e-6), name


def test_a_run_that_was_asked_to_stop_goes_on_as_if_nothing_had_been(
    base: Path, corpus: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with stopping_at(3):
        assert main(command(base, corpus, out)) == 130
    assert not (out / CHECKPOINT).exists()
    assert main(command(base, corpus, out)) == 0
    assert furthest(whole, out) == 0


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_been(base: Path, corpus: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed_once_saved("export.train_small", command(base, corpus, out, "--threads", "1"), out)
    assert main(command(base, corpus, out)) == 0
    assert furthest(whole, out) == 0


def test_another_seed_gives_other_weights(base: Path, corpus: Path, whole: Path, tmp_path: Path) -> None:
    assert main(command(base, corpus, tmp_path / "other", "--seed", "1")) == 0
    assert furthest(whole, tmp_path / "other") > 1e-4


def test_a_vocabulary_is_trimmed_to_what_is_used(small: Small) -> None:
    texts = ["close file", "parse the tree"]
    short = trimmed(small, WORDS - 12, word_counts(small, texts))
    words = short.tokenizer.get_vocab()
    assert len(words) == short.model.backbone.config.vocab_size == WORDS - 12
    assert not any(word.startswith("[unused") for word in words)
    assert "elephant" not in words
    assert short.tokenizer.encode("elephant").tokens == ["[CLS]", "e", *(f"##{c}" for c in "lephant"), "[SEP]"]
    for text in texts:
        ids = (model.tokenizer.encode(text).ids for model in (short, small))
        mine, theirs = (vectors(model, [row]) for model, row in zip((short, small), ids, strict=True))
        assert np.array_equal(mine, theirs)


@pytest.fixture(scope="module")
def bundle(whole: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundles") / "small"
    words = ["--vocabulary", str(WORDS - 12), "--max-tokens", "32"]
    assert small_bundle.main([str(whole / CHECKPOINT), "--corpus", str(corpus), "--out", str(out), *words]) == 0
    return out


def test_the_server_loads_the_bundle_and_sees_what_the_model_sees(bundle: Path, whole: Path) -> None:
    embedder = Embedder(Bundle.load(bundle), threads=1)
    texts = ["close the file", "def parse_tree(tree):\n    tree.parse()"]
    expected = CheckpointEncoder(load_small(whole / CHECKPOINT)).codes(texts)
    queries = embedder.embed_queries(texts)
    codes = np.concatenate(embedder.embed_code([(text, []) for text in texts]))
    for found in (queries, codes):
        assert (found * expected).sum(axis=1).min() > small_bundle.LEAST_COSINE


def test_the_bundle_says_where_it_is_from_and_what_it_can(bundle: Path, base: Path) -> None:
    said = json.loads((bundle / "bundle.json").read_text())
    figures = said["training"]["figures"]
    assert figures["fp32_parity"] > small_bundle.LEAST_PARITY
    assert figures["functions_per_second"] > 0
    assert 0 < figures["held_out_packages_mrr_of_1000"] <= 1
    assert f"began as those of {base.name}" in (bundle / "NOTICE").read_text()
