"""The model against its formulas, written out again for one text without padding, head by head, in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch", reason="the model needs the `export` extra")
pytest.importorskip("transformers", reason="the model needs the `export` extra")

from export.c2llm import C2LLM, PMA, HeadConfig, new_head  # noqa: E402
from export.checkpoint import load  # noqa: E402

from .tiny_checkpoint import VOCABULARY, WIDTH, head_tensors, write_checkpoint  # noqa: E402

Array = npt.NDArray[Any]
FORMS = [
    HeadConfig(WIDTH, WIDTH, 4, norm_mode=mode, layer_norms=norms)
    for mode in ("post_normal", "pre_normal", "pre_gptj")
    for norms in (True, False)
] + [
    HeadConfig(WIDTH, WIDTH, 4, residual="query"),
    HeadConfig(WIDTH, WIDTH, 4, residual="query", layer_norms=False),
    HeadConfig(WIDTH, 24, 3),
    HeadConfig(WIDTH, 48, 1, residual="query"),
    HeadConfig(WIDTH, WIDTH, 32),
]


def written_out(weights: dict[str, Array], config: HeadConfig, states: Array) -> Any:
    """The pooled vector [dim] of the states [tokens, backbone_dim] of one text."""

    def linear(name: str, x: Array) -> Any:
        return x @ weights[f"mab.{name}.weight"].T + weights[f"mab.{name}.bias"]

    def norm(name: str, x: Array) -> Any:
        if not config.layer_norms:
            return x
        centred = x - x.mean(-1, keepdims=True)
        unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return unit * weights[f"mab.{name}.weight"] + weights[f"mab.{name}.bias"]

    def attention(query: Array, states: Array) -> Array:
        keys, values = linear("fc_k", states), linear("fc_v", states)
        parts = []
        for at in range(config.heads):
            part = slice(at * config.dim // config.heads, (at + 1) * config.dim // config.heads)
            scores = np.exp(keys[:, part] @ query[part] / np.sqrt(config.dim))
            parts.append(scores / scores.sum() @ values[:, part])
        return np.concatenate(parts)

    seed = weights["S"][0, 0]
    if config.norm_mode == "post_normal":
        query = linear("fc_q", seed)
        out = norm("ln0", (query if config.residual == "query" else seed) + attention(query, states))
        return norm("ln1", out + np.maximum(linear("fc_o", out), 0))
    query, states = norm("ln_q", seed), norm("ln_kv", states)
    out = seed + attention(linear("fc_q", query), states)
    if config.norm_mode == "pre_normal":
        return norm("ln_final", out + np.maximum(linear("fc_o", norm("ln_o", out)), 0))
    return norm("ln_final", out + np.maximum(linear("fc_o", query), 0))


def odd_head(config: HeadConfig) -> PMA:
    head = new_head(config)
    head.load_state_dict({name.removeprefix("mha_pma."): value for name, value in head_tensors(config).items()})
    return head


@pytest.mark.parametrize("config", FORMS, ids=lambda c: f"{c.norm_mode}-{c.layer_norms}-{c.residual}-{c.dim}x{c.heads}")
def test_every_form_of_the_head_is_its_formula(config: HeadConfig) -> None:
    head = odd_head(config).double()
    states = torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, :3] = False
    found = head(states, mask).detach().numpy()
    weights = {name: value.numpy() for name, value in head.state_dict().items()}
    np.testing.assert_allclose(found[0], written_out(weights, config, states[0].numpy()), atol=1e-12)
    np.testing.assert_allclose(found[1], written_out(weights, config, states[1, 3:].numpy()), atol=1e-12)


def test_the_forms_differ() -> None:
    states = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(1))
    forms = [config for config in FORMS if config.dim == WIDTH and config.layer_norms]
    vectors = [odd_head(config)(states, torch.ones(1, 5, dtype=torch.bool)) for config in forms]
    for at, vector in enumerate(vectors):
        assert all((vector - other).abs().max() > 1e-3 for other in vectors[:at])


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"norm_mode": "sandwich"}, "'sandwich'"),
        ({"residual": "none"}, "'none'"),
        ({"heads": 5}, "heads 5"),
        ({"heads": 0}, "heads 0"),
        ({"norm_mode": "pre_gptj", "residual": "query"}, "'query'"),
        ({"norm_mode": "pre_normal", "dim": 16}, "dim 16"),
    ],
)
def test_a_form_that_does_not_exist_is_refused_by_name(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        HeadConfig(**{"backbone_dim": WIDTH, "dim": WIDTH, "heads": 4, **changed})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> C2LLM:
    return load(str(write_checkpoint(tmp_path_factory.mktemp("checkpoint")))).model


def texts(*lengths: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    return [random.integers(0, VOCABULARY, length).tolist() for length in lengths]


def embed(model: C2LLM, rows: list[list[int]], width: int = 0, left: bool = True) -> npt.NDArray[np.float32]:
    width = max(width, *map(len, rows))
    ids, mask = torch.full((len(rows), width), 7), torch.zeros((len(rows), width), dtype=torch.int64)
    for at, row in enumerate(rows):
        where = slice(width - len(row), width) if left else slice(len(row))
        ids[at, where] = torch.tensor(row)
        mask[at, where] = 1
    with torch.no_grad():
        return np.asarray(model(ids, mask))


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_neither_padding_nor_company_changes_a_vector(model: C2LLM, attention: str) -> None:
    model.backbone.set_attn_implementation(attention)
    rows = texts(1, 3, 9, 17, 40, 40)
    alone = np.concatenate([embed(model, [row]) for row in rows])
    for changed in (
        embed(model, rows),
        embed(model, rows, width=64),
        embed(model, rows, left=False),
        embed(model, rows[::-1])[::-1],
    ):
        np.testing.assert_allclose(changed, alone, atol=1e-5)


def test_what_is_in_the_padding_does_not_matter(model: C2LLM) -> None:
    ids = torch.tensor([[1, 2, 3, 4, 5], [9, 8, 3, 4, 5]])
    mask = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 1, 1, 1]])
    first, second = model(ids, mask)
    torch.testing.assert_close(first, second, atol=1e-6, rtol=0)


def test_vectors_are_float32_of_unit_length_and_tell_texts_apart(model: C2LLM) -> None:
    vectors = embed(model, texts(4, 5, 6))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors @ vectors.T - np.eye(3)).max() < 0.999


def test_the_order_of_tokens_matters(model: C2LLM) -> None:
    forth, back = embed(model, [[1, 2, 3, 4], [4, 3, 2, 1]])
    assert forth @ back < 0.9999


def test_a_token_does_not_see_what_follows(model: C2LLM) -> None:
    mask = torch.ones(2, 4, dtype=torch.int64)
    states = model.states(torch.tensor([[1, 2, 3, 4], [1, 2, 3, 9]]), mask)
    torch.testing.assert_close(states[0, :3], states[1, :3])


def test_a_batch_without_a_token_is_finite(model: C2LLM) -> None:
    assert torch.isfinite(model(torch.tensor([[1, 2]]), torch.tensor([[0, 0]]))).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_nearly_the_same_float32_vectors(tmp_path: Path, model: C2LLM, dtype: str) -> None:
    half = load(str(write_checkpoint(tmp_path)), dtype=getattr(torch, dtype)).model
    rows = texts(5, 9)
    found = embed(half, rows)
    assert found.dtype == np.float32
    assert (found * embed(model, rows)).sum(axis=1).min() > 0.99


def test_everything_can_be_trained(tmp_path: Path) -> None:
    model = load(str(write_checkpoint(tmp_path))).model
    vectors = model(torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[1, 1, 1], [0, 1, 1]]))
    (vectors[0] * vectors[1]).sum().backward()
    without = [name for name, value in model.named_parameters() if value.grad is None or not value.grad.any()]
    # What is added to all keys alike changes no softmax.
    assert [name for name in without if "k_proj.bias" not in name and "fc_k.bias" not in name] == []


def test_a_new_head_is_the_seeds_and_touches_no_global_state() -> None:
    config = HeadConfig(WIDTH, WIDTH, 4)
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, second, other = new_head(config, 1), new_head(config, 1), new_head(config, 2)
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.S, other.S)
