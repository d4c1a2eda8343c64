"""A slip in a word does not hide what is looked for, and no word that the code has is read as another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.embed.bundle import Bundle, resolve_model
from server.index.index import Index
from server.search.candidates import terms_of
from server.search.query import parse_query
from server.search.searcher import Searcher
from server.search.spelling import meant, slips
from server.settings import Settings


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("slips")
    names = ("parse_config", "render_template", "connect_socket", "count_colours")
    for name in names:
        (root / f"{name.partition('_')[0]}.py").write_text(f"def {name}(value):\n    return value\n")
    settings = Settings(cache_dir=tmp_path_factory.mktemp("cache"))
    with closing(Index.open(root, Bundle.load(resolve_model("default")), settings)) as opened:
        opened.update()
        yield opened


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("parseConifg", "parse_config"),
        ("render_tmplate", "render_template"),
        ("conect_sockket", "connect_socket"),
        ("templqte", "render_template"),
    ],
)
def test_a_slip_finds_what_was_meant(index: Index, typed: str, found: str) -> None:
    hits = Searcher(index).search(parse_query(typed)).hits
    assert hits[0].name == found


def test_words_that_the_code_has_stay_as_they_are(index: Index) -> None:
    assert terms_of(index, "connect config template").stems == ("connect", "config", "templat")


def test_what_is_no_slip_stays_too(index: Index) -> None:
    assert meant(index.postings, "database") is None
    assert meant(index.postings, "vlue") is None  # short: `value` is one of many that it might be
    assert terms_of(index, "database").stems == ("databas",)


def test_a_slip_of_a_word_beside_it_counts_once(index: Index) -> None:
    assert terms_of(index, "config conifg").stems == ("config",)


@given(st.text("abc", min_size=2, max_size=6), st.integers(1, 5), st.sampled_from("abc"))
def test_every_single_slip_is_one_both_ways(word: str, at: int, letter: str) -> None:
    at = max(1, at % len(word))
    for typed in (
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    ):
        assert (typed in slips(word)) == (word in slips(typed)) == (typed != word)


@pytest.mark.parametrize(("typed", "word"), [("abcd", "dcba"), ("abcd", "ab"), ("abcde", "axcye"), ("abcd", "bcd")])
def test_two_slips_or_another_beginning_are_too_much(typed: str, word: str) -> None:
    assert word not in slips(typed)
