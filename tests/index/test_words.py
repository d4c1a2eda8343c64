"""Identifiers become words, words become stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.index.words import MAX_REPEATS, MAX_WORD, indexed, query_stems, stems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("snake_case_id", ["snake", "case", "id"]),
        ("SCREAMING_CASE", ["scream", "case"]),
        ("parsing parsed parses", ["pars", "pars", "pars"]),
        ("größe Ünï2x", ["größe", "ünï", "2", "x"]),
        ("x" * (MAX_WORD + 1), []),
        ("+-*/", []),
    ],
)
def test_a_text_is_its_stems(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


def test_a_word_is_stored_a_few_times_at_most() -> None:
    assert indexed("retry " * 50 + "once") == " ".join(["retri"] * MAX_REPEATS + ["onc"])


def test_words_that_say_nothing_are_left_out_of_a_question() -> None:
    assert query_stems("how does it retry the retries") == ["retri"]


def test_a_question_of_such_words_alone_keeps_them() -> None:
    assert query_stems("how to do it") == ["how", "to", "do", "it"]


@given(st.text())
def test_any_text_has_stems_that_full_text_search_can_take(text: str) -> None:
    for stem in stems(text):
        assert stem
        assert '"' not in stem
        assert not stem.isspace()
