"""Several processes that train one model, as `accelerate launch` or `torchrun` start them.

They share the batches: each embeds its part of the texts, all vectors are gathered, and every process computes the
whole loss. In it only its own vectors depend on the weights, so that the processes' gradients add up to the whole one,
and a run's weights do not depend on how many processes there were, but for rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class World:
    """This process among those of the run."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files and speaks."""
        return self.rank == 0

    def mine(self, count: int) -> slice:
        """Which of `count` things are this process's."""
        return slice(*self._bounds(count)[self.rank : self.rank + 2])

    def _bounds(self, count: int) -> list[int]:
        return [count * rank // self.size for rank in range(self.size + 1)]

    def gather(self, mine: Tensor, count: int) -> Tensor:
        """All `count` rows of the processes, in order, from each one's own [len(self.mine(count)), dim].

        The gradient flows to this process's rows alone.
        """
        if self.size == 1:
            return mine
        sizes = [end - start for start, end in zip(self._bounds(count), self._bounds(count)[1:], strict=False)]
        padded = mine.new_zeros(max(sizes), mine.shape[1])
        padded[: len(mine)] = mine.detach()
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        rows = [mine if rank == self.rank else part[: sizes[rank]] for rank, part in enumerate(parts)]
        return torch.cat(rows)

    def add_up(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replaces each gradient by its sum over the processes."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def same(self, value: bool) -> bool:
        """The first process's answer, in every process: clocks differ."""
        if self.size == 1:
            return value
        answer = torch.tensor([value], dtype=torch.int32, device=self.device)
        dist.broadcast(answer, src=0)
        return bool(answer.item())


@contextmanager
def world(cpu: bool = False) -> Iterator[World]:
    """Joins the processes of the run, by the environment that their launcher gave them; one process without any."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    cuda = torch.cuda.is_available() and not cpu
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if size > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield World(rank, size, device)
        if size > 1:
            dist.barrier()  # The others stay until the first has written: an end before it has crashed gloo's threads.
    finally:
        if size > 1:
            dist.destroy_process_group()
