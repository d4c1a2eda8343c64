"""Fine-tuning: what it learns, and that neither kills, parts nor processes have a say in the weights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the `export` extra")
pytest.importorskip("transformers", reason="training needs the `export` extra")

from safetensors.torch import load_file  # noqa: E402
from torch import Tensor  # noqa: E402

from export.c2llm import C2LLM  # noqa: E402
from export.checkpoint import load  # noqa: E402
from export.contrastive import Batch, Tokens, backward, loss_of, make_batch  # noqa: E402
from export.data import Example  # noqa: E402
from export.encoders import open_encoder  # noqa: E402
from export.evaluate import on_pairs  # noqa: E402
from export.journal import PLOT, clock, plot, progress, read_log  # noqa: E402
from export.lora import add_lora, fold_lora, trained  # noqa: E402
from export.merge import load_any  # noqa: E402
from export.parallel import World  # noqa: E402
from export.recipe import Recipe  # noqa: E402
from export.state import newest  # noqa: E402
from export.train import CHECKPOINT, main  # noqa: E402
from export.trainer import Trainer  # noqa: E402

from . import pairs, tiny_checkpoint  # noqa: E402
from .cut_short import ROOT, killed_once_saved, stopping_at  # noqa: E402

ROUNDING = 1e-4
"""How far Adam carries another order of sums, whose steps are of the size of the learning rate, in SHORT."""
ALONE = World(0, 1, torch.device("cpu"))
QUICK = ["--batch", "8", "--warm-up", "2", "--rank", "4", "--negatives", "2", "--learning-rate", "1e-3"]
SHORT = [*QUICK, "--steps", "8", "--mine-every", "3", "--precision", "fp32", "--validate-every", "4"]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoint.write_checkpoint(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pairs.write(tmp_path_factory.mktemp("data") / "made.jsonl", [*pairs.rows(), *pairs.rows("go")])


@pytest.fixture(scope="module")
def whole(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of SHORT that nothing came in between."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main(command(base, data, out, *SHORT)) == 0
    return out


def command(base: Path, data: Path, out: Path, *more: str) -> list[str]:
    return ["--checkpoint", str(base), "--data", str(data), "--out", str(out), "--cpu", *more]


def tensors(out: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = load(str(out / CHECKPOINT)).model.state_dict()
    return found


def furthest(one: Path, other: Path) -> float:
    mine, theirs = tensors(one), tensors(other)
    assert mine.keys() == theirs.keys()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


def test_training_learns_to_find_code_by_its_query(base: Path, tmp_path: Path) -> None:
    data = pairs.write(tmp_path / "made.jsonl", pairs.rows())
    more = ["--batch", "16", "--steps", "60", "--learning-rate", "5e-3", "--warm-up", "5", "--negatives", "2"]
    assert main(command(base, data, tmp_path / "run", *more, "--precision", "fp32", "--validate-every", "60")) == 0
    before, after = (on_pairs(open_encoder(str(place)), data) for place in (base, tmp_path / "run" / CHECKPOINT))
    assert before["mrr"] < 0.3
    assert after["mrr"] > 0.6
    assert after["nll"] < before["nll"] / 2


def test_the_same_command_gives_the_same_weights(base: Path, data: Path, whole: Path, tmp_path: Path) -> None:
    assert main(command(base, data, tmp_path / "again", *SHORT)) == 0
    assert furthest(whole, tmp_path / "again") == 0
    assert main(command(base, data, tmp_path / "other", *SHORT, "--seed", "1")) == 0
    assert furthest(whole, tmp_path / "other") > 1e-4


@pytest.mark.parametrize("full", [[], ["--full"]], ids=["lora", "full"])
def test_a_run_that_was_asked_to_stop_goes_on_as_if_nothing_had_been(
    full: list[str], base: Path, data: Path, whole: Path, tmp_path: Path
) -> None:
    if full:
        whole = tmp_path / "whole"
        assert main(command(base, data, whole, *SHORT, *full)) == 0
    out = tmp_path / "run"
    with stopping_at(4):
        assert main(command(base, data, out, *SHORT, *full)) == 130
    assert newest(out) == out / "state-5"
    assert not (out / CHECKPOINT).exists()
    assert main(command(base, data, out, *SHORT, *full)) == 0
    assert furthest(whole, out) == 0
    assert [row["step"] for row in read_log(out)] == [row["step"] for row in read_log(whole)]


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_been(base: Path, data: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    place = killed_once_saved("export.train", command(base, data, out, *SHORT), out, alone())
    shutil.copytree(place, out / "state-9999.part")  # As a kill in the midst of saving leaves one.
    with (out / "log.jsonl").open("a") as log:
        log.write('{"step": 1, "lo')
    assert main(command(base, data, out, *SHORT)) == 0
    assert furthest(whole, out) == 0
    assert [path.name for path in out.glob("state-*")] == ["state-8"]


@pytest.mark.slow
def test_two_processes_give_the_weights_of_one(base: Path, data: Path, whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="launching needs the `export` extra")
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    program = [*launch, "-m", "export.train", *command(base, data, tmp_path / "run", *SHORT)]
    done = subprocess.run(program, cwd=ROOT, env=alone(), capture_output=True, text=True, timeout=120)
    assert not done.returncode, done.stderr
    assert "fp32 on 2 x cpu" in done.stderr
    assert done.stderr.count("step 8/8  loss") == 1  # One of them speaks.
    assert furthest(whole, tmp_path / "run") < ROUNDING
    mine, theirs = ([row["loss"] for row in read_log(out) if "loss" in row] for out in (whole, tmp_path / "run"))
    assert np.allclose(mine, theirs, atol=1e-4)


def alone() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def test_parts_and_checkpointing_change_memory_alone(base: Path, data: Path, whole: Path, tmp_path: Path) -> None:
    less = ["--parts", "3", "--gradient-checkpointing"]
    assert main(command(base, data, tmp_path / "run", *SHORT, *less)) == 0
    assert furthest(whole, tmp_path / "run") < ROUNDING


def test_lora_trains_factors_and_head_alone(base: Path, whole: Path) -> None:
    before, after = load(str(base)).model.state_dict(), tensors(whole)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    layers = {f"backbone.layers.{at}.{part}" for at in (0, 1) for part in ("self_attn.q_proj", "mlp.down_proj")}
    assert {f"{layer}.weight" for layer in layers} < changed
    assert {name for name in changed if name.startswith("head.")} >= {"head.S", "head.mab.fc_o.weight"}
    assert not {name for name in changed if "embed" in name or "norm.weight" in name or name.endswith("proj.bias")}


def test_bf16_is_for_frozen_weights_and_what_is_written_is_whole(base: Path, data: Path, tmp_path: Path) -> None:
    for full in ([], ["--full"]):
        out = tmp_path / f"run{len(full)}"
        assert main(command(base, data, out, *QUICK, "--steps", "2", "--precision", "bf16", *full)) == 0
        assert all(value.dtype == torch.float32 for value in tensors(out).values())
    embedding = "backbone.embed_tokens.weight"
    assert torch.equal(tensors(tmp_path / "run0")[embedding], load(str(base)).model.state_dict()[embedding])


def test_plain_weights_get_a_head_of_the_asked_width(data: Path, tmp_path: Path) -> None:
    plain = tiny_checkpoint.write_plain(tmp_path / "plain")
    out = tmp_path / "run"
    assert main(command(plain, data, out, *QUICK, "--steps", "2", "--dim", "16", "--head-rate", "1e-2")) == 0
    for place in (out, out / CHECKPOINT):
        assert load_any(str(place)).model.dim == 16
    assert furthest_of(load_any(str(out)).model, load(str(out / CHECKPOINT)).model) == 0


def furthest_of(one: C2LLM, other: C2LLM) -> float:
    mine, theirs = one.state_dict(), other.state_dict()
    return max(float((mine[name] - theirs[name]).abs().max()) for name in mine)


def test_the_log_and_the_plot_tell_the_run(whole: Path) -> None:
    rows = read_log(whole)
    assert [row["step"] for row in rows if "valid_mrr" in row] == [0, 4, 8]
    steps = [row for row in rows if "loss" in row]
    assert [row["step"] for row in steps] == list(range(1, 9))
    assert steps[-1]["seconds_left"] == 0
    assert all(row["pairs_per_s"] > 0 for row in steps)
    lines = [node for node in ElementTree.parse(whole / PLOT).iter() if node.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [8, 3]


def test_a_long_run_has_a_plot_of_few_points_and_an_empty_one_has_none() -> None:
    long = plot([{"step": step, "loss": 1 / step} for step in range(1, 10_000)])
    assert long.count(",") < 400
    ElementTree.fromstring(plot([]))
    assert [clock(59.6), clock(61), clock(3_661)] == ["1:00", "1:01", "1:01:01"]


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([0, 1, 12, 13, 24, 30, 45])
    monkeypatch.setattr("export.journal.time.monotonic", lambda: next(now))
    tell = progress("embedded")
    for done in (1, 4, 5, 8, 10, 1):
        tell(done, 10)
    assert capsys.readouterr().err.splitlines() == [
        "embedded 4/10  0:18 left",
        "embedded 8/10  0:06 left",
        "embedded 1/10  2:15 left",
    ]


def test_factors_start_without_effect_and_fold_into_the_weights(base: Path) -> None:
    model = load(str(base)).model
    ids = torch.arange(24).reshape(2, 12)
    mask = torch.ones_like(ids)
    with torch.no_grad():
        plain = model(ids, mask)
        add_lora(model, rank=4, alpha=8, seed=0)
        assert torch.equal(model(ids, mask), plain)
        for name, value in trained(model).items():
            if name.endswith("lora_b"):
                value.normal_(std=0.1, generator=torch.Generator().manual_seed(len(name)))
        moved = model(ids, mask)
        fold_lora(model)
        assert (model(ids, mask) - moved).abs().max() < 1e-5
    assert (moved - plain).abs().max() > 1e-3
    assert model.state_dict().keys() == load(str(base)).model.state_dict().keys()


def test_a_code_that_answers_the_query_too_is_no_negative() -> None:
    some = [Example(f"query {at}", f"{name} = {name}({at})", "python", "s") for at, name in enumerate("abcd")]
    some.append(Example("QUERY 0", "another(answer)", "python", "s"))

    def length(texts: Sequence[str]) -> Tokens:
        return [[len(text)] for text in texts]

    batch = make_batch(some, np.array([0, 1]), {0: np.array([2, -1]), 1: np.array([4, 2])}, length, length)
    assert len(batch.queries) == 2
    assert len(batch.codes) == 4  # 0, 1, 2 once, 4
    assert batch.counted.tolist() == [[True, True, True, False], [True, True, True, True]]


def test_the_loss_is_the_paper_s() -> None:
    queries = torch.nn.functional.normalize(torch.tensor([[1.0, 0.2], [0.1, 1.0]]), dim=1)
    codes = torch.eye(2).repeat(2, 1)
    counted = torch.tensor([[True, True, True, False], [True, True, True, True]])
    scores = (queries @ codes.T / 0.05).exp()
    expected = -sum(torch.log(scores[at, at] / scores[at][counted[at]].sum()) for at in (0, 1)) / 2
    assert torch.isclose(loss_of(queries, codes, counted), torch.as_tensor(expected))


def test_a_batch_in_parts_has_the_gradient_of_the_whole() -> None:
    table = torch.nn.Parameter(torch.randn(9, 4, generator=torch.Generator().manual_seed(0)))

    def embed(rows: Tokens) -> Tensor:
        vectors: Tensor = torch.nn.functional.normalize(table[[row[0] for row in rows]], dim=1)
        return vectors

    batch = Batch([[0], [1], [2]], [[3], [4], [5], [6], [7]], torch.ones(3, 5, dtype=torch.bool))
    gradients = []
    for parts in (1, 2, 3, 9):
        table.grad = None
        backward(embed, batch, ALONE, parts)
        assert table.grad is not None
        gradients.append(table.grad.clone())
    assert gradients[0].abs().max() > 0.01
    assert all(torch.allclose(gradients[0], other, atol=1e-6) for other in gradients[1:])


def test_the_learning_rate_rises_and_falls() -> None:
    recipe = Recipe(steps=100, warm_up=10)
    rates = [recipe.share_of_rate(step) for step in range(101)]
    assert rates[0] < rates[9] > rates[50] > rates[100] > 0


def test_negatives_are_mined_when_asked() -> None:
    once, often, never = Recipe(steps=10), Recipe(steps=10, mine_every=4), Recipe(steps=10, negatives=0)
    mined = [[step for step in range(10) if recipe.mines_at(step)] for recipe in (once, often, never)]
    assert mined == [[0], [0, 4, 8], []]
    assert list(often.mined_for(8)) == [8, 9]


def told(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """The one line that a failing command says."""
    capsys.readouterr()
    assert main(arguments) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("export.train: ")
    assert not any("Traceback" in line for line in lines)
    return lines[-1]


def test_wrong_inputs_are_told_in_one_line(
    base: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"query": "q", "code": "c"}\n{"query": 1}\n')
    empty = tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "run"
    assert "bad.jsonl:2: `query` is 1" in told(capsys, command(base, bad, out))
    assert "no pairs; give one JSON object a line" in told(capsys, command(base, empty, out))
    assert "config.json" in told(capsys, command(empty, data, out))
    assert "not 8" in told(capsys, command(base, data, out, "--dim", "8"))
    assert "nothing to train on" in told(capsys, command(base, data, out, "--valid", str(data)))
    assert not out.exists()


def test_another_run_s_folder_is_left_as_it_is(
    base: Path, data: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.stat().st_mtime_ns for path in whole.rglob("*"))
    other = tiny_checkpoint.write_checkpoint(
        tmp_path / base.name, tensors={**load_file(base / "model.safetensors"), "mha_pma.S": torch.ones(1, 1, 32)}
    )
    assert "holds a run with weights" in told(capsys, command(other, data, whole, *SHORT))
    line = told(capsys, command(base, data, whole, *SHORT, "--batch", "4"))
    assert "holds a run with batch 8, not 4; go on with its settings, or give another --out" in line
    assert sorted(path.stat().st_mtime_ns for path in whole.rglob("*")) == before


def test_a_damaged_state_is_told(
    base: Path, data: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("trained.safetensors", "optimiser.pt", "run.json", "negatives.npz"):
        out = tmp_path / name
        shutil.copytree(whole, out)
        path = out / "state-8" / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        line = told(capsys, command(base, data, out, *SHORT))
        assert "state-8" in line
        assert "cannot be read" in line


def test_too_little_memory_or_disk_is_told_before_the_work(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("export.memory.free_memory", lambda device: 1_000)
    assert "too little memory" in told(capsys, command(base, data, tmp_path / "run"))
    monkeypatch.undo()
    monkeypatch.setattr("export.memory.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10}))
    assert "GB of disk" in told(capsys, command(base, data, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_memory_that_runs_out_on_the_way_is_told(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def out_of_memory(*_: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")

    monkeypatch.setattr(Trainer, "step", out_of_memory)
    line = told(capsys, command(base, data, tmp_path / "run", *SHORT))
    assert "too little memory; try --parts 4" in line


def test_without_torch_it_says_what_to_install(base: Path, data: Path, tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from export.train import main; sys.exit(main(sys.argv[1:]))"
    arguments = [sys.executable, "-c", program, *command(base, data, tmp_path / "run")]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "export.train: torch is not installed; run `pip install -e '.[export]'` in the clone\n"


def test_wrong_numbers_are_wrong_usage(base: Path, data: Path, tmp_path: Path) -> None:
    for more in (["--batch", "0"], ["--negatives", "-1"], ["--learning-rate", "nan"], ["--precision", "int8"]):
        with pytest.raises(SystemExit) as ended:
            main(command(base, data, tmp_path / "run", *more))
        assert ended.value.code == 2
