"""How a model is fine-tuned: every number that its weights are a function of."""

from __future__ import annotations

import math
from dataclasses import dataclass

FINAL_RATE = 0.05
"""The share of the learning rate that is left at the end."""

FRESH_HEAD_RATE = 1e-3
"""The learning rate of a head that knows nothing yet."""


@dataclass(frozen=True)
class Recipe:
    """The paper's numbers, where it gives them."""

    steps: int
    full: bool = False
    """Train all weights instead of LoRA factors and the head."""
    rank: int = 64
    alpha: float = 32
    batch: int = 32
    """Pairs that are contrasted with each other, those of all processes together."""
    parts: int = 1
    """Parts in which a process embeds its share of the batch: more of them, less memory."""
    negatives: int = 7
    """Hard negatives of each pair."""
    mine_every: int = 0
    """Steps after which negatives are mined anew; 0 for once, before the first."""
    learning_rate: float = 1e-4
    head_rate: float = 1e-4
    warm_up: int = 50
    """Steps in which the learning rate rises; then it falls along a cosine."""
    weight_decay: float = 0.01
    clip: float = 1.0
    """The longest gradient."""
    max_tokens: int = 1_024
    bf16: bool = False
    checkpointing: bool = False
    """Whether the backbone's states are computed again instead of being kept."""
    seed: int = 0

    def share_of_rate(self, step: int) -> float:
        """What the learning rate is multiplied by at a step, counted from 0."""
        rise = min(1.0, (step + 1) / max(1, self.warm_up))
        fall = (1 + math.cos(math.pi * min(1.0, step / self.steps))) / 2
        return rise * (FINAL_RATE + (1 - FINAL_RATE) * fall)

    def rate(self, step: int) -> float:
        """The learning rate at a step, where all weights have one."""
        return self.learning_rate * self.share_of_rate(step)

    def mines_at(self, step: int) -> bool:
        """Whether hard negatives are mined before a step."""
        return bool(self.negatives) and (step % self.mine_every == 0 if self.mine_every else step == 0)

    def mined_for(self, step: int) -> range:
        """The steps that what is mined before `step` is for."""
        return range(step, min(self.steps, step + self.mine_every) if self.mine_every else self.steps)
