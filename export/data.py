"""Pairs to train on and to measure with: read from JSON lines or harvested from a folder of code, cut into batches."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .corpus.harvest import MAX_FILE_BYTES, is_source, pairs_of
from .corpus.quality import pieces, shape
from .errors import ExportError

FORMAT = 'one JSON object a line: {"query": …, "code": …, "language"?: …, "source"?: …}'
HELD_OUT_SHARE = 0.05
MIN_BATCH = 2
"""A pair alone has nothing to be told from."""

Ids = npt.NDArray[np.int64]
"""Numbers of examples."""


@dataclass(frozen=True)
class Example:
    """A query and the code that answers it."""

    query: str
    code: str
    language: str
    source: str
    """The data set; batches hold one language of one source, so that neither gives the answer away."""

    @property
    def group(self) -> tuple[str, str]:
        """What a batch has one of."""
        return self.source, self.language

    @cached_property
    def query_key(self) -> str:
        """Equal for queries that differ in case and white space alone."""
        return " ".join(self.query.lower().split())

    @cached_property
    def code_key(self) -> str:
        """Equal for near-duplicates."""
        return shape(pieces(self.code))


def read_data(paths: Sequence[Path]) -> list[Example]:
    """The examples of files of JSON lines and of folders of code, in order, each (query, code) once.

    Raises ExportError for what cannot be read, naming the line, and where there is none.
    """
    found: dict[tuple[str, str], Example] = {}
    for path in paths:
        for example in harvest_folder(path) if path.is_dir() else read_lines(path):
            found.setdefault((example.query, example.code), example)
    if not found:
        names = ", ".join(map(str, paths))
        raise ExportError(f"{names}: no pairs; give {FORMAT}, or a folder of code whose functions have doc comments")
    return list(found.values())


def read_lines(path: Path) -> Iterator[Example]:
    """The examples of a file of JSON lines; empty lines are passed over."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _example(line, f"{path}:{number}", path.stem)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; give {FORMAT}, or a folder of code") from None
    except UnicodeDecodeError as error:
        raise ExportError(
            f"{path}: not UTF-8 ({error.reason} after byte {error.start}); it should be {FORMAT}"
        ) from None


def _example(line: str, place: str, source: str) -> Example:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{place}: not JSON ({error}); it should be {FORMAT}") from None
    if not isinstance(value, dict):
        raise ExportError(f"{place}: {type(value).__name__} instead of an object; it should be {FORMAT}")
    return Example(
        query=_text(value, "query", place),
        code=_text(value, "code", place),
        language=_text({"language": "", **value}, "language", place, may_be_empty=True),
        source=_text({"source": source, **value}, "source", place),
    )


def _text(value: dict[str, Any], key: str, place: str, may_be_empty: bool = False) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not (text.strip() or may_be_empty):
        found = "is missing" if key not in value else f"is {json.dumps(text)[:40]}, it should be a text"
        raise ExportError(f"{place}: `{key}` {found}; a line is {FORMAT}")
    return text


def harvest_folder(folder: Path) -> Iterator[Example]:
    """What the doc comments of a folder's functions say, with the functions' code without them.

    Tests, examples and what is vendored or generated is left out, near-duplicates are taken once.
    """
    seen: set[str] = set()
    for path in _sources(folder):
        try:
            data = path.read_bytes()
        except OSError:  # It went since it was listed, or is not ours to read: the others are.
            continue
        if len(data) > MAX_FILE_BYTES:
            continue
        for pair in pairs_of(folder.name, path.relative_to(folder).as_posix(), data):
            if pair.shape not in seen:
                seen.add(pair.shape)
                yield Example(pair.query, pair.code, pair.language, folder.name)


def _sources(folder: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(top, name)
            if not path.is_symlink() and is_source(path.relative_to(folder).as_posix()):
                yield path


def held_out(examples: Sequence[Example], most: int) -> tuple[list[Example], list[Example]]:
    """The examples to train on, and at most `most`, and at most HELD_OUT_SHARE, to validate with.

    Which ones depends on their text alone. Near-duplicates of those held out are dropped from the training part.
    """
    count = min(most, int(len(examples) * HELD_OUT_SHARE))
    ordered = sorted(examples, key=lambda example: hashlib.sha1(example.query.encode(errors="replace")).digest())
    valid = ordered[:count]
    return without(examples, valid), valid


def without(examples: Sequence[Example], valid: Sequence[Example]) -> list[Example]:
    """The examples that have neither query nor code, nor a near-duplicate of it, of `valid`."""
    queries, codes = {example.query_key for example in valid}, {example.code_key for example in valid}
    return [e for e in examples if e.query_key not in queries and e.code_key not in codes]


def fingerprint(examples: Iterable[Example]) -> str:
    """Names the data: equal for equal examples in equal order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.query, example.code, *example.group]).encode())
    return digest.hexdigest()[:16]


class Batches:
    """The order in which examples are trained on: a function of the seed alone, so that a run can go on anywhere."""

    def __init__(self, examples: Sequence[Example], size: int, seed: int) -> None:
        """`size`: most examples of a batch. Raises ExportError when no group has MIN_BATCH examples."""
        self._size, self._seed = size, seed
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, example in enumerate(examples):
            groups[example.group].append(number)
        self._groups = [np.array(group) for _, group in sorted(groups.items()) if len(group) >= MIN_BATCH]
        if not self._groups:
            raise ExportError(
                f"{len(examples)} pairs, but no two of one language and source: there is nothing to tell a pair from"
            )
        self.epoch_steps = len(self._epoch(0))
        self._cached: tuple[int, list[Ids]] = (0, self._epoch(0))

    def at(self, step: int) -> Ids:
        """The examples of a step, counted from 0: of one source and one language."""
        epoch, place = divmod(step, self.epoch_steps)
        if self._cached[0] != epoch:
            self._cached = (epoch, self._epoch(epoch))
        return self._cached[1][place]

    def _epoch(self, epoch: int) -> list[Ids]:
        """Every example once, but for a group's last where it would be alone; the groups' batches are mixed."""
        random = np.random.default_rng([self._seed, epoch])
        batches = []
        for group in self._groups:
            order = random.permutation(group)
            cut = [order[start : start + self._size] for start in range(0, len(order), self._size)]
            batches += [batch for batch in cut if len(batch) >= MIN_BATCH]
        return [batches[at] for at in random.permutation(len(batches))]
