"""What is typed becomes a query, or a mistake that is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.search.globs import path_matcher
from server.search.query import MAX_QUERY, QueryError, parse_query


def test_filters_stand_anywhere_in_the_text() -> None:
    query = parse_query("lang:go retry path:internal/ with kind:method backoff")
    assert query.text == "retry with backoff"
    assert query.languages == {"go"}
    assert query.paths == ("internal/",)
    assert query.kinds == {"method"}


def test_several_values_and_arguments_add_up() -> None:
    query = parse_query("lang:c,cpp x", languages=["rust"], kinds=["class"])
    assert query.languages == {"c", "cpp", "rust"}
    assert query.kinds == {"class"}


@pytest.mark.parametrize(("typed", "name"), [("py", "python"), ("TS", "typescript"), ("c++", "cpp"), ("Go", "go")])
def test_a_language_may_be_named_by_its_suffix(typed: str, name: str) -> None:
    assert parse_query(f"lang:{typed} x").languages == {name}


def test_a_path_with_blanks_is_quoted() -> None:
    assert parse_query('path:"my docs/" x').paths == ("my docs/",)


@pytest.mark.parametrize("text", ["std::vector", "http://x.y/z", "a path: to somewhere", "foolang:go", "lang :go"])
def test_what_only_looks_like_a_filter_is_text(text: str) -> None:
    query = parse_query(text)
    assert not query.languages
    assert not query.paths or text == "a path: to somewhere"


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "lang:go", "kind:class path:x"])
def test_an_empty_query_is_a_mistake(text: str) -> None:
    with pytest.raises(QueryError, match="empty"):
        parse_query(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [("lang:pyton x", "did you mean python"), ("kind:klass x", "did you mean class"), ("lang:zzz x", "known are")],
)
def test_an_unknown_value_is_named_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_query(text)


@pytest.mark.parametrize("limit", [0, -1, 100_000])
def test_a_limit_has_bounds(limit: int) -> None:
    with pytest.raises(QueryError, match="limit"):
        parse_query("x", limit=limit)


def test_a_very_long_query_is_cut() -> None:
    assert len(parse_query("word " * 100_000).text) <= MAX_QUERY


@given(st.text())
def test_any_text_is_a_query_or_a_mistake(text: str) -> None:
    try:
        assert parse_query(text).text.strip()
    except QueryError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("pattern", "path", "passes"),
    [
        ("src/", "src/a.py", True),
        ("src/", "lib/src/a.py", True),
        ("src/", "mysrc/a.py", False),
        ("retry", "net/retry_policy.py", True),
        ("Retry", "net/retry_policy.py", True),
        ("try", "net/retry_policy.py", False),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyi", False),
        ("src/**/test_*", "src/x/y/test_a.py", True),
        ("src/**/test_*", "lib/test_a.py", False),
        ("net/retry_policy.py", "net/retry_policy.py", True),
    ],
)
def test_a_path_filter_is_a_glob_or_a_start(pattern: str, path: str, passes: bool) -> None:
    assert path_matcher([pattern])(path) is passes


@pytest.mark.parametrize("pattern", ["*[z-a]", "x/[9-0].py"])
def test_a_glob_that_is_none_is_told(pattern: str) -> None:
    with pytest.raises(QueryError, match="not a glob"):
        parse_query("x", paths=[pattern])
