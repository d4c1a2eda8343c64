"""A checkpoint's vectors made narrower than its head: by a projection (PCA), or by a new head that imitates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, mse_loss, normalize, softmax

from .c2llm import C2LLM, new_head
from .checkpoint import fresh_head
from .encoders import Rows, in_batches, padded
from .errors import ExportError

Vectors = npt.NDArray[np.float32]
Say = Callable[[str], None]

PCA, DISTIL = "pca", "distil"
HELD_OUT = 0.2
"""The share of the calibration texts that the figures are measured on, and nothing is fitted to."""
STEPS = 400
BATCH = 64
LEARNING_RATE = 1e-3
TEMPERATURE = 0.05
SAY_EVERY = 50


class Projected(nn.Module):
    """A model whose vectors are projected by the orthonormal columns of a matrix [width, dim], then of unit length."""

    projection: Tensor

    def __init__(self, model: nn.Module, projection: Tensor):
        super().__init__()
        self.model = model
        self.register_buffer("projection", projection)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As C2LLM's."""
        vectors = self.model(input_ids, attention_mask)
        return normalize((vectors.to(self.projection.dtype) @ self.projection).float(), dim=-1)


@dataclass(frozen=True)
class Reduced:
    """The narrower model, and what bundle.json says of it."""

    model: nn.Module
    facts: Mapping[str, Any] = field(default_factory=dict)


def embed(model: nn.Module, rows: Sequence[list[int]], progress: Callable[[int], None] = lambda _: None) -> Vectors:
    """Unit vectors [rows, dim] of token lists; `progress` is told of the rows of each batch."""

    def run(batch: Rows) -> Vectors:
        ids, mask = map(torch.from_numpy, batch)
        with torch.inference_mode():
            vectors: Vectors = model(ids, mask).numpy()
        progress(len(vectors))
        return vectors

    return in_batches(rows, "left", run, equal=False)


def by_pca(model: C2LLM, vectors: Vectors, dim: int) -> Reduced:
    """The model projected onto the `dim` directions that hold most of its vectors on code, [texts, width]."""
    fitted, held_out = _split(len(vectors))
    if len(fitted) < dim:
        raise ExportError(
            f"--dim {dim}: {len(vectors)} functions to calibrate with are too few, it takes "
            f"{int(dim / (1 - HELD_OUT)) + 1}; name more code with --calibrate"
        )
    # Not centred: products of vectors are what has to be kept, and their mean has a part in them.
    _, directions = np.linalg.eigh(vectors[fitted].T.astype(np.float64) @ vectors[fitted])
    projection = np.ascontiguousarray(directions[:, ::-1][:, :dim]).astype(np.float32)
    rest = vectors[held_out] - vectors[held_out].mean(axis=0)
    share = float(np.square(rest @ projection).sum() / np.square(rest).sum())
    short = vectors[held_out] @ projection
    short /= np.linalg.norm(short, axis=1, keepdims=True)
    facts = {
        "method": PCA,
        "from_dim": vectors.shape[1],
        "share_of_variance_kept": round(share, 4),
        **_agreement(vectors[held_out], short),
        "functions": len(vectors),
    }
    return Reduced(Projected(model, torch.from_numpy(projection)), facts)


def by_distillation(
    model: C2LLM, vectors: Vectors, rows: Sequence[list[int]], dim: int, say: Say, steps: int = STEPS
) -> Reduced:
    """The model with a new head of width `dim`, whose similarities of code are those of the old, `vectors`.

    The backbone stays as it is, so that its states of the token lists `rows` are computed once.
    """
    fitted, held_out = _split(len(vectors))
    states = _states(model, rows)
    head = new_head(fresh_head(model.head.config.backbone_dim, dim, model.head.config.layer))
    optimiser = torch.optim.AdamW(head.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps)
    random = np.random.default_rng(0)
    for step in range(1, steps + 1):
        batch = random.choice(fitted, min(BATCH, len(fitted)), replace=False)
        loss = _unlike(normalize(head(*_padded_states(states, batch)), dim=-1), torch.from_numpy(vectors[batch]))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        if step % SAY_EVERY == 0:
            say(f"training the head: step {step} of {steps}, loss {loss.item():.4f}")
    narrow = C2LLM(model.backbone, head.eval()).eval()
    with torch.inference_mode():
        short = [normalize(head(*_padded_states(states, [at])), dim=-1).numpy() for at in held_out]
    facts = {
        "method": DISTIL,
        "from_dim": vectors.shape[1],
        **_agreement(vectors[held_out], np.concatenate(short)),
        "functions": len(vectors),
        "steps": steps,
    }
    return Reduced(narrow, facts)


def nearest_agreement(first: Vectors, second: Vectors) -> float:
    """The share of texts that have the same nearest neighbour by both kinds of vectors, [texts, any width]."""
    if len(first) < 2:
        return 1.0
    nearest = []
    for vectors in (first, second):
        scores = vectors @ vectors.T
        np.fill_diagonal(scores, -np.inf)
        nearest.append(scores.argmax(axis=1))
    return float((nearest[0] == nearest[1]).mean())


def _agreement(wide: Vectors, short: Vectors) -> dict[str, float]:
    """How alike the similarities are on texts that nothing was fitted to."""
    pairs = np.triu_indices(len(wide), 1)
    correlation = np.corrcoef((wide @ wide.T)[pairs], (short @ short.T)[pairs])[0, 1] if len(wide) > 2 else 1.0
    return {
        "similarity_correlation": round(float(correlation), 4),
        "nearest_neighbour_agreement": round(nearest_agreement(wide, short), 4),
    }


def _unlike(student: Tensor, teacher: Tensor) -> Tensor:
    """How far the student's similarities within a batch are from the teacher's: by size, and by rank."""
    scores = [vectors @ vectors.T for vectors in (student, teacher)]
    others = ~torch.eye(len(student), dtype=torch.bool)
    mine, theirs = (score[others].view(len(student), -1) for score in scores)
    by_rank = kl_div(
        log_softmax(mine / TEMPERATURE, dim=1), softmax(theirs / TEMPERATURE, dim=1), reduction="batchmean"
    )
    return by_rank + mse_loss(mine, theirs) / TEMPERATURE


def _states(model: C2LLM, rows: Sequence[list[int]]) -> list[Tensor]:
    """Each text's token states, [tokens, width] in half precision: they are many."""
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
    states: list[Tensor] = [torch.empty(0)] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), BATCH // 4):
            batch = order[start : start + BATCH // 4]
            ids, mask = map(torch.from_numpy, padded([rows[at] for at in batch]))
            for at, row, seen in zip(batch, model.states(ids, mask), mask.bool(), strict=True):
                states[at] = row[seen].bfloat16()
    return states


def _padded_states(states: Sequence[Tensor], batch: Sequence[int] | npt.NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """The states [batch, tokens, width] of some texts, and the mask."""
    chosen = [states[at].float() for at in batch]
    lengths = torch.tensor([len(state) for state in chosen])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    return nn.utils.rnn.pad_sequence(chosen, batch_first=True), mask


def _split(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which texts are fitted to, and which are held out."""
    order = np.random.default_rng(0).permutation(count)
    held_out = max(1, round(count * HELD_OUT))
    return order[held_out:], order[:held_out]
