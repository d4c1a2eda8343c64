"""Judged repositories: questions about a project, and the files, or lines of them, that answer each.

Laid out as a folder with repos.json [{name, benchmark_root?}], annotations/<name>.json [{query, relevant, secondary}]
and repos/<name>. Vectors alone rank here: a file is as near to a question as its nearest function, and is one hit.
The rule of what counts is that of the benchmark of MinishLab/semble.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from server.parse import NotText, decode, language_of, parse, settled

from .encoders import Encoder
from .errors import ExportError, one_line
from .metrics import NDCG_CUTOFF, mean, several

MAX_FILE_BYTES = 1_000_000
_SKIPPED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True)
class Target:
    """What answers a question: a file, or some lines of it (from 1, inclusive)."""

    path: str
    """From the repository's root or from `benchmark_root`, as the benchmark has it."""
    lines: tuple[int, int] | None


@dataclass(frozen=True)
class Question:
    """A judged query."""

    text: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Repository:
    """One of the benchmark."""

    name: str
    root: Path
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Place:
    """A function's lines (from 1, inclusive), the path relative to the root."""

    path: str
    start: int
    end: int

    def answers(self, target: Target) -> bool:
        """Whether paths are equal or one ends in the other, and the lines overlap where the target names some."""
        same = f"/{self.path}".endswith(f"/{target.path}") or f"/{target.path}".endswith(f"/{self.path}")
        return same and (target.lines is None or (self.start <= target.lines[1] and target.lines[0] <= self.end))


def repositories(bench: Path, names: Sequence[str] | None = None) -> Iterator[Repository]:
    """The benchmark's repositories, or those of `names`. Raises ExportError for what is not laid out so."""
    specs = {spec["name"]: spec for spec in _json(bench / "repos.json")}
    if unknown := sorted(set(names or ()) - specs.keys()):
        raise ExportError(f"{bench / 'repos.json'}: no repository {unknown[0]}; there are {', '.join(sorted(specs))}")
    for name in names or specs:
        inside = (specs[name].get("benchmark_root") or "").strip("/")
        root = bench / "repos" / name / inside
        if not root.is_dir():
            raise ExportError(f"{root}: not there; lay the benchmark out first, see tests/bench/quality.py")
        judged = _json(bench / "annotations" / f"{name}.json")
        yield Repository(name, root, tuple(map(_question, judged)))


def evaluate_repository(encoder: Encoder, repository: Repository) -> dict[str, float]:
    """The mean figures of a repository's questions, at NDCG_CUTOFF."""
    places, texts = functions(repository.root)
    if not texts:
        raise ExportError(f"{repository.root}: no functions in it; lay the benchmark out again")
    answers = encoder.codes(texts)
    asked = encoder.queries([question.text for question in repository.questions])
    rows = []
    for question, scores in zip(repository.questions, asked @ answers.T, strict=True):
        hits = best_of_each_file(places, scores)[:NDCG_CUTOFF]
        ranks = [
            next((rank for rank, hit in enumerate(hits, 1) if hit.answers(target)), None) for target in question.targets
        ]
        rows.append(several([rank for rank in ranks if rank], len(ranks)))
    return {**mean(rows), "queries": len(rows), "functions": len(texts)}


def best_of_each_file(places: Sequence[Place], scores: Any) -> list[Place]:
    """The nearest function of each file, nearest file first."""
    found: dict[str, Place] = {}
    for at in np.argsort(-scores, kind="stable"):
        found.setdefault(places[at].path, places[at])
    return list(found.values())


def functions(root: Path) -> tuple[list[Place], list[str]]:
    """Every unit below a folder, in order of paths: where it is, and its text."""
    places, texts = [], []
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        try:
            text = decode(path.read_bytes())
        except (NotText, OSError):
            continue
        for unit in parse(text, settled(language_of(name), text), PurePosixPath(name).stem):
            places.append(Place(name, unit.start_line + 1, unit.end_line + 1))
            texts.append(unit.text)
    return places, texts


def _files(root: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(files):
            path = Path(top, name)
            if language_of(name) and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES:
                yield path


def _question(item: dict[str, Any]) -> Question:
    targets = [*item.get("relevant", []), *item.get("secondary", [])]
    return Question(item["query"], tuple(map(_target, targets)))


def _target(raw: str | dict[str, Any]) -> Target:
    """A path, or {path, start_line?, end_line?}."""
    given: dict[str, Any] = {"path": raw} if isinstance(raw, str) else raw
    start, end = given.get("start_line"), given.get("end_line")
    return Target(given["path"], (start, end) if start is not None and end is not None else None)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(
            f"{path}: {one_line(error)}; lay the benchmark out first, see tests/bench/quality.py"
        ) from None
