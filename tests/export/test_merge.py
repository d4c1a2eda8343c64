"""Merging: the weighted mean of what fits, and a refusal by name of what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="merging needs the `export` extra")
pytest.importorskip("transformers", reason="merging needs the `export` extra")

from torch import Tensor  # noqa: E402

from export.c2llm import HeadConfig  # noqa: E402
from export.checkpoint import load  # noqa: E402
from export.errors import ExportError  # noqa: E402
from export.lora import Adapter, add_lora, fold_lora, save_adapter, trained  # noqa: E402
from export.merge import Part, load_any, main, read_part  # noqa: E402

from .tiny_checkpoint import WIDTH, backbone_tensors, head_tensors, write_checkpoint  # noqa: E402

HEAD = HeadConfig(WIDTH, WIDTH, 4)


def seeded(folder: Path, seed: int) -> Path:
    return write_checkpoint(folder, tensors=backbone_tensors("plm_model.model.", seed) | head_tensors(HEAD, seed))


def state(source: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = load(str(source)).model.state_dict()
    return found


def test_every_tensor_is_the_weighted_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = (seeded(tmp_path / name, seed) for seed, name in enumerate("abc"))
    out = tmp_path / "out"
    assert main([f"{a}:3", f"{b}:2", str(c), "--out", str(out)]) == 0
    mixed, parts = state(out), [state(place) for place in (a, b, c)]
    for name, value in mixed.items():
        expected = (3 * parts[0][name] + 2 * parts[1][name] + parts[2][name]) / 6
        assert torch.allclose(value, expected, atol=1e-6), name
    assert f"{out}: 3 {a} + 2 {b} + 1 {c}" in capsys.readouterr().out


def test_a_checkpoint_with_itself_is_itself(tmp_path: Path) -> None:
    a = seeded(tmp_path / "a", 0)
    assert main([f"{a}:0.6", f"{a}:0.4", "--out", str(tmp_path / "out")]) == 0
    before, after = state(a), state(tmp_path / "out")
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert load(str(tmp_path / "out")).query_prompt == load(str(a)).query_prompt


def test_an_adapter_is_merged_into_its_weights_first(tmp_path: Path) -> None:
    a = seeded(tmp_path / "a", 0)
    tuned = load(str(a))
    add_lora(tuned.model, rank=2, alpha=4, seed=0)
    with torch.no_grad():
        for name, value in trained(tuned.model).items():
            if name.endswith("lora_b"):
                value.fill_(0.05)
    save_adapter(tmp_path / "run", tuned.model, Adapter(2, 4, str(a), None, None))
    fold_lora(tuned.model)
    whole = load_any(str(tmp_path / "run")).model.state_dict()
    assert all(torch.equal(whole[name], value) for name, value in tuned.model.state_dict().items())
    assert main([str(tmp_path / "run"), str(a), "--out", str(tmp_path / "out")]) == 0
    name = "backbone.layers.1.mlp.up_proj.weight"
    expected = (whole[name] + state(a)[name]) / 2
    assert not torch.equal(whole[name], state(a)[name])
    assert torch.allclose(state(tmp_path / "out")[name], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:0.6", Part("a", 0.6)),
        ("a", Part("a", 1)),
        ("C:\\models\\a", Part("C:\\models\\a", 1)),
        ("C:\\a:2", Part("C:\\a", 2)),
    ],
)
def test_a_part_is_a_name_and_a_weight(text: str, part: Part) -> None:
    assert read_part(text) == part


@pytest.mark.parametrize("text", ["a:0", "a:-1", "a:nan", "a:inf"])
def test_a_weight_is_a_positive_number(text: str) -> None:
    with pytest.raises(ExportError, match="should be a positive number"):
        read_part(text)


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("export.merge: ")
    return line


def test_what_does_not_fit_is_told_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, out = seeded(tmp_path / "a", 0), tmp_path / "out"
    wider = {**backbone_tensors("plm_model.model."), **head_tensors(HeadConfig(WIDTH, 16, 4))}
    narrow = write_checkpoint(tmp_path / "narrow", {"compress_dim": 16}, wider)
    bare = HeadConfig(WIDTH, WIDTH, 4, layer_norms=False)
    normless = write_checkpoint(
        tmp_path / "normless", {"pma_ln": False}, backbone_tensors("plm_model.model.") | head_tensors(bare)
    )
    other_theta = write_checkpoint(tmp_path / "theta", {"rope_theta": 5_000.0})
    assert "the tensor head.S is [1, 1, 16], that of the first is [1, 1, 32]" in told(capsys, a, narrow, "--out", out)
    assert "the tensor head.mab.ln0" in told(capsys, a, normless, "--out", out)
    assert "rope_theta 5000.0, that of the first 1000000.0" in told(capsys, a, other_theta, "--out", out)
    tokenizer = json.loads((a / "tokenizer.json").read_text())
    tokenizer["model"]["merges"].pop()
    strange = seeded(tmp_path / "strange", 1)
    (strange / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "its tokenizer is another" in told(capsys, a, strange, "--out", out)
    assert not out.exists()


def test_wrong_inputs_are_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = seeded(tmp_path / "a", 0)
    assert "is not empty" in told(capsys, a, a, "--out", a)
    assert "no such" in told(capsys, a, tmp_path / "b", "--out", tmp_path / "out")
    assert "positive number" in told(capsys, f"{a}:0", "--out", tmp_path / "out")
    run = tmp_path / "run"
    run.mkdir()
    (run / "adapter.json").write_text('{"format": 1, "rank": 2}')
    assert "not an adapter of this version" in told(capsys, run, "--out", tmp_path / "out")
    model = load(str(a)).model
    add_lora(model, rank=2, alpha=4, seed=0)
    save_adapter(run, model, Adapter(3, 4, str(a), None, None))
    assert "tensor backbone.layers.0" in told(capsys, run, "--out", tmp_path / "out")
    save_adapter(run, model, Adapter(2, 4, str(a), None, None))
    path = run / "adapter.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    assert "adapter.safetensors: cannot be read" in told(capsys, run, "--out", tmp_path / "out")
