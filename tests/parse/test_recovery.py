"""One bad line does not cost the definitions around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.parse import language_of, parse, recovery
from server.parse.languages import grammar_names

from .golden import SUFFIX

FIXTURES = Path(__file__).parent / "fixtures"
BAD_LINES = ("x = foo(", "if (a", "} else {", "foo bar ]] =>", "return a.")
"""As they stand in an editor while somebody types, and one that is nobody's syntax."""
EVERY = 4
"""Of the places where a bad line can go, one in so many is tried."""


def definitions(text: str, path: Path) -> set[tuple[str, str, str]]:
    units = parse(text, language_of(path.name), path.stem)
    return {(unit.kind, unit.container, unit.name) for unit in units if unit.kind not in ("module", "text")}


def kept(path: Path) -> float:
    """The share of a file's definitions that are found although there is a bad line, on average."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    wanted = definitions(text, path)
    places = [number for number, line in enumerate(lines) if not line][::EVERY]
    shares = [
        len(wanted & definitions("\n".join([*lines[:place], bad, *lines[place:]]), path)) / len(wanted)
        for place in places
        for bad in BAD_LINES
    ]
    return sum(shares) / len(shares)


@pytest.mark.parametrize("language", grammar_names())
def test_most_definitions_survive_a_bad_line(language: str) -> None:
    files = [path for path in sorted((FIXTURES / language).iterdir()) if not path.name.endswith(SUFFIX)]
    assert sum(kept(path) for path in files) / len(files) > 0.75


def test_the_functions_after_a_half_written_call_are_found() -> None:
    text = "fun a() {\n    start(\n}\n\nfun b() {\n    stop()\n}\n\nclass C {\n    fun d() = 1\n\n    fun e() = 2\n}\n"
    found = {name for _, _, name in definitions(text, Path("a.kt"))}
    assert {"b", "C", "d", "e"} <= found


def test_a_text_that_is_all_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("tried again")

    monkeypatch.setattr(recovery, "parse_tree", never)
    assert parse("def f(x {\n" * 3000, language_of("a.ts"), "a")
