"""Golden lists of units: what a person checks, and a test compares.

`python -m tests.parse.golden FILE...` prints the list of each file; with `--write` it goes to FILE.units.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from server.parse import Unit, decode, language_of, parse

SUFFIX = ".units.json"


def units_of(path: Path) -> list[Unit]:
    text = decode(path.read_bytes())
    return parse(text, language_of(path.name, text.partition("\n")[0]), path.stem)


def golden(path: Path) -> list[dict[str, Any]]:
    """The units of a file as JSON; lines count from 1."""
    return [
        {
            "name": unit.name,
            "container": unit.container,
            "kind": unit.kind,
            "lines": [unit.start_line + 1, unit.end_line + 1],
            "own": [[first + 1, last + 1] for first, last in unit.spans],
            "doc": unit.doc,
            "signature": unit.signature,
        }
        for unit in units_of(path)
    ]


def written(units: list[dict[str, Any]]) -> str:
    """The list with one unit a line, as the files hold it."""
    return "[\n" + ",\n".join(json.dumps(unit, ensure_ascii=False) for unit in units) + "\n]\n"


def main(arguments: list[str]) -> None:
    write = "--write" in arguments
    for name in arguments:
        if name != "--write":
            listed = written(golden(Path(name)))
            if write:
                Path(name + SUFFIX).write_text(listed, encoding="utf-8")
            else:
                print(listed, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
