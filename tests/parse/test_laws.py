"""The laws hold for real sources, for broken ones and for what is no source at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.parse import LANGUAGES, Language, decode, parse
from server.parse.languages import BY_NAME, grammar_names

from .golden import SUFFIX
from .laws import check, lines_of

FIXTURES = Path(__file__).parent / "fixtures"
SOURCES = {
    path: decode(path.read_bytes())
    for path in sorted(FIXTURES.glob("*/*"))
    if path.is_file() and not path.name.endswith(SUFFIX)
}
LINES = sorted({line for text in SOURCES.values() for line in lines_of(text)})
LINE_ENDS = ("\n", "\r\n", "\r")

any_language = st.sampled_from((*LANGUAGES, None))


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, Language]:
    """A fixture with runs of lines cut out, doubled, mixed up or joined, and a character or two changed."""
    path = draw(st.sampled_from(sorted(SOURCES)))
    lines = lines_of(SOURCES[path])
    for _ in range(draw(st.integers(0, 4))):
        first = draw(st.integers(0, len(lines)))
        last = draw(st.integers(first, min(len(lines), first + 12)))
        put = draw(st.sampled_from(("nothing", "twice", "one line", "reversed", "others")))
        lines[first:last] = {
            "nothing": [],
            "twice": lines[first:last] * 2,
            "one line": [" ".join(lines[first:last])],
            "reversed": lines[first:last][::-1],
            "others": draw(st.lists(st.sampled_from(LINES), max_size=6)),
        }[put]
    text = draw(st.sampled_from(LINE_ENDS)).join(lines)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from("(){}[]<>\"'`;:,#/*\\\n\t é𝒳\0\ufeff")) + text[at:]
    return text, BY_NAME[path.parent.name]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
@pytest.mark.parametrize("end", LINE_ENDS, ids=("lf", "crlf", "cr"))
def test_real_sources_keep_the_laws_and_line_ends_change_nothing(path: Path, end: str) -> None:
    language = BY_NAME[path.parent.name]
    text = end.join([*lines_of(SOURCES[path]), ""])
    units = parse(text, language, "stem")
    check(units, text)
    assert units == parse(SOURCES[path], language, "stem")


@settings(max_examples=200, deadline=None)
@given(mutated())
def test_broken_sources_keep_the_laws(source: tuple[str, Language]) -> None:
    text, language = source
    check(parse(text, language, "stem"), text)


def test_a_name_that_is_a_blank_leaves_no_blank_line() -> None:
    text = (
        'defmodule A do\n  describe "send/3" do\n    test" "gives up", %{} do\n      assert true\n    end\n  end\nend\n'
    )
    check(parse(text, BY_NAME["elixir"], "stem"), text)


@settings(max_examples=200, deadline=None)
@given(st.text(), any_language)
def test_any_string_keeps_the_laws(text: str, language: Language | None) -> None:
    check(parse(text, language, "stem"), text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=30).map("\n".join), any_language)
def test_any_mixture_of_lines_keeps_the_laws(text: str, language: Language | None) -> None:
    check(parse(text, language, "stem"), text)


@pytest.mark.parametrize("language", grammar_names())
def test_parsing_is_a_function_of_the_text(language: str) -> None:
    text = "\n".join(LINES[::7])
    assert parse(text, BY_NAME[language], "a") == parse(text, BY_NAME[language], "a")
