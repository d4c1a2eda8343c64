"""What a teacher writes for pairs: queries for each function and functions for each query, as pairs in JSON lines.

A line is {"query", "code", "language", "source", "row", "turn", "batch"}: the source tells what was asked of the
teacher, the row is the number of the pair that was asked about, the turn counts its samples. So the first M turns of a
file are what M samples would have been, and the file is data for `python -m export.train --data` too.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .checkpoint import whole
from .data import Example, fingerprint
from .encoders import Encoder
from .errors import ExportError
from .journal import progress, say
from .trainer import weights_of
from .writer import DOCUMENT, IMPLEMENT, Sampling, Writer

SAMPLED = "sampled "
"""What the source of a sampled pair begins with; the task follows."""
FORMAT = 'lines of {"query", "code", "language", "row", "turn"}, as python -m export.teacher sample writes them'


@dataclass(frozen=True)
class Order:
    """What is asked of the teacher."""

    count: int
    """Samples of each pair and task."""
    tasks: tuple[str, ...] = (DOCUMENT, IMPLEMENT)
    sampling: Sampling = field(default_factory=Sampling)
    most_query_tokens: int = 24
    batch: int = 64
    """Pairs that are asked about at once."""
    seed: int = 0


def write_samples(writer: Writer, examples: Sequence[Example], order: Order, path: Path) -> None:
    """Writes the samples to `path`. A file that a killed run left is gone on with, and ends the same."""
    facts = {"weights": weights_of(writer.model), "data": fingerprint(examples), **asdict(order)}
    batches = list(_batches(examples, order))
    done = _done(path, json.loads(json.dumps(facts)))
    if done:
        say(f"goes on after batch {done} of {len(batches)}")
    tell = progress("sampled batches")
    with path.open("a", encoding="utf-8") as file:
        for number in range(done, len(batches)):
            lines = _sampled(writer, examples, order, number, *batches[number])
            file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
            tell(number + 1 - done, len(batches) - done)


def _batches(examples: Sequence[Example], order: Order) -> Iterator[tuple[str, list[int]]]:
    """Tasks with the pairs that are asked about at once: of about one length, which leaves little to pad."""
    for task in order.tasks:
        lengths = [len(_given(task, example)) for example in examples]
        rows = sorted(range(len(examples)), key=lambda row: (lengths[row], row))
        yield from ((task, rows[start : start + order.batch]) for start in range(0, len(rows), order.batch))


def _given(task: str, example: Example) -> str:
    return example.query if task == IMPLEMENT else example.code


def _sampled(
    writer: Writer, examples: Sequence[Example], order: Order, number: int, task: str, rows: Sequence[int]
) -> Iterator[dict[str, Any]]:
    some = [examples[row] for row in rows]
    questions = writer.questions(task, [_given(task, each) for each in some], [each.language for each in some])
    most = order.sampling.most_tokens if task == IMPLEMENT else order.most_query_tokens
    sampling = Sampling(order.sampling.temperature, order.sampling.top_p, most)
    seed = int(np.random.SeedSequence([order.seed, number]).generate_state(1)[0])
    answers = writer.sample(task, questions, order.count, sampling, seed)
    for row, example, texts in zip(rows, some, answers, strict=True):
        for turn, text in enumerate(texts):
            if text:
                query, code = (example.query, text) if task == IMPLEMENT else (text, example.code)
                known = {"query": query, "code": code, "language": example.language, "source": SAMPLED + task}
                yield {**known, "row": row, "turn": turn, "batch": number}


def _done(path: Path, facts: dict[str, Any]) -> int:
    """How many batches of the run the file holds whole; leaves those alone in it."""
    run = path.with_name(path.name + ".run.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not run.exists():
        path.write_text("", encoding="utf-8")
        with whole(run) as part:
            part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        return 0
    if json.loads(run.read_text(encoding="utf-8")) != facts:
        raise ExportError(f"{path}: holds the samples of another run; give its settings, or another --out")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    found = [(json.loads(line)["batch"], line) for line in lines if line.endswith("\n")]
    last = found[-1][0] if found else 0  # It may have been cut short.
    with whole(path) as part:
        part.write_text("".join(line for batch, line in found if batch < last), encoding="utf-8")
    return int(last)


@dataclass(frozen=True)
class Sample:
    """One line."""

    example: Example
    turn: int
    line: str


def read_samples(path: Path) -> list[Sample]:
    """The samples of a file. Raises ExportError for what is none."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [_sample(line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path}: {error}; it should be {FORMAT}") from None


def _sample(line: str) -> Sample:
    value = json.loads(line)
    example = Example(value["query"], value["code"], value["language"], value["source"])
    return Sample(example, int(value["turn"]), line)


def enlarged(
    examples: Sequence[Example], samples: Sequence[Sample], count: int, task: str | None = None
) -> list[Example]:
    """The pairs and their first `count` samples (of queries by `task` alone, where one is named), as of one source."""
    kept = [
        sample.example
        for sample in samples
        if sample.turn < count and (task is None or sample.example.source in (SAMPLED + task, SAMPLED + IMPLEMENT))
    ]
    return [Example(each.query, each.code, each.language, "pairs") for each in (*examples, *kept)]


def round_trip(samples: Sequence[Sample], encoder: Encoder, among: int, top: int) -> list[Sample]:
    """The samples whose query finds its function within the `top` of up to `among` functions of its language."""
    by_language: dict[str, list[int]] = defaultdict(list)
    for number, sample in enumerate(samples):
        by_language[sample.example.language].append(number)
    kept: list[int] = []
    for _, numbers in sorted(by_language.items()):
        some = [samples[number].example for number in numbers]
        codes = list(dict.fromkeys(each.code for each in some))
        # In a fixed shuffle: neighbours are of about one length.
        codes = [codes[at] for at in np.random.default_rng(0).permutation(len(codes))]
        place = {code: at for at, code in enumerate(codes)}
        queries, functions = encoder.queries([each.query for each in some]), encoder.codes(codes)
        for row, number in enumerate(numbers):
            mine = place[some[row].code]
            pool = functions[mine // among * among :][:among]
            scores = pool @ queries[row]
            if (scores >= scores[mine % among]).sum() <= top:
                kept.append(number)
    return [samples[number] for number in sorted(kept)]
