"""Pairs that a tiny model learns in seconds: a query in words, and code that does what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

VERBS = ["open", "close", "parse", "send", "remove", "sort", "merge", "encode"]
NOUNS = ["file", "socket", "tree", "image", "queue", "token"]


def rows(language: str = "python", source: str = "made") -> list[dict[str, str]]:
    """A pair for every verb and noun. No code is another's near-duplicate."""
    return [
        {"query": f"{verb} the {noun}", "code": code(verb, noun, language), "language": language, "source": source}
        for verb in VERBS
        for noun in NOUNS
    ]


def code(verb: str, noun: str, language: str) -> str:
    if language == "go":
        return f"func {verb.title()}{noun.title()}(the {noun.title()}) error {{ return the.{verb.title()}({noun}) }}"
    return f"def {verb}_{noun}({noun}):\n    {noun}.{verb}()\n    return {noun}, {verb}, {noun * 2}"


def write(path: Path, lines: Sequence[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
