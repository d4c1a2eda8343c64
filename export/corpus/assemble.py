"""Joins the packages' pairs into one corpus: no near-duplicates, no language above its cap."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAX_PAIRS_PER_LANGUAGE = 150_000
MAX_SAME_QUERY = 3
"""A doc that is written more often than this is boilerplate."""
HELD_OUT_PART = 25
"""One package of this many is kept for validation, whole."""
_BLOCK = 200
"""Pairs that are taken of one package before the next one's turn."""


@dataclass
class Counts:
    """What an assembled corpus holds."""

    train: Counter[str] = field(default_factory=Counter)
    """Pairs by language."""
    valid: Counter[str] = field(default_factory=Counter)
    packages: Counter[str] = field(default_factory=Counter)
    """Pairs by package, those for validation left out."""


def held_out(package: str) -> bool:
    """Whether a package's pairs are for validation only."""
    return int(hashlib.sha1(package.encode()).hexdigest(), 16) % HELD_OUT_PART == 0


def assemble(harvested: Sequence[Path], out: Path) -> Counts:
    """Writes out/train.jsonl, out/valid.jsonl and out/counts.json from the packages' files, whatever their order."""
    counts = Counts()
    seen_code: set[str] = set()
    asked: Counter[str] = Counter()
    with (
        (out / "train.jsonl").open("w", encoding="utf-8") as train,
        (out / "valid.jsonl").open("w", encoding="utf-8") as valid,
    ):
        for line, pair in _in_turn(sorted(harvested)):
            query = pair["query"].lower()
            if pair["shape"] in seen_code or asked[query] >= MAX_SAME_QUERY:
                continue
            language, package = pair["language"], pair["package"]
            if held_out(package):
                counts.valid[language] += 1
                valid.write(line)
            elif counts.train[language] < MAX_PAIRS_PER_LANGUAGE:
                counts.train[language] += 1
                counts.packages[package] += 1
                train.write(line)
            seen_code.add(pair["shape"])
            asked[query] += 1
    (out / "counts.json").write_text(json.dumps(vars(counts), indent=1, sort_keys=True) + "\n")
    return counts


def _in_turn(files: Sequence[Path]) -> Iterator[tuple[str, dict[str, str]]]:
    """The pairs of all files, a block of each in turn, so that a language's cap takes from every package."""
    places = dict.fromkeys(files, 0)
    while places:
        for path, place in list(places.items()):
            with path.open(encoding="utf-8") as stream:
                stream.seek(place)
                for _ in range(_BLOCK):
                    if not (line := stream.readline()):
                        del places[path]
                        break
                    yield line, json.loads(line)
                else:
                    places[path] = stream.tell()
