"""The contrastive loss of a batch over all processes, and its gradient in as little memory as is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .data import Example, Ids
from .metrics import TEMPERATURE
from .negatives import NONE, answers_apart
from .parallel import World

Tokens = list[list[int]]
Embed = Callable[[Tokens], Tensor]
"""Rows of tokens -> unit vectors [rows, dim]; of no rows [0, dim]."""


@dataclass(frozen=True)
class Batch:
    """The texts of one step, as tokens, prompts included."""

    queries: Tokens
    codes: Tokens
    """Each query's own code in its place, the hard negatives of all of them after these."""
    counted: Tensor
    """bool [queries, codes]: a query's own code, and those that are a wrong answer to it. The others answer it too."""


def make_batch(
    examples: Sequence[Example],
    ids: Ids,
    negatives: Mapping[int, Ids],
    queries: Callable[[Sequence[str]], Tokens],
    codes: Callable[[Sequence[str]], Tokens],
) -> Batch:
    """The batch of the examples `ids`, with the `negatives` of each; the last two turn texts into tokens."""
    hard = [other for number in ids for other in negatives.get(int(number), ()) if other != NONE]
    columns = list(dict.fromkeys([*ids.tolist(), *map(int, hard)]))
    counted = answers_apart([examples[number] for number in columns])(slice(len(ids)))
    counted |= np.eye(len(ids), len(columns), dtype=bool)
    return Batch(
        queries([examples[number].query for number in ids]),
        codes([examples[number].code for number in columns]),
        torch.from_numpy(counted),
    )


def loss_of(queries: Tensor, codes: Tensor, counted: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """InfoNCE: query i [n, dim] against all codes [m, dim] that count for it; code i is the right one."""
    scores = queries.float() @ codes.float().T / temperature
    scores = scores.masked_fill(~counted, float("-inf"))
    return nn.functional.cross_entropy(scores, torch.arange(len(queries), device=scores.device))


def backward(embed: Embed, batch: Batch, world: World, parts: int) -> float:
    """Adds the gradient of the batch's loss to the weights of `embed`, this process's part of it; returns the loss.

    With `parts` over 1 the texts are embedded in so many parts: once for the vectors, and once more, each part by
    itself, for the gradient. It is that of the whole batch, every text seen against every other, at the memory of one
    part and the price of one more pass forward.
    """
    mine = [texts[world.mine(len(texts))] for texts in (batch.queries, batch.codes)]
    if parts == 1:
        return _spread([embed(texts) for texts in mine], batch, world)
    with torch.no_grad():
        vectors = [torch.cat([embed(texts[part]) for part in _parts(texts, parts)]) for texts in mine]
    for leaf in vectors:
        leaf.requires_grad_()
    loss = _spread(vectors, batch, world)
    for texts, leaf in zip(mine, vectors, strict=True):
        for part in _parts(texts, parts):
            if leaf.grad is not None and texts[part]:
                (embed(texts[part]) * leaf.grad[part]).sum().backward()  # type: ignore[no-untyped-call]
    return loss


def _spread(vectors: Sequence[Tensor], batch: Batch, world: World) -> float:
    """Backward from the whole loss to this process's vectors of queries and codes."""
    sizes = len(batch.queries), len(batch.codes)
    queries, codes = (world.gather(mine, count) for mine, count in zip(vectors, sizes, strict=True))
    loss = loss_of(queries, codes, batch.counted.to(queries.device))
    if loss.requires_grad:  # Not where a process has no text of a small batch.
        loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


def _parts(texts: Tokens, parts: int) -> list[slice]:
    size = max(1, -(-len(texts) // parts))
    return [slice(start, start + size) for start in range(0, len(texts), size)] or [slice(0, 0)]
