"""No text makes the parser crash, or take longer than its bounds."""

from __future__ import annotations

import time

import pytest

from server.parse import Unit, parse
from server.parse.grammar import MAX_SECONDS
from server.parse.languages import BY_NAME, grammar_names

from .laws import check

SECONDS = 3 * MAX_SECONDS
"""CPU time that one text may take on the slowest machine: a parse that is given up, and its windows."""

NESTED = {
    "2,000 nested brackets": "(" * 2000 + ")" * 2000,
    "brackets that never close": "{[(" * 2000,
    "nested functions": "function f() {\n" * 500,
    "nested classes": "class A {\n" * 500,
    "nested Python": "".join(" " * depth + "def f():\n" for depth in range(300)),
    "quotes": "\"'" * 5000,
    "NUL bytes": "int f(void)\0 { return 1; }\n" * 50,
    "lone surrogates": "def f(): return '\ud800'\n" * 50,
    "conditionals that never end": "#if A\n{\n" * 2000,
    "macros that never close": "\nFOO_BAR(" * 2000,
}
ONE_LINE = "x = [" + "1, " * 333_000 + "]"
OPERATORS = "a+b*" * 250_000


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
@pytest.mark.parametrize("language", grammar_names())
def test_hostile_text_keeps_the_laws(language: str, text: str) -> None:
    check(parse(text, BY_NAME[language], "a"), text)


@pytest.mark.parametrize("line", [ONE_LINE, OPERATORS], ids=["list", "operators"])
@pytest.mark.parametrize("language", grammar_names())
def test_a_line_of_a_megabyte_is_one_unit_and_costs_the_others_nothing(language: str, line: str) -> None:
    text = f"\n{line}\n"
    units, seconds = timed(text, language)
    assert [unit.spans for unit in units] == [((0, 1),)]
    assert seconds < SECONDS


def test_the_definitions_around_a_long_line_are_found() -> None:
    text = f"def f():\n    return 1\n\ndata = '{'x' * 100_000}'\n\ndef g():\n    return 2\n"
    assert [unit.name for unit in parse(text, BY_NAME["python"], "a")] == ["f", "a", "g"]


def test_a_tree_of_100_000_levels_is_given_up() -> None:
    """Deeper than 65,535 levels a query of tree-sitter's does not come to an end."""
    text = "a +\nb *\n" * 80_000
    units, seconds = timed(text, "scala")
    check(units, text)
    assert seconds < SECONDS


@pytest.mark.parametrize(
    ("language", "function"),
    [
        ("python", "def f(a):\n    # Adds.\n    b = a + 1\n    return b\n\n"),
        ("cpp", "// Adds.\nint f(int a) {\n  return a + 1;\n}\n\n"),
        ("typescript", "/** Adds. */\nexport function f(a: number): number {\n  return a + 1;\n}\n\n"),
    ],
)
def test_a_file_of_50_000_lines_takes_linear_time(language: str, function: str) -> None:
    parse(function, BY_NAME[language], "a")
    units, seconds = timed(function * 10_000, language)
    assert len(units) == 10_000
    assert seconds < SECONDS


def test_a_class_of_50_000_lines_takes_linear_time() -> None:
    units, seconds = timed("class A {\n" + "  int f() {\n    return 1;\n  }\n\n" * 12_500 + "}\n", "java")
    assert len(units) == 12_501
    assert seconds < SECONDS


def timed(text: str, language: str) -> tuple[list[Unit], float]:
    start = time.thread_time()
    units = parse(text, BY_NAME[language], "a")
    return units, time.thread_time() - start
