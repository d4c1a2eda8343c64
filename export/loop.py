"""The loop of a training run of one process: it learns, tells, validates, saves, and goes on where it was killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .errors import ExportError
from .journal import TELL_SECONDS, Journal, say
from .state import State, load_state, save_state
from .trainer import Pace, Stopped, asked_to_stop

LONGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class Run:
    """A run's weights are a function of `facts` and of the model that it starts from: not of kills or clocks."""

    folder: Path
    steps: int
    facts: Mapping[str, Any]
    """What the weights are a function of; another run cannot go on from the folder's state."""
    seed: int
    pace: Pace

    def train(
        self,
        model: nn.Module,
        rate: Callable[[int], float],
        loss_of: Callable[[int], tuple[Tensor, int]],
        validate: Callable[[], dict[str, float]],
    ) -> dict[str, float]:
        """Trains the model to the end and returns the figures of the last validation.

        `rate`: a step, counted from 0 -> the learning rate; `loss_of`: a step -> the loss of its batch and the number
        of its pairs. Raises Stopped after Ctrl-C or SIGTERM, ExportError for a state that does not fit.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        optimiser = torch.optim.Adam(model.parameters(), lr=rate(0), fused=True)
        state = load_state(self.folder, self.facts, model, optimiser)
        start = state.step if state else 0
        if state:
            say(f"goes on after step {start} of {self.steps}")
        journal = Journal(self.folder, self.steps, start)
        figures: dict[str, float] = {}
        saved = told = time.monotonic()
        with asked_to_stop() as stop:
            for step in range(start, self.steps):
                loss, pairs = self._step(step, model, optimiser, rate(step), loss_of)
                done, now = step + 1, time.monotonic()
                last = done == self.steps
                tell = last or now - told >= TELL_SECONDS
                told = now if tell else told
                journal.trained(done, loss, rate(step), pairs, tell)
                if last or done % self.pace.validate_every == 0:
                    figures = _validated(model, validate)
                    journal.validated(done, figures)
                if last or stop or now - saved >= self.pace.save_seconds:
                    save_state(self.folder, State(done, self.facts, {}), model, optimiser)
                    saved = now
                if stop and not last:
                    raise Stopped
        return figures or _validated(model, validate)

    def _step(
        self,
        step: int,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        rate: float,
        loss_of: Callable[[int], tuple[Tensor, int]],
    ) -> tuple[float, int]:
        """One step of the optimiser; returns the loss before it and the number of pairs."""
        # Of its own number: a run that goes on draws what it would have drawn.
        torch.manual_seed(int(np.random.SeedSequence([self.seed, step]).generate_state(1)[0]))
        model.train()
        loss, pairs = loss_of(step)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
        if not torch.isfinite(norm):
            raise ExportError(f"step {step}: the gradient is not finite; lower the learning rate")
        optimiser.step()
        return loss.item(), pairs


def _validated(model: nn.Module, validate: Callable[[], dict[str, float]]) -> dict[str, float]:
    model.eval()
    with torch.no_grad():
        return validate()
