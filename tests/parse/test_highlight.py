"""What stands where in a line, in every language there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.parse import LANGUAGES, Language
from server.parse.highlight import LARGEST, spans
from server.parse.source import decode, with_newlines

FIXTURES = Path(__file__).parent / "fixtures"
BY_NAME = {language.name: language for language in LANGUAGES}
WITH_GRAMMAR = [language for language in LANGUAGES if language.grammar]


def fixture(language: Language) -> str:
    files = [file for file in sorted((FIXTURES / language.name).iterdir()) if file.suffix in language.extensions]
    return with_newlines(decode(max(files, key=lambda file: file.stat().st_size).read_bytes()))


@pytest.mark.parametrize("language", WITH_GRAMMAR, ids=lambda language: language.name)
def test_every_language_has_keywords_comments_and_strings(language: Language) -> None:
    text = fixture(language)
    found = spans(text, language, 0, text.count("\n"))
    assert {"keyword", "comment", "string"} <= {span.style for line in found.values() for span in line}


@pytest.mark.parametrize("language", WITH_GRAMMAR, ids=lambda language: language.name)
def test_spans_stand_in_their_lines_one_after_the_other(language: Language) -> None:
    text = fixture(language)
    lines = text.encode().split(b"\n")
    for number, line in spans(text, language, 3, 20).items():
        assert 3 <= number <= 20
        ends = 0
        for start, end, _ in line:
            assert ends <= start < end <= len(lines[number])
            ends = end


def test_words_are_what_they_are() -> None:
    text = 'def f(x):\n    """A doc\n    of two lines."""\n    return x + 12  # why\n'
    found = spans(text, BY_NAME["python"], 0, 3)
    cut = {line: [(text.split("\n")[line][a:b], style) for a, b, style in row] for line, row in found.items()}
    assert cut == {
        0: [("def", "keyword")],
        1: [('"""A doc', "string")],
        2: [('    of two lines."""', "string")],
        3: [("return", "keyword"), ("12", "number"), ("# why", "comment")],
    }


def test_what_is_no_code_or_too_much_has_none() -> None:
    assert spans("x = 1\n" * LARGEST, BY_NAME["python"], 0, 1) == {}
    assert spans("", BY_NAME["python"], 0, 10) == {}
    assert spans("\ud800 = 'x'\n", BY_NAME["python"], 0, 0)
    without = [language for language in LANGUAGES if not language.grammar]
    assert all(spans("# Title\n", language, 0, 0) == {} for language in without)
