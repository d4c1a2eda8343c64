"""How a teacher learns both directions from pairs: what a function is asked for by, and a function for what is asked.

One that is made from nothing reads and writes words alone, those at camel case apart, in lower case, without
punctuation: what a bag of words reads. A word that it does not know it reads and writes as several that it knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, processors
from torch import Tensor

from .data import Example, Ids, fingerprint
from .loop import Run
from .recipe import Recipe
from .searches import bare_words, question
from .tokenizer import PAD, UNKNOWN, make_tokenizer, vocabulary, word_counts
from .trainer import Pace, weights_of
from .writer import DOCUMENT, IMPLEMENT, SEARCH, TASKS, Prompts, Tokens, Writer

QUERY_TOKENS = 24
CODE_TOKENS = 64
"""Of a teacher's own words: the signature and how the body begins."""
SEARCHES = 0.3
"""The share of functions that the teacher learns to put a search to, instead of a doc comment."""
PROMPTS = Prompts("document {language} {text}", "search {language} {text}", "implement {language} {text}")
END = "[END]"


@dataclass(frozen=True)
class Size:
    """Of a teacher that is made from nothing."""

    dim: int = 192
    layers: int = 3
    """Of its encoder, and as many of its decoder."""
    heads: int = 6
    vocabulary: int = 8_000


def new_teacher(examples: Sequence[Example], size: Size, seed: int) -> Writer:
    """A T5 that knows nothing, with a tokenizer of the examples' words."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = _words_of(examples, size.vocabulary)
    config = T5Config(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=size.dim,
        d_kv=size.dim // size.heads,
        num_heads=size.heads,
        num_layers=size.layers,
        num_decoder_layers=size.layers,
        d_ff=4 * size.dim,
        dropout_rate=0.0,  # A pair is seen a few times at most.
        pad_token_id=tokenizer.token_to_id(PAD),
        eos_token_id=tokenizer.token_to_id(END),
        decoder_start_token_id=tokenizer.token_to_id(PAD),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = T5ForConditionalGeneration(config)
    return Writer(model, tokenizer, PROMPTS, "a teacher made from nothing", CODE_TOKENS)


def _words_of(examples: Sequence[Example], size: int) -> Tokenizer:
    """The student's kind of tokenizer, and for the same reason made here: those that the library trains differ from one
    time to the next, and a run that goes on needs the same one."""
    counts = word_counts(text for example in examples for text in (example.query, example.code))
    needed = word_counts([*TASKS, *_languages(examples)])
    words = vocabulary(counts + Counter(dict.fromkeys(needed, counts.total())), size - 1)
    tokenizer = make_tokenizer([*words, END])
    tokenizer.add_special_tokens([PAD, UNKNOWN, END])
    end = tokenizer.token_to_id(END)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, end)])
    return tokenizer


@dataclass(frozen=True)
class Lessons:
    """Questions with their answers, as tokens: two for each pair, one in each direction."""

    asked_for: tuple[Tokens, Tokens]
    """A function, and what it is asked for by."""
    implemented: tuple[Tokens, Tokens]
    """What is asked, and a function."""


def lessons(writer: Writer, examples: Sequence[Example], seed: int) -> Lessons:
    """The examples as what the writer is taught."""
    random = np.random.default_rng([seed, len(examples)])
    searched = random.random(len(examples)) < SEARCHES
    # Asked all at once, by task: the tokenizer works in parallel.
    asked: Tokens = [[] for _ in examples]
    queries = [_search(e.query, random) if search else e.query for e, search in zip(examples, searched, strict=True)]
    for task, which in ((DOCUMENT, ~searched), (SEARCH, searched)):
        rows = np.flatnonzero(which).tolist()
        some = [examples[row] for row in rows]
        for row, tokens in zip(rows, writer.questions(task, [e.code for e in some], _languages(some)), strict=True):
            asked[row] = tokens
    todo = writer.questions(IMPLEMENT, [e.query for e in examples], _languages(examples))
    return Lessons(
        (asked, writer.answers(DOCUMENT, queries, QUERY_TOKENS)),
        (todo, writer.answers(IMPLEMENT, [e.code for e in examples], CODE_TOKENS)),
    )


def teach(
    writer: Writer, train: Sequence[Example], valid: Sequence[Example], recipe: Recipe, folder: Path, pace: Pace
) -> dict[str, float]:
    """Trains the writer's model; returns the mean -log p of a token of `valid`, of what is asked and of functions."""
    learned, held_out = lessons(writer, train, recipe.seed), lessons(writer, valid, recipe.seed)

    def loss_of(step: int) -> tuple[Tensor, int]:
        rows = _batch(len(train), recipe, step).tolist()
        loss = _loss(writer, learned.asked_for, rows) + _loss(writer, learned.implemented, rows)
        return loss / 2, len(rows)

    def validate() -> dict[str, float]:
        rows = list(range(len(valid)))
        return {
            "query_nll": _mean_loss(writer, held_out.asked_for, rows, recipe.batch),
            "code_nll": _mean_loss(writer, held_out.implemented, rows, recipe.batch),
        }

    facts = {"weights": weights_of(writer.model), "data": fingerprint(train), **asdict(recipe)}
    run = Run(folder, recipe.steps, facts, recipe.seed, pace)
    return run.train(writer.model, recipe.rate, loss_of, validate)


def _search(query: str, random: np.random.Generator) -> str:
    """A doc comment as a search: its words, or a question."""
    return (bare_words(query) if random.random() < 0.5 else question(query, random)) or query


def _languages(examples: Sequence[Example]) -> list[str]:
    return [example.language for example in examples]


def _loss(writer: Writer, lesson: tuple[Tokens, Tokens], rows: Sequence[int]) -> Tensor:
    return writer.loss(*([tokens[row] for row in rows] for tokens in lesson))


def _mean_loss(writer: Writer, lesson: tuple[Tokens, Tokens], rows: Sequence[int], size: int) -> float:
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return float(np.average([_loss(writer, lesson, part).item() for part in parts], weights=list(map(len, parts))))


def _batch(pairs: int, recipe: Recipe, step: int) -> Ids:
    """The pairs of a step: every pair once an epoch, but for what fills no batch."""
    size = min(recipe.batch, pairs)
    epoch, place = divmod(step, pairs // size)
    return _order(pairs, recipe.seed, epoch)[place * size : (place + 1) * size]


@lru_cache(maxsize=1)
def _order(pairs: int, seed: int, epoch: int) -> Ids:
    return np.random.default_rng([seed, epoch]).permutation(pairs)
