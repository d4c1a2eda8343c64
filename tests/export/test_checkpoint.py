"""Checkpoints are read whole or refused: what is wrong, in which file, and what to do."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="checkpoints need the `export` extra")
pytest.importorskip("transformers", reason="checkpoints need the `export` extra")

import huggingface_hub  # noqa: E402
from huggingface_hub import errors as hub_errors  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import Tensor  # noqa: E402
from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: E402
from transformers.models.qwen2 import modeling_qwen2  # noqa: E402

from export.c2llm import HeadConfig  # noqa: E402
from export.checkpoint import Checkpoint, CheckpointError, load, save  # noqa: E402
from export.hub import KNOWN  # noqa: E402

from .tiny_checkpoint import (  # noqa: E402
    CODE,
    CONFIG,
    THETA,
    WIDTH,
    backbone_tensors,
    head_tensors,
    write_checkpoint,
    write_plain,
)

IDS = torch.tensor([[1, 2, 3, 4, 5], [9, 9, 9, 9, 9]])
MASK = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])
HEAD = HeadConfig(WIDTH, WIDTH, 4)


def refusal(source: Path | str, **arguments: Any) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(str(source), **arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert str(source) in message
    return message


def vectors(checkpoint: Checkpoint) -> Tensor:
    with torch.no_grad():
        found: Tensor = checkpoint.model(IDS, MASK)
        return found


def tensors_of(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def rewritten(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> Path:
    """The checkpoint after `change` of its tensors."""
    tensors = tensors_of(folder)
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_a_checkpoint_is_read_and_knows_itself(tmp_path: Path) -> None:
    found = load(str(write_checkpoint(tmp_path / "mine")))
    assert found.model.head.config == HEAD
    assert (found.max_tokens, found.source, found.revision, found.fresh_head) == (128, "mine", None, False)
    assert found.code_prompt == "Retrieved Answer:"
    assert found.query_prompt.endswith("query.\n")
    assert found.tokenizer.decode(found.tokenizer.encode(CODE[0]).ids) == CODE[0]


def test_the_backbone_is_transformers_own(tmp_path: Path) -> None:
    found = load(str(write_checkpoint(tmp_path)))
    theirs = Qwen2ForCausalLM(
        Qwen2Config(**CONFIG, rope_parameters={"rope_type": "default", "rope_theta": THETA})
    ).eval()
    theirs.load_state_dict(
        backbone_tensors("model.") | {"lm_head.weight": backbone_tensors("")["embed_tokens.weight"]}, strict=True
    )
    places = (MASK.cumsum(-1) - 1).clamp_min(0)
    expected = theirs.model(input_ids=IDS, attention_mask=MASK, position_ids=places).last_hidden_state
    torch.testing.assert_close(found.model.states(IDS, MASK)[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=0)


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    whole = load(str(write_checkpoint(tmp_path / "whole")))
    shards = load(str(write_checkpoint(tmp_path / "shards", shards=3)))
    assert torch.equal(vectors(whole), vectors(shards))


@pytest.mark.parametrize("prefix", ["plm_model.model.", "plm_model."])
def test_the_backbone_may_be_a_language_model_or_its_body(tmp_path: Path, prefix: str) -> None:
    found = load(str(write_checkpoint(tmp_path, tensors=backbone_tensors(prefix) | head_tensors(HEAD))))
    assert torch.equal(vectors(found), vectors(load(str(write_checkpoint(tmp_path / "other")))))


def test_an_output_layer_is_no_part_of_an_embedder(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    expected = vectors(load(str(folder)))
    rewritten(folder, lambda tensors: tensors.update({"plm_model.lm_head.weight": torch.zeros(3, WIDTH)}))
    assert torch.equal(vectors(load(str(folder))), expected)


def test_the_layer_that_the_head_reads_is_the_configs(tmp_path: Path) -> None:
    found = load(str(write_checkpoint(tmp_path, {"keep_max_layer": 1})))
    assert found.model.head.config.layer == 1
    layers = found.model.backbone(input_ids=IDS, output_hidden_states=True).hidden_states
    torch.testing.assert_close(found.model.states(IDS, torch.ones_like(IDS)), layers[1])
    for last in (None, -1, 2):
        found = load(str(write_checkpoint(tmp_path / str(last), {"keep_max_layer": last})))
        torch.testing.assert_close(found.model.states(IDS, torch.ones_like(IDS)), layers[2])


@pytest.mark.parametrize("mode", ["post_normal", "pre_normal", "pre_gptj"])
def test_the_form_of_the_head_is_read_off_its_tensors_where_the_config_is_silent(tmp_path: Path, mode: str) -> None:
    head = replace(HEAD, norm_mode=mode)
    told = load(str(write_checkpoint(tmp_path / "told", {"pma_norm_mode": mode}, head=head)))
    silent = {"pma_norm_mode": None, "pma_ln": None, "compress_dim": None}
    read = load(str(write_checkpoint(tmp_path / "read", silent, head=head)))
    assert told.model.head.config == read.model.head.config == head
    assert torch.equal(vectors(told), vectors(read))


@pytest.mark.parametrize(
    "head",
    [
        HEAD,
        replace(HEAD, layer_norms=False),
        replace(HEAD, norm_mode="pre_gptj"),
        replace(HEAD, residual="query", layer=1),
        HeadConfig(WIDTH, 16, 2),
    ],
)
def test_what_is_saved_is_read_as_the_same(tmp_path: Path, head: HeadConfig) -> None:
    changed = {
        "compress_dim": head.dim,
        "pma_num_heads": head.heads,
        "pma_ln": head.layer_norms,
        "pma_norm_mode": head.norm_mode,
        "pma_residual": head.residual,
        "keep_max_layer": head.layer,
    }
    first = load(str(write_checkpoint(tmp_path / "first", changed, head=head)))
    assert first.model.head.config == head
    first = replace(first, query_prompt="find: ", max_tokens=77, licence="MIT", revision="abc")
    save(first, tmp_path / "second")
    second = load(str(tmp_path / "second"))
    assert torch.equal(vectors(first), vectors(second))
    told = [
        (c.model.head.config, c.query_prompt, c.code_prompt, c.max_tokens, c.source, c.licence, c.revision)
        for c in (first, second)
    ]
    assert told[0] == told[1]
    assert sorted(path.name for path in (tmp_path / "second").iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert tensors_of(tmp_path / "second").keys() == tensors_of(tmp_path / "first").keys()


def test_saving_keeps_the_old_file_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path)
    checkpoint, before = load(str(folder)), (folder / "model.safetensors").read_bytes()

    def full(_tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(OSError, match="space"):
        save(checkpoint, folder)
    assert (folder / "model.safetensors").read_bytes() == before
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    "where",
    [
        {"rope_theta": THETA},
        {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": THETA}},
        {"rope_theta": THETA, "rope_parameters": {"rope_type": "default", "rope_theta": THETA}},
        {"rope_theta": THETA, "rope_scaling": None},
    ],
    ids=["transformers-4", "transformers-5", "both", "no-scaling"],
)
def test_rope_theta_is_read_wherever_it_stands_and_written_for_both(tmp_path: Path, where: dict[str, Any]) -> None:
    found = load(str(write_checkpoint(tmp_path, where)))
    exponents = torch.arange(0, 8, 2) / 8
    torch.testing.assert_close(found.model.backbone.rotary_emb.inv_freq, THETA**-exponents)
    save(found, tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "config.json").read_text())
    assert saved["rope_theta"] == saved["rope_parameters"]["rope_theta"] == THETA
    theirs = Qwen2ForCausalLM(Qwen2Config.from_pretrained(tmp_path / "again")).model.rotary_emb
    torch.testing.assert_close(theirs.inv_freq, THETA**-exponents)


def test_a_transformers_that_loses_rope_theta_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(config: Any) -> Any:
        poor = {"rope_type": "default", "rope_theta": 10_000.0}
        return rotary(config=Qwen2Config(**{**config.to_dict(), "rope_theta": 10_000.0, "rope_parameters": poor}))

    rotary = modeling_qwen2.Qwen2RotaryEmbedding
    monkeypatch.setattr(modeling_qwen2, "Qwen2RotaryEmbedding", forgetful)
    assert "theta 1e+06" in refusal(write_checkpoint(tmp_path))


def test_plain_weights_get_a_fresh_head_and_say_so(tmp_path: Path) -> None:
    folder = write_plain(tmp_path)
    found = load(str(folder), head_dim=16)
    assert found.fresh_head
    assert vectors(found).shape == (2, 16)
    assert torch.equal(vectors(found), vectors(load(str(folder), head_dim=16)))
    assert load(str(folder)).model.dim == WIDTH


def test_a_head_is_not_given_another_width(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    assert load(str(folder), head_dim=WIDTH).model.dim == WIDTH
    assert "width 32, not 16" in refusal(folder, head_dim=16)


@pytest.mark.parametrize("name", ["plm_model.model.layers.1.mlp.up_proj.weight", "mha_pma.S", "mha_pma.mab.ln1.bias"])
def test_a_tensor_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    message = refusal(rewritten(write_checkpoint(tmp_path), lambda tensors: tensors.pop(name)))
    assert name in message
    assert "missing" in message


@pytest.mark.parametrize("name", ["plm_model.model.layers.2.mlp.up_proj.weight", "mha_pma.mab.ln2.bias", "extra.x"])
def test_a_tensor_that_has_no_place_is_named(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path)
    assert name in refusal(rewritten(folder, lambda tensors: tensors.update({name: torch.ones(2)})))


def test_a_tensor_of_another_shape_is_named_with_both(tmp_path: Path) -> None:
    name = "plm_model.model.layers.0.self_attn.k_proj.weight"
    folder = write_checkpoint(tmp_path)
    message = refusal(rewritten(folder, lambda tensors: tensors.update({name: torch.ones(WIDTH, WIDTH)})))
    assert name in message
    assert "[32, 32]" in message
    assert "[16, 32]" in message


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"pma_norm_mode": "sandwich"}, "sandwich"),
        ({"pma_norm_mode": "pre_normal"}, "mha_pma.mab.ln"),
        ({"pma_ln": False}, "mha_pma.mab.ln0"),
        ({"pma_residual": "both"}, "both"),
        ({"pma_num_heads": None}, "pma_num_heads"),
        ({"pma_num_heads": 5}, "heads 5"),
        ({"compress_dim": 16}, "mha_pma.S"),
        ({"embedding_method": "mean"}, "mean"),
        ({"keep_max_layer": 3}, "keep_max_layer 3"),
        ({"keep_max_layer": "all"}, "keep_max_layer 'all'"),
        ({"rope_theta": None}, "rope_theta"),
        ({"rope_parameters": {"rope_theta": 10_000}}, "rope_theta"),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, "yarn"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "llama"}, "llama"),
        ({"hidden_size": "32"}, "hidden_size"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_hidden_layers": 3}, "layers.2"),
        ({"intermediate_size": 64}, "mlp.down_proj"),
    ],
)
def test_a_config_that_means_something_else_is_refused_by_name(
    tmp_path: Path, changed: dict[str, Any], named: str
) -> None:
    assert named in refusal(write_checkpoint(tmp_path, changed))


def test_a_head_of_several_seeds_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    message = refusal(rewritten(folder, lambda tensors: tensors.update({"mha_pma.S": torch.ones(1, 2, WIDTH)})))
    assert "mha_pma.S" in message


def test_the_familys_own_model_type_is_known(tmp_path: Path) -> None:
    load(str(write_checkpoint(tmp_path, {"model_type": "c2llm", "auto_map": {"AutoModel": "modeling.Nothing"}})))


@pytest.mark.parametrize("size", [0, 4, 300, 20_000])
def test_a_file_that_is_cut_short_is_told(tmp_path: Path, size: int) -> None:
    path = write_checkpoint(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert "cut short" in refusal(tmp_path)


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, shards=3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors" in refusal(tmp_path)


def test_an_index_that_promises_too_much_is_told(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, shards=2) / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["mha_pma.more"] = "model-00001-of-00002.safetensors"
    path.write_text(json.dumps(index))
    assert "mha_pma.more" in refusal(tmp_path)
    index["weight_map"]["mha_pma.more"] = "../elsewhere.safetensors"
    path.write_text(json.dumps(index))
    assert "elsewhere" in refusal(tmp_path)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    (write_checkpoint(tmp_path) / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    assert "pytorch_model.bin: a pickle" in refusal(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_code_in_the_folder_is_never_run(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, {"auto_map": {"AutoModel": "modeling_c2llm.Model"}})
    (folder / "modeling_c2llm.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    load(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("config.json", None, "No such file"),
        ("config.json", "{", "not JSON"),
        ("config.json", "[]", "no JSON object"),
        ("tokenizer.json", None, "missing"),
        ("tokenizer.json", "{}", "not a tokenizer"),
        ("model.safetensors", None, "model.safetensors.index.json"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path, name: str, text: str | None, told: str) -> None:
    path = write_checkpoint(tmp_path) / name
    path.unlink() if text is None else path.write_text(text)
    message = refusal(tmp_path)
    assert name in message
    assert told in message


def test_what_is_neither_here_nor_a_hub_id_is_told(tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "file.bin").write_bytes(b"")
    assert "neither a folder" in refusal(tmp_path / "file.bin")
    assert "no revision" in refusal(write_checkpoint(tmp_path), revision="main")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (hub_errors.RevisionNotFoundError, "no revision 'abc'"),
        (hub_errors.RepositoryNotFoundError, "no such public repository"),
        (hub_errors.GatedRepoError, "licence"),
        (hub_errors.LocalEntryNotFoundError, "hf download a/b --revision abc"),
        (ConnectionError, "hf download a/b --revision abc"),
        (TimeoutError, "hf download a/b --revision abc"),
    ],
)
def test_what_the_hub_cannot_give_is_told(monkeypatch: pytest.MonkeyPatch, kind: type[Exception], told: str) -> None:
    def fails(*arguments: object, **named: object) -> str:
        raise kind.__new__(kind)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    assert told in refusal("a/b", revision="abc")


def test_the_hubs_checkpoint_comes_at_its_pinned_revision_and_without_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    name = "codefuse-ai/C2LLM-0.5B"
    pinned = KNOWN[name].revision or ""

    def cached(source: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((source, revision))
        assert not any(pattern.endswith((".py", ".bin", "*")) for pattern in allow_patterns)
        return str(write_checkpoint(tmp_path / (revision or pinned)))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    found = load(name)
    assert asked == [(name, pinned)]
    assert (found.source, found.revision, found.licence) == (name, pinned, "Apache-2.0")
    assert load(name, revision="0" * 40).revision == "0" * 40
