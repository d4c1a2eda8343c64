"""Identifiers become words, words become stems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.index.segment import field_of
from server.index.words import FIELDS, MAX_REPEATS, MAX_WORD, counts, packed, query_stems, stems, term


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


def test_a_word_counts_a_few_times_at_most() -> None:
    assert counts("name", "retry " * 50 + "once") == {term("retri"): MAX_REPEATS, term("onc"): 1}


def test_terms_are_stored_in_order_with_their_counts_in_each_field() -> None:
    data = packed([counts("name", "retry"), counts("doc", "once retries"), counts("body", "once once")])
    terms = np.frombuffer(data, np.uint32, 2)
    assert terms.tolist() == sorted([term("retri"), term("onc")])
    found = np.frombuffer(data, np.uint16, offset=8)
    assert {
        word: {field: int(field_of(found[terms == term(word)], field)[0]) for field in FIELDS}
        for word in ("retri", "onc")
    } == {
        "retri": {"name": 1, "container": 0, "doc": 1, "path": 0, "body": 0},
        "onc": {"name": 0, "container": 0, "doc": 1, "path": 0, "body": 2},
    }


def test_words_that_say_nothing_are_left_out_of_a_question() -> None:
    assert query_stems("how does it retry the retries") == ["retri"]


def test_a_question_of_such_words_alone_keeps_them() -> None:
    assert query_stems("how to do it") == ["how", "to", "do", "it"]


@given(st.text())
def test_any_text_has_terms(text: str) -> None:
    assert counts("body", text).keys() == {term(stem) for stem in stems(text)}
    assert len(packed([counts(field, text) for field in FIELDS])) == 6 * len({*map(term, stems(text))})
