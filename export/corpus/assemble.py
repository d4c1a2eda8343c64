"""Joins the packages' pairs into one corpus: no near-duplicates, no language or package above its cap."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_PAIRS_PER_LANGUAGE = {"doc": 120_000, "name": 60_000}
MAX_SAME_QUERY = 3
"""A doc that is written more often than this is boilerplate."""
HELD_OUT_PART = 25
"""One package of this many is kept for validation, whole."""


@dataclass
class Corpus:
    """The counts of an assembled corpus."""

    pairs: dict[str, Counter[str]] = field(default_factory=lambda: {"doc": Counter(), "name": Counter()})
    held_out: Counter[str] = field(default_factory=Counter)
    packages: Counter[str] = field(default_factory=Counter)


def held_out(package: str) -> bool:
    """Whether a package's pairs are for validation only."""
    return int(hashlib.sha1(package.encode()).hexdigest(), 16) % HELD_OUT_PART == 0


def assemble(harvested: list[Path], out: Path) -> Corpus:
    """Writes out/train.jsonl, out/valid.jsonl and out/counts.json from the packages' files."""
    corpus = Corpus()
    seen_code: set[str] = set()
    asked: Counter[str] = Counter()
    with (
        (out / "train.jsonl").open("w", encoding="utf-8") as train,
        (out / "valid.jsonl").open("w", encoding="utf-8") as valid,
    ):
        for line, pair in _in_turn(sorted(harvested)):
            source, language, package = pair["source"], pair["language"], pair["package"]
            query = pair["query"].lower()
            if pair["shape"] in seen_code or asked[query] >= MAX_SAME_QUERY:
                continue
            if corpus.pairs[source][language] >= MAX_PAIRS_PER_LANGUAGE[source]:
                continue
            seen_code.add(pair["shape"])
            asked[query] += 1
            if held_out(package):
                corpus.held_out[language] += 1
                valid.write(line)
            else:
                corpus.pairs[source][language] += 1
                corpus.packages[package] += 1
                train.write(line)
    (out / "counts.json").write_text(json.dumps(_counts(corpus), indent=1, sort_keys=True) + "\n")
    return corpus


def _in_turn(files: list[Path]) -> Iterator[tuple[str, dict[str, str]]]:
    """The pairs of all files, a block of each in turn, so that a language's cap takes from every package."""
    block = 200
    streams = [path.open(encoding="utf-8") for path in files]
    while streams:
        alive = []
        for stream in streams:
            for _ in range(block):
                line = stream.readline()
                if not line:
                    stream.close()
                    break
                yield line, json.loads(line)
            else:
                alive.append(stream)
        streams = alive


def _counts(corpus: Corpus) -> dict[str, object]:
    return {
        "doc": dict(corpus.pairs["doc"]),
        "name": dict(corpus.pairs["name"]),
        "held_out": dict(corpus.held_out),
        "packages": dict(corpus.packages),
    }
