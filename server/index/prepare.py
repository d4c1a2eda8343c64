"""A file -> what the index keeps of it. Pure work on one file, so that worker processes can do it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..parse import NotText, Unit, decode, language_of, parse, settled, split_lines
from ..workspace.discover import FoundFile, content_reason
from ..workspace.read import read_regular
from .preview import preview_line
from .stamp import UNSETTLED, stamp_of
from .store import FileState, UnitRow
from .version import units_version
from .words import counts, packed

TEXT_LANGUAGE = "text"
"""The language of a file that no grammar is for."""


GROWTH = 1_000_000
"""Bytes that a file may grow by between the walk and its turn; a log that races ahead is left to the next update."""


class Embeddable(NamedTuple):
    """A text to embed: its key, itself, and where it may be split."""

    key: bytes
    text: str
    breaks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreparedFile:
    """Everything that is stored of a file, but for the vectors."""

    state: FileState
    path_text: Embeddable
    units: tuple[UnitRow, ...]
    texts: tuple[Embeddable, ...]
    """One for each of `units`, in the same order."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that cannot be read (any more), and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds."""

    language: str
    skipped: str
    """Why it has no units (binary, generated, …); empty if it may have some."""
    problem: str
    """What is wrong with it that its owner would want to know; empty if nothing is."""
    units: tuple[Unit, ...]
    heads: tuple[str, ...]
    """Of each unit: see `UnitRow.head`."""


def prepare(root: Path, found: FoundFile, known_digest: bytes | None) -> PreparedFile | Unreadable | None:
    """Read, parse and split one file.

    None if its content is still the one of `known_digest` (only its time stamp changed).
    """
    stamp = stamp_of(found)
    try:
        data = read_regular(root / found.path, found.size + GROWTH)
    except OSError as error:
        return Unreadable(error.strerror or str(error))
    return None if digest_of(data) == known_digest else _prepared(found.path, stamp, data)


def prepare_text(path: str, text: str) -> PreparedFile:
    """The same of a text that stands for the file's content."""
    return _prepared(path, UNSETTLED, text.encode())


def passed_over(root: Path, found: FoundFile, problem: str) -> PreparedFile | Unreadable:
    """A file that is remembered without units, so that it is not tried again until it changes."""
    stamp = stamp_of(found)
    try:
        data = read_regular(root / found.path, found.size + GROWTH)
    except OSError as error:
        return Unreadable(error.strerror or str(error))
    return unprepared(found.path, problem, stamp, digest_of(data))


def unprepared(path: str, problem: str, stamp: str = UNSETTLED, digest: bytes = b"") -> PreparedFile:
    """A file without units."""
    path_text = path_embeddable(path)
    state = FileState(path, stamp, digest, units_version(), TEXT_LANGUAGE, problem, problem, path_text.key)
    return PreparedFile(state, path_text, (), ())


def _prepared(path: str, stamp: str, data: bytes) -> PreparedFile:
    parsed = parsed_file(path, data)
    path_text = path_embeddable(path)
    path_terms = counts("path", path_text.text)
    keys = [unit_key(unit, parsed.language) for unit in parsed.units]
    return PreparedFile(
        FileState(
            path,
            stamp,
            digest_of(data),
            units_version(),
            parsed.language,
            parsed.skipped,
            parsed.problem,
            path_text.key,
        ),
        path_text,
        tuple(map(_row, parsed.units, parsed.heads, keys, repeat(path_terms))),
        tuple(Embeddable(key, unit.text, unit.breaks) for unit, key in zip(parsed.units, keys, strict=True)),
    )


def parsed_file(path: str, data: bytes) -> Parsed:
    """The units that a file with this content has. Never raises."""
    if reason := content_reason(data, path):
        return Parsed(TEXT_LANGUAGE, reason, "", (), ())
    try:
        text = decode(data)
    except NotText as error:
        return Parsed(TEXT_LANGUAGE, str(error), "", (), ())
    language = settled(language_of(path, text[:200].split("\n", 1)[0]), text)
    units = tuple(parse(text, language, PurePosixPath(path).stem))
    too_hard = language is not None and language.grammar and any(unit.kind == "text" for unit in units)
    return Parsed(
        language.name if language else TEXT_LANGUAGE,
        "",
        "too much for its parser; found as plain text" if too_hard else "",
        units,
        _heads(units, text),
    )


def _heads(units: Sequence[Unit], text: str) -> tuple[str, ...]:
    if text.isascii():
        return ("",) * len(units)
    lines = split_lines(text)
    heads = (lines[unit.selection[0]][: unit.selection[2]] for unit in units)
    return tuple("" if head.isascii() else head for head in heads)


def unit_key(unit: Unit, language: str) -> bytes:
    """The key of a unit's embedding: 16 bytes of BLAKE2b over its language (which decides where a long text is
    split) and its text."""
    return digest_of(f"{language}\0{unit.text}".encode("utf-8", "surrogatepass"))


def path_embeddable(path: str) -> Embeddable:
    """The words of a path, to be embedded once for each path and weighed against code."""
    text = path_words(path)
    return Embeddable(digest_of(f"path\0{text}".encode("utf-8", "surrogatepass")), text, ())


def path_words(path: str) -> str:
    """A path as words: its folders and its stem, without the suffix. (Other words are another SCHEMA_VERSION: a known
    file's path is not looked at again.)"""
    return " ".join(PurePosixPath(path).with_suffix("").parts)


def _row(unit: Unit, head: str, key: bytes, path_terms: Mapping[int, int]) -> UnitRow:
    return UnitRow(
        key,
        unit.name,
        unit.container,
        unit.kind,
        unit.start_line,
        unit.end_line,
        unit.selection,
        head,
        unit.signature or preview_line(unit.text),
        packed(
            (
                counts("name", unit.name),
                counts("container", unit.container),
                counts("doc", unit.doc),
                path_terms,
                counts("body", unit.text),
            )
        ),
    )


def digest_of(data: bytes) -> bytes:
    """16 bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=16).digest()
