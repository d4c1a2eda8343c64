"""Real functions, to fit a reduction to and to measure a bundle with; as the server will cut and name them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from server.parse import NotText, decode, language_of, parse

from .corpus.harvest import MAX_FILE_BYTES, is_source
from .errors import ExportError

DEFAULT_FOLDERS = (Path(os.__file__).parent, Path(__file__).parents[1])
"""Python's own library and this repository: code that is on every machine."""
KINDS = ("function", "method", "constructor")
MIN_CHARS = 80
"""Less is an accessor, of which there are too many."""
PER_FILE = 10
"""Functions taken from one file: large files do not speak for all."""


def functions(path: Path | None, count: int) -> list[str]:
    """At most `count` texts of code: of a folder, of JSON lines with a `code` each, or by default of DEFAULT_FOLDERS.

    The same path gives the same texts, in an order that depends on nothing else than files' names.
    """
    found = _lines(path) if path is not None and path.is_file() else _units([path] if path else DEFAULT_FOLDERS)
    texts = list(islice(_once(found), count))
    if not texts:
        raise ExportError(f"{path}: no functions in it; give a folder of code, or JSON lines with a `code` each")
    return texts


def _once(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                value = json.loads(line)
                if not isinstance(value, dict) or not isinstance(value.get("code"), str):
                    raise ExportError(f'{path}:{number}: no `code`; a line is {{"code": …}}')
                yield value["code"]
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ExportError(f"{path}: not JSON lines ({error})") from None


def _units(folders: Iterable[Path]) -> Iterator[str]:
    files = [file for folder in folders for file in _files(folder)]
    for _, file in sorted(files):
        try:
            data = file.read_bytes()[: MAX_FILE_BYTES + 1]
            text = decode(data) if len(data) <= MAX_FILE_BYTES else ""
        except (OSError, NotText):
            continue
        units = parse(text, language_of(file.name), file.stem)
        wanted = (unit.text for unit in units if unit.kind in KINDS and len(unit.text) >= MIN_CHARS)
        yield from islice(wanted, PER_FILE)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The folder's sources, each with what orders it: a fixed shuffle."""
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("site-packages", "venv")]
        for name in names:
            file = Path(top, name)
            relative = file.relative_to(folder).as_posix()
            if is_source(relative) and not file.is_symlink():
                yield hashlib.sha1(relative.encode(errors="replace")).hexdigest(), file
