"""A file -> what the index keeps of it. Pure work on one file, so that worker processes can do it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..parse import NotText, Unit, decode, language_of, parse, settled
from ..workspace.discover import FoundFile, content_reason
from ..workspace.read import read_regular
from .stamp import stamp_of
from .store import FileState, UnitRow
from .words import indexed

TEXT_LANGUAGE = "text"
"""The language of a file that no grammar is for."""


GROWTH = 1_000_000
"""Bytes that a file may grow by between the walk and its turn; a log that races ahead is left to the next update."""


@dataclass(frozen=True, slots=True)
class Embeddable:
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


def prepare(root: Path, found: FoundFile, known_digest: bytes | None) -> PreparedFile | Unreadable | None:
    """Read, parse and split one file.

    None if its content is still the one of `known_digest` (only its time stamp changed).
    """
    stamp = stamp_of(found)
    try:
        data = read_regular(root / found.path, found.size + GROWTH)
    except OSError as error:
        return Unreadable(error.strerror or str(error))
    digest = _hash(data)
    if digest == known_digest:
        return None
    language, skipped, units = units_of(found.path, data)
    path_text = path_embeddable(found.path)
    path_stems = indexed(path_text.text)
    keys = [unit_key(unit, language) for unit in units]
    return PreparedFile(
        FileState(found.path, stamp, digest, language, skipped, path_text.key),
        path_text,
        tuple(_row(unit, key, path_stems) for unit, key in zip(units, keys, strict=True)),
        tuple(Embeddable(key, unit.text, unit.breaks) for unit, key in zip(units, keys, strict=True)),
    )


def passed_over(root: Path, found: FoundFile, reason: str) -> PreparedFile | Unreadable:
    """A file that is remembered without units, so that it is not tried again until it changes."""
    stamp = stamp_of(found)
    try:
        data = read_regular(root / found.path, found.size + GROWTH)
    except OSError as error:
        return Unreadable(error.strerror or str(error))
    path_text = path_embeddable(found.path)
    state = FileState(found.path, stamp, _hash(data), TEXT_LANGUAGE, reason, path_text.key)
    return PreparedFile(state, path_text, (), ())


def units_of(path: str, data: bytes) -> tuple[str, str, list[Unit]]:
    """A file's language, why it has no units (or an empty text), and its units."""
    if reason := content_reason(data, path):
        return TEXT_LANGUAGE, reason, []
    try:
        text = decode(data)
    except NotText as error:
        return TEXT_LANGUAGE, str(error), []
    language = settled(language_of(path, text[:200].split("\n", 1)[0]), text)
    name = language.name if language else TEXT_LANGUAGE
    return name, "", parse(text, language, PurePosixPath(path).stem)


def unit_key(unit: Unit, language: str) -> bytes:
    """The key of a unit's embedding: 16 bytes of BLAKE2b over its language (which decides where a long text is
    split) and its text."""
    return _hash(f"{language}\0{unit.text}".encode("utf-8", "surrogatepass"))


def path_embeddable(path: str) -> Embeddable:
    """The words of a path, to be embedded once for each path and weighed against code."""
    text = path_words(path)
    return Embeddable(_hash(f"path\0{text}".encode("utf-8", "surrogatepass")), text, ())


def path_words(path: str) -> str:
    """A path as words: its folders and its stem, without the suffix."""
    return " ".join(PurePosixPath(path).with_suffix("").parts)


def _row(unit: Unit, key: bytes, path_stems: str) -> UnitRow:
    return UnitRow(
        key,
        unit.name,
        unit.container,
        unit.kind,
        unit.start_line,
        unit.end_line,
        unit.selection,
        unit.signature,
        unit.signature or _first_line(unit.text),
        (
            indexed(unit.name),
            indexed(unit.container),
            indexed(unit.doc),
            path_stems,
            indexed(unit.text),
        ),
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
