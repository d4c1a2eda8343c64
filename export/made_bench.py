"""python -m export.made_bench --corpus CORPUS --out BENCH: judged repositories made of held-out packages.

No model was trained on them. They are what `python -m export.fit_ranking` fits weights on beside repositories that
people judged, in the same layout (see `export.judged`). CORPUS is what `python -m export.corpus --out CORPUS` left,
with its archives. A question is the doc comment of a function as people search: a question, bare words, or its name
alone. Its answer is the function's file, in which every second function that is asked for has lost its doc comment:
not all code says what it does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from server.parse import NotText, Unit, decode, language_of, parse, settled

from .command import told
from .corpus.archives import Unusable, open_package
from .corpus.assemble import held_out
from .corpus.download import archive_folder
from .corpus.harvest import MAX_FILE_BYTES, doc_lines, is_source
from .corpus.manifest import Package, read_manifest
from .corpus.quality import question as doc_question
from .journal import say
from .searches import bare_words, question

QUESTIONS = 12
"""About one package, each about another file."""
LEAST_QUESTIONS = 6
MOST_BYTES = 4_000_000
"""Of a package's sources. Larger ones take long to index and are no better for fitting."""
OF_A_LANGUAGE = 6
"""Packages."""
SHARES = {"question": 0.45, "words": 0.3, "name": 0.25}
UNDOCUMENTED = 0.5
_SEED = 0


@dataclass(frozen=True)
class Asked:
    """A function that is asked for, and how."""

    path: str
    unit: Unit
    query: str
    bare: bool
    """Whether its doc comment is taken out of its file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.made_bench", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="BENCH")
    options = parser.parse_args(arguments)
    return told("export.made_bench", lambda: make(options.corpus, options.out))


def make(corpus: Path, out: Path) -> int:
    """Writes the folder; returns the exit code."""
    specs: list[dict[str, str]] = []
    counts: dict[str, int] = defaultdict(int)
    (out / "annotations").mkdir(parents=True, exist_ok=True)
    for package in filter(lambda p: held_out(p.key), read_manifest()):
        language = package.languages[0] if package.languages else ""
        if counts[language] >= OF_A_LANGUAGE:
            continue
        files = sources(package, corpus)
        asked = chosen(files, np.random.default_rng([_SEED, len(package.key), len(files)]))
        if len(asked) < LEAST_QUESTIONS:
            continue
        counts[language] += 1
        root = _common(files)
        _write(out / "repos" / package.key, files, asked)
        judged = [{"query": a.query, "relevant": [a.path.removeprefix(root)]} for a in asked]
        (out / "annotations" / f"{package.key}.json").write_text(json.dumps(judged, indent=1), encoding="utf-8")
        specs.append({"name": package.key, "language": language, "benchmark_root": root})
        say(f"{package.key}: {len(files)} files, {len(asked)} questions")
    (out / "repos.json").write_text(json.dumps(specs, indent=1), encoding="utf-8")
    return 0


def sources(package: Package, corpus: Path) -> dict[str, str]:
    """The text of each source file of a package by its path, tests included; empty for one that is too large."""
    try:
        opened = open_package(package.registry, package.name, archive_folder(package, corpus))
        found = {path: data for path, data in opened.files(_is_code) if len(data) <= MAX_FILE_BYTES}
    except Unusable:
        return {}
    if sum(map(len, found.values())) > MOST_BYTES:
        return {}
    texts = {path: _text(data) for path, data in sorted(found.items())}
    return {path: text for path, text in texts.items() if text}


def _text(data: bytes) -> str:
    """Empty for what is no text."""
    with suppress(NotText):
        return decode(data)
    return ""


def _is_code(path: str) -> bool:
    language = language_of(path)
    return language is not None and language.grammar is not None


def chosen(files: dict[str, str], random: np.random.Generator) -> list[Asked]:
    """Up to QUESTIONS functions, of different files, that have a doc comment which says something."""
    askable: dict[str, list[tuple[Unit, str]]] = {}
    names: dict[str, set[str]] = defaultdict(set)
    for path, text in files.items():
        for unit in _units(path, text):
            names[unit.name].add(path)
            doc = doc_question(unit.doc, unit.name) if unit.doc and unit.kind not in ("module", "text") else None
            if doc and is_source(path):
                askable.setdefault(path, []).append((unit, doc))
    found = []
    for path in random.permutation(sorted(askable))[:QUESTIONS].tolist():
        unit, doc = askable[path][random.integers(len(askable[path]))]
        kind = str(random.choice(list(SHARES), p=list(SHARES.values())))
        if kind == "name" and len(names[unit.name]) == 1:
            found.append(Asked(path, unit, unit.name, bare=False))
        else:
            query = bare_words(doc) if kind == "words" else question(doc, random)
            found.append(Asked(path, unit, query or doc, bool(random.random() < UNDOCUMENTED)))
    return found


def _units(path: str, text: str) -> Iterator[Unit]:
    language = settled(language_of(path), text)
    if language is not None:
        yield from parse(text, language, PurePosixPath(path).stem)


def _write(folder: Path, files: dict[str, str], asked: Sequence[Asked]) -> None:
    bare = {a.path: a.unit for a in asked if a.bare}
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_without_doc(text, bare[path]) if path in bare else text, encoding="utf-8")


def _without_doc(text: str, unit: Unit) -> str:
    """A file's text without the lines of a unit's doc comment."""
    lines = text.split("\n")
    own = lines[unit.start_line : unit.end_line + 1]
    spoken = doc_lines(unit.doc, own)
    kept = [line for at, line in enumerate(own) if at not in spoken]
    return "\n".join([*lines[: unit.start_line], *kept, *lines[unit.end_line + 1 :]])


def _common(files: dict[str, str]) -> str:
    """The folder that all files lie in, with a slash at its end; empty if there is none."""
    folders = {str(PurePosixPath(path).parent) for path in files} - {"."}
    common = os.path.commonpath(folders) if folders and all("/" in path for path in files) else ""
    return f"{common}/" if common else ""


if __name__ == "__main__":
    sys.exit(main())
