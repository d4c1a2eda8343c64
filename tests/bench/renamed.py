"""A tree of real code, as large as wanted: the files of given folders again and again, their words renamed.

A copy has each word of its source replaced by another that is about as frequent there, the same one wherever it
stands, in names, comments and paths: code keeps its form, texts and vectors differ, and full text sees the words of
real code as often as in real code. The same sources and numbers make the same tree.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path, PurePosixPath

import tree_sitter

from server.parse import decode
from server.parse.languages import LANGUAGES, language_of
from server.settings import Settings
from server.workspace.discover import discover

MANIFEST = "tree.json"
"""Lies beside the tree and says what it was made of."""

BLOCK = 64
"""Words change places within so many that follow each other in frequency."""

KEPT = 128
"""The most frequent words stay, as keywords do: articles, `get`, `self`, whatever every file has."""

MACROS = frozenset("defmodule defmacro defmacrop defp defimpl defprotocol defstruct describe".split())
"""What is a keyword by custom alone."""

LARGEST_FILE = 40_000
"""Bytes; larger files are rare, and their units too many for trees of different sizes to be alike."""

UNITS_OF_A_FILE = range(2, 40)

_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")


@dataclass(frozen=True)
class Source:
    """A file to copy."""

    path: PurePosixPath
    text: str
    units: int


def write_renamed_tree(root: Path, units: int, sources: Sequence[Path], say: Callable[[str], None] = print) -> int:
    """A tree of about so many units at `root`, unless it is there already; returns how many units it has.

    `sources` are folders of code. Raises ValueError if they hold none.
    """
    manifest = root.parent / f"{root.name}.{MANIFEST}"
    if manifest.exists():
        return int(json.loads(manifest.read_text("utf-8"))["units"])
    say(f"{root}: made of {', '.join(map(str, sources))} …")
    files = list(_sources(sources))
    if not files:
        raise ValueError(f"no code in {', '.join(map(str, sources))}")
    words = _by_frequency(files)
    written = 0
    for copy in count():
        renamed = _renamer(words, copy)
        for source in files:
            if written >= units:
                manifest.write_text(json.dumps({"units": written, "copies": copy + 1, "sources": len(files)}), "utf-8")
                return written
            # Folders keep their names: a word that became `build` would have its folder left out.
            name = renamed(source.path.stem) + source.path.suffix
            path = root / f"part_{copy:03}" / source.path.with_name(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(renamed(source.text), "utf-8", newline="")
            written += source.units
    raise AssertionError


def _sources(folders: Iterable[Path]) -> Iterator[Source]:
    """The files with grammars below the folders, in an order that mixes folders and languages."""
    from server.index.prepare import parsed_file

    found: list[Source] = []
    for folder in folders:
        for file in discover(folder, Settings()):
            path = PurePosixPath(folder.name, file.path)
            language = language_of(file.path, "")
            if file.size > LARGEST_FILE or not (language and language.grammar):
                continue
            data = (folder / file.path).read_bytes()
            parsed = parsed_file(file.path, data)
            if len(parsed.units) in UNITS_OF_A_FILE and not parsed.problem:
                found.append(Source(path, decode(data), len(parsed.units)))
    yield from sorted(found, key=lambda source: hashlib.sha256(str(source.path).encode()).digest())


def _by_frequency(files: Iterable[Source]) -> list[str]:
    """Every word of the files, in lower case, the most frequent first."""
    seen: Counter[str] = Counter()
    for file in files:
        seen.update(word.lower() for word in _WORD.findall(file.text))
    return sorted(seen, key=lambda word: (-seen[word], word))


def _renamer(words: Sequence[str], copy: int) -> Callable[[str], str]:
    """What renames a text for one copy; copy 0 is as it was."""
    names = {}
    free = [word for word in words[KEPT:] if word not in _keywords()]
    for first in range(0, len(free), BLOCK):
        block = free[first : first + BLOCK]
        turn = int.from_bytes(hashlib.sha256(f"{copy} {first}".encode()).digest()[:4], "big") if copy else 0
        names.update({word: block[(place + turn) % len(block)] for place, word in enumerate(block)})
    names |= {word.title(): name.title() for word, name in names.items()} | {
        word.upper(): name.upper() for word, name in names.items()
    }

    def renamed(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    return lambda text: _WORD.sub(renamed, text)


@cache
def _keywords() -> frozenset[str]:
    """Of all languages, as their grammars list them, in lower case."""
    found = set(MACROS)
    for module, function in (language.grammar for language in LANGUAGES if language.grammar):
        grammar = tree_sitter.Language(getattr(import_module(module), function)())
        names = (grammar.node_kind_for_id(kind) for kind in range(grammar.node_kind_count))
        found.update(word.lower() for name in names if name for word in re.findall(r"^#?([A-Za-z]+)$", name))
    return frozenset(found)
