"""The training loop. Its weights are a function of the checkpoint, the data and the recipe: not of kills or clocks."""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from torch import Tensor, nn

from .contrastive import Tokens, backward, make_batch
from .data import Batches, Example, Ids, fingerprint
from .encoders import QUERY_TOKENS, CheckpointEncoder, Loaded, padded, silent, tokenized
from .errors import ExportError
from .journal import TELL_SECONDS, Journal, clock, progress, say
from .lora import add_lora
from .metrics import Vectors, paired
from .negatives import mine
from .parallel import World
from .recipe import Recipe
from .state import State, load_state, save_state

LENGTHS = 4
"""Parts in which texts go through the model, beside others of about their length: less of it is padding."""
_HEAD = "head."


class Stopped(Exception):
    """Ctrl-C or SIGTERM: the state is saved."""


@dataclass(frozen=True)
class Pace:
    """What has no say in the weights."""

    save_seconds: float = 300.0
    validate_every: int = 200
    """Steps."""


@dataclass
class Trainer:
    """One run of fine-tuning in a folder."""

    checkpoint: Loaded
    """Of a family that LoRA knows (c2llm), or for a recipe that is `full`."""
    train: Sequence[Example]
    valid: Sequence[Example]
    recipe: Recipe
    world: World
    folder: Path
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        recipe, model = self.recipe, self.checkpoint.model
        self.batches = Batches(self.train, recipe.batch, recipe.seed)
        self.run_facts = {
            "checkpoint": self.checkpoint.source,
            "weights": weights_of(model),
            "data": fingerprint(self.train),
            **asdict(recipe),
        }
        if recipe.full:
            model.requires_grad_(True)
        else:
            add_lora(model, recipe.rank, recipe.alpha, recipe.seed)
            model.head.requires_grad_(True)
            if recipe.bf16:
                _to_bf16(model.backbone)
        if recipe.checkpointing:
            model.backbone.gradient_checkpointing_enable({"use_reentrant": False})
        model.to(self.world.device)
        named = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
        self.parameters = [value for _, value in named]
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [v for n, v in named if not n.startswith(_HEAD)], "lr": recipe.learning_rate},
                {"params": [v for n, v in named if n.startswith(_HEAD)], "lr": recipe.head_rate},
            ],
            weight_decay=recipe.weight_decay,
        )
        tell = progress("embedded") if self.world.first else silent
        self.encoder = CheckpointEncoder(self.checkpoint, self.world.device, recipe.max_tokens, tell)

    def run(self) -> dict[str, float]:
        """Trains to the end and returns the last validation's figures, {} without held-out pairs.

        Goes on from the folder's state. Raises Stopped after Ctrl-C or SIGTERM, ExportError for a state that does not
        fit.
        """
        state = load_state(self.folder, self.run_facts, self.checkpoint.model, self.optimiser)
        start = state.step if state else 0
        negatives = state.negatives if state else {}
        if self.world.first and state:
            say(f"goes on after step {start} of {self.recipe.steps}")
        journal = Journal(self.folder, self.recipe.steps, start) if self.world.first else None
        figures = self.validate(0, journal) if start == 0 else {}
        saved = told = time.monotonic()
        with asked_to_stop() as stop:
            for step in range(start, self.recipe.steps):
                if self.recipe.mines_at(step):
                    negatives = self.mine(step)
                loss, pairs = self.step(step, negatives)
                done, now = step + 1, time.monotonic()
                last = done == self.recipe.steps
                if journal:
                    tell = last or now - told >= TELL_SECONDS
                    told = now if tell else told
                    journal.trained(done, loss, self.optimiser.param_groups[0]["lr"], pairs, tell)
                if last or done % self.pace.validate_every == 0:
                    figures = self.validate(done, journal)
                stopping = self.world.same(bool(stop))
                if self.world.same(last or stopping or now - saved >= self.pace.save_seconds):
                    self.save(done, negatives)
                    saved = now
                if stopping and not last:
                    raise Stopped
        return figures

    def step(self, step: int, negatives: Mapping[int, Ids]) -> tuple[float, int]:
        """One step of the optimiser; returns the loss before it and the number of pairs."""
        # Of its own number: a run that goes on draws what it would have drawn.
        torch.manual_seed(int(np.random.SeedSequence([self.recipe.seed, step, self.world.rank]).generate_state(1)[0]))
        self.checkpoint.model.train()
        ids = self.batches.at(step)
        batch = make_batch(self.train, ids, negatives, self._query_tokens, self._code_tokens)
        for group, rate in zip(
            self.optimiser.param_groups, (self.recipe.learning_rate, self.recipe.head_rate), strict=True
        ):
            group["lr"] = rate * self.recipe.share_of_rate(step)
        self.optimiser.zero_grad()
        loss = backward(self._embed, batch, self.world, self.recipe.parts)
        self.world.add_up(self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip)
        if not torch.isfinite(norm):
            raise ExportError(f"step {step}: the gradient is not finite; lower the learning rate, or leave bf16 out")
        self.optimiser.step()
        return loss, len(ids)

    def mine(self, step: int) -> dict[int, Ids]:
        """Hard negatives, by the model as it is now, for the steps until they are mined again."""
        self.checkpoint.model.eval()
        used = {int(number) for at in self.recipe.mined_for(step) for number in self.batches.at(at)}
        started = time.monotonic()
        if self.world.first:
            say(f"mining negatives among {len(used)} pairs …")
        found = mine(self.train, used, self.recipe.negatives, self._share(self._queries), self._share(self._codes))
        if self.world.first:
            say(f"mined negatives in {clock(time.monotonic() - started)}")
        return found

    def validate(self, step: int, journal: Journal | None) -> dict[str, float]:
        """MRR and NLL on the held-out pairs."""
        if len(self.valid) < 2:
            return {}
        self.checkpoint.model.eval()
        queries = self._share(self._queries)([example.query for example in self.valid])
        codes = self._share(self._codes)([example.code for example in self.valid])
        all_figures = paired(queries, codes)
        figures = {name: all_figures[name] for name in ("mrr", "nll")}
        if journal:
            journal.validated(step, figures)
        return figures

    def save(self, step: int, negatives: Mapping[int, Ids]) -> None:
        """Saves the state after `step` steps."""
        if self.world.first:
            save_state(self.folder, State(step, self.run_facts, negatives), self.checkpoint.model, self.optimiser)

    def _embed(self, rows: Tokens) -> Tensor:
        """With gradient. A full run in bf16 keeps its weights in float32 and only computes in bf16."""
        if not rows:
            return torch.zeros(0, self.checkpoint.model.dim, device=self.world.device)
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        size = -(-len(rows) // LENGTHS)
        parts = [self._run([rows[at] for at in order[start : start + size]]) for start in range(0, len(rows), size)]
        return torch.cat(parts)[torch.tensor(order, device=self.world.device).argsort()]

    def _run(self, rows: Tokens) -> Tensor:
        ids, mask = (torch.from_numpy(values).to(self.world.device) for values in padded(rows))
        with self._arithmetic():
            vectors: Tensor = self.checkpoint.model(ids, mask)
        return vectors

    def _arithmetic(self) -> torch.autocast | nullcontext[None]:
        if self.recipe.full and self.recipe.bf16:
            return torch.autocast(self.world.device.type, torch.bfloat16)
        return nullcontext()

    def _queries(self, texts: Sequence[str]) -> Vectors:
        with self._arithmetic():
            return self.encoder.queries(texts)

    def _codes(self, texts: Sequence[str]) -> Vectors:
        with self._arithmetic():
            return self.encoder.codes(texts)

    def _share(self, encode: Callable[[Sequence[str]], Vectors]) -> Callable[[Sequence[str]], Vectors]:
        """`encode`, each process its part of the texts."""

        def shared(texts: Sequence[str]) -> Vectors:
            if len(texts) < self.world.size:
                return encode(texts)
            part = torch.from_numpy(encode(texts[self.world.mine(len(texts))])).to(self.world.device)
            vectors: Vectors = self.world.gather(part, len(texts)).cpu().numpy()
            return vectors

        return shared

    def _query_tokens(self, texts: Sequence[str]) -> Tokens:
        most = min(self.recipe.max_tokens, QUERY_TOKENS)
        return tokenized(self.checkpoint.tokenizer, self.checkpoint.query_prompt, texts, most)

    def _code_tokens(self, texts: Sequence[str]) -> Tokens:
        return tokenized(self.checkpoint.tokenizer, self.checkpoint.code_prompt, texts, self.recipe.max_tokens)


def weights_of(model: nn.Module) -> str:
    """Names the weights that a run starts from, by those of the head and of the norms: the rest is large."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if name.startswith(_HEAD) or value.dim() == 1:
            digest.update(value.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _to_bf16(backbone: nn.Module) -> None:
    """The frozen weights, half as large; the factors stay as they are."""
    for value in backbone.parameters():
        if not value.requires_grad:
            value.data = value.data.to(torch.bfloat16)


@contextmanager
def asked_to_stop() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C or SIGTERM. The second one ends the process at once, as ever."""
    asked: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        for which, handler in before.items():
            signal.signal(which, handler)

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
