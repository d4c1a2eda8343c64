"""A language model of transformers that writes one text for another: seq2seq or causal, read as data, no remote code.

It writes in both directions: what a function is asked for by, and a function for what is asked. How it is asked to is
a matter of its prompts, which a checkpoint of `python -m export.teacher train` carries in its config.json.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor

from .checkpoint import CONFIG, OURS, TOKENIZER, read_tokenizer
from .encoders import padded, tokenized
from .errors import one_line
from .hub import CheckpointError, locate
from .weights import read_json

TARGETS_AT_ONCE = 64
"""Texts whose probability is computed at once."""
_IGNORED = -100
"""A label that has no part in the loss."""

Scores = npt.NDArray[np.float64]
Tokens = list[list[int]]


@dataclass(frozen=True)
class Prompts:
    """How the model is asked: templates with {text} and {language} in them."""

    document: str
    """For a doc comment of the function {text}."""
    search: str
    """For what someone types into a search box to find the function {text}."""
    implement: str
    """For a function that does {text}."""
    end: str = ""
    """What ends the answer, where the model has no end of its own for it."""
    code_end: str = ""
    """The same for code, which has more than one line."""

    def ask(self, task: str, text: str, language: str) -> str:
        """The prompt for a task, which is the name of one of the templates."""
        template: str = getattr(self, task)
        before, _, after = template.replace("{language}", language).partition("{text}")
        return before + text + after

    def end_of(self, task: str) -> str:
        """What ends the answer to a task."""
        return self.code_end if task == IMPLEMENT else self.end


DOCUMENT, SEARCH, IMPLEMENT = "document", "search", "implement"
TASKS = (DOCUMENT, SEARCH, IMPLEMENT)
TEXT_ALONE = Prompts("{text}", "{text}", "{text}")
"""For a seq2seq model that was trained to do one thing."""
FEW_SHOT = Prompts(
    document=(
        "func Max(a []int) int {\n\tm := a[0]\n\tfor _, x := range a {\n\t\tif x > m {\n\t\t\tm = x\n\t\t}\n\t}\n"
        "\treturn m\n}\nDoc comment: Returns the largest number of a slice.\n\n"
        "def load(path):\n    with open(path) as f:\n        return json.load(f)\n"
        "Doc comment: Reads a JSON file and returns what is in it.\n\n{text}\nDoc comment:"
    ),
    search=(
        "func Max(a []int) int {\n\tm := a[0]\n\tfor _, x := range a {\n\t\tif x > m {\n\t\t\tm = x\n\t\t}\n\t}\n"
        "\treturn m\n}\nA web search for this: golang find largest number in slice\n\n"
        "def load(path):\n    with open(path) as f:\n        return json.load(f)\n"
        "A web search for this: how to read json from a file\n\n{text}\nA web search for this:"
    ),
    implement="// A function in {language}. {text}\n",
    end="\n",
    code_end="\n\n",
)
"""For a causal model that has read code."""


@dataclass(frozen=True)
class Sampling:
    """How texts are drawn."""

    temperature: float = 1.0
    top_p: float = 0.95
    """Only the likeliest tokens that together have this probability are drawn."""
    most_tokens: int = 64
    """The longest answer."""


@dataclass(frozen=True)
class Writer:
    """The model with its tokenizer and prompts."""

    model: Any
    """Of AutoModelForSeq2SeqLM or AutoModelForCausalLM."""
    tokenizer: Tokenizer
    """Without padding and truncation."""
    prompts: Prompts
    source: str
    max_source: int = 256
    """Longer texts to answer are cut to so many tokens."""
    bf16: bool = False
    """Whether to compute in bf16 with weights in float32; for training."""

    @property
    def causal(self) -> bool:
        """Whether question and answer are one text to the model."""
        return not self.model.config.is_encoder_decoder

    def questions(self, task: str, texts: Sequence[str], languages: Sequence[str]) -> Tokens:
        """The prompts as tokens, the text cut where it would be longer than `max_source`, never what stands around."""
        if not self.causal:
            asked = [self.prompts.ask(task, *each) for each in zip(texts, languages, strict=True)]
            return tokenized(self.tokenizer, "", asked, self.max_source)
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        kept = [text[: _end_of(each, self.max_source)] for text, each in zip(texts, encoded, strict=True)]
        asked = [self.prompts.ask(task, *each) for each in zip(kept, languages, strict=True)]
        return [each.ids for each in self.tokenizer.encode_batch(asked, add_special_tokens=False)]

    def answers(self, task: str, texts: Sequence[str], most: int) -> Tokens:
        """The answers as tokens, with what ends them."""
        if not self.causal:
            return tokenized(self.tokenizer, "", texts, most)
        before, after = (" ", self.prompts.end_of(task)) if task != IMPLEMENT else ("", self.prompts.code_end)
        encoded = self.tokenizer.encode_batch(
            [before + text.strip() + after for text in texts], add_special_tokens=False
        )
        return [each.ids[:most] or [0] for each in encoded]

    def loss(self, questions: Tokens, answers: Tokens) -> Tensor:
        """The mean -log p of a token of the answers."""
        with self._arithmetic():
            found = self._token_scores(questions, answers)
        return -found.sum() / sum(map(len, answers))

    def log_probabilities(self, questions: Tokens, answers: Tokens) -> Scores:
        """log p of each answer as a whole, given its question."""
        order = sorted(range(len(questions)), key=lambda at: (len(questions[at]), len(answers[at])))
        found = np.empty(len(order))
        with torch.inference_mode(), self._arithmetic():
            for some in _cut(order, TARGETS_AT_ONCE):
                tokens = self._token_scores([questions[at] for at in some], [answers[at] for at in some])
                found[some] = tokens.double().sum(dim=1).numpy()
        return found

    def log_probabilities_of_all(self, question: list[int], answers: Tokens) -> Scores:
        """log p of every answer given one question, which a seq2seq model reads once."""
        if self.causal:
            return self.log_probabilities([question] * len(answers), answers)
        from transformers.modeling_outputs import BaseModelOutput

        order = sorted(range(len(answers)), key=lambda at: len(answers[at]))
        found = np.empty(len(order))
        with torch.inference_mode(), self._arithmetic():
            read = self.model.get_encoder()(**_batch([question], "right")).last_hidden_state
            for some in _cut(order, TARGETS_AT_ONCE):
                states = BaseModelOutput(last_hidden_state=read.expand(len(some), -1, -1))
                mask = torch.ones(len(some), len(question), dtype=torch.int64)
                tokens = self._decoded([answers[at] for at in some], encoder_outputs=states, attention_mask=mask)
                found[some] = tokens.double().sum(dim=1).numpy()
        return found

    def sample(self, task: str, questions: Tokens, count: int, sampling: Sampling, seed: int) -> list[list[str]]:
        """`count` answers to each question; a function of its arguments."""
        batch = _batch(questions, "left" if self.causal else "right")
        end = self.prompts.end_of(task)
        with torch.inference_mode(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            written = self.model.generate(
                **(self._read_once(batch, count) if self.causal else {**batch, "num_return_sequences": count}),
                do_sample=True,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=0,
                max_new_tokens=sampling.most_tokens,
                pad_token_id=_padding(self.model),
                **({"stopping_criteria": [_Ended(self.tokenizer, end, batch["input_ids"].shape[1])]} if end else {}),
            )
        if self.causal:
            written = written[:, batch["input_ids"].shape[1] :]
        texts = [_first(text, end) for text in self.tokenizer.decode_batch(written.tolist(), skip_special_tokens=True)]
        return [texts[start : start + count] for start in range(0, len(texts), count)]

    def _read_once(self, batch: dict[str, Tensor], count: int) -> dict[str, Any]:
        """The batch `count` times over, with what a causal model keeps of having read each question once."""
        ids, mask = batch["input_ids"], batch["attention_mask"]
        places = (mask.cumsum(-1) - 1).clamp_min(0)
        known = {"attention_mask": mask[:, :-1], "position_ids": places[:, :-1]}
        cache = self.model.base_model(input_ids=ids[:, :-1], use_cache=True, **known).past_key_values
        cache.batch_repeat_interleave(count)
        repeated = {name: value.repeat_interleave(count, dim=0) for name, value in batch.items()}
        return {**repeated, "past_key_values": cache}

    def _token_scores(self, questions: Tokens, answers: Tokens) -> Tensor:
        """log p of each token of the answers [texts, tokens], 0 for padding."""
        if not self.causal:
            return self._decoded(answers, **_batch(questions, "right"))
        joined = _batch([[*q, *a] for q, a in zip(questions, answers, strict=True)], "right")
        labels = joined["input_ids"].masked_fill(joined["attention_mask"] == 0, _IGNORED)
        for row, question in enumerate(questions):
            labels[row, : len(question)] = _IGNORED
        return _chosen(self.model(**joined).logits[:, :-1], labels[:, 1:])

    def _decoded(self, answers: Tokens, **read: Any) -> Tensor:
        batch = _batch(answers, "right")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, _IGNORED)
        return _chosen(self.model(labels=labels, **read).logits, labels)

    def _arithmetic(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16) if self.bf16 else nullcontext()


def load_writer(source: str, revision: str | None = None, dtype: torch.dtype = torch.float32) -> Writer:
    """Reads a model's folder, a .gguf file of a Qwen2, or a hub id. Raises CheckpointError."""
    found = locate(source, revision)
    ours: dict[str, Any] = {}
    if found.path.suffix == ".gguf":
        model, tokenizer = _read_gguf(found.path, dtype)
    elif found.path.is_dir():
        ours = read_json(found.path / CONFIG).get(OURS) or {}
        model, tokenizer = _read_folder(found.path, dtype), read_tokenizer(found.path / TOKENIZER)
    else:
        raise CheckpointError(f"{source}: neither a folder nor a .gguf file; give the model's folder")
    default = TEXT_ALONE if model.config.is_encoder_decoder else FEW_SHOT
    prompts = Prompts(**ours["prompts"]) if "prompts" in ours else default
    limit = {"max_source": ours["max_source"]} if "max_source" in ours else {}
    return Writer(model.eval(), tokenizer, prompts, found.name, **limit)


def save_writer(writer: Writer, folder: Path) -> None:
    """Writes what `load_writer` reads."""
    setattr(writer.model.config, OURS, {"prompts": asdict(writer.prompts), "max_source": writer.max_source})
    writer.model.save_pretrained(folder, safe_serialization=True)
    writer.tokenizer.save(str(folder / TOKENIZER))


def _read_folder(folder: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model, told = kind.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder}: no model of transformers that writes ({one_line(error)})") from None
    # Transformers fills what is missing with chance, and says so in a warning alone.
    for name in sorted(told["missing_keys"]):
        raise CheckpointError(f"{folder}: the tensor {name} is missing; copy the model again")
    for name, theirs, ours in sorted(told["mismatched_keys"]):
        raise CheckpointError(f"{folder}: the tensor {name} is {list(theirs)}, by {CONFIG} it should be {list(ours)}")
    return model


def _read_gguf(path: Path, dtype: torch.dtype) -> tuple[Any, Tokenizer]:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from .gguf import read_gguf

    config, tensors, tokenizer = read_gguf(path, dtype)
    model = Qwen2ForCausalLM(Qwen2Config(**config)).to(dtype)
    model.load_state_dict({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"]})
    return model, tokenizer


class _Ended:
    """Stops a text at what ends it, once there is anything before it."""

    def __init__(self, tokenizer: Tokenizer, end: str, start: int) -> None:
        self._tokenizer, self._end, self._start = tokenizer, end, start

    def __call__(self, ids: Tensor, _scores: Tensor, **_: Any) -> Tensor:
        texts = self._tokenizer.decode_batch(ids[:, self._start :].tolist(), skip_special_tokens=True)
        return torch.tensor([self._end in text.lstrip() for text in texts])


def _first(text: str, end: str) -> str:
    """The text up to where it ends."""
    text = text.strip()
    return text.partition(end)[0].strip() if end else text


def _chosen(logits: Tensor, labels: Tensor) -> Tensor:
    """log p of the labels, 0 where there is none."""
    losses = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=_IGNORED, reduction="none"
    )
    return -losses.view(labels.shape)


def _batch(rows: Sequence[Sequence[int]], side: str) -> dict[str, Tensor]:
    ids, mask = padded(rows, side)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}


def _padding(model: Any) -> int:
    ends = model.generation_config.eos_token_id
    first = ends[0] if isinstance(ends, list) else ends
    return int(next(value for value in (model.config.pad_token_id, first, 0) if value is not None))


def _end_of(encoding: Any, most: int) -> int:
    """Where in the text its first `most` tokens end."""
    return int(encoding.offsets[most - 1][1]) if len(encoding.ids) > most else sys.maxsize


def _cut(order: Sequence[int], size: int) -> Iterator[list[int]]:
    return (list(order[start : start + size]) for start in range(0, len(order), size))
