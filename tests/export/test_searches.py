"""How the corpus is asked: as people search, and beside its neighbours."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs the `export` extra")

from export.data import Batches
from export.pairs import Row
from export.searches import SHARES, asked, bare_words, examples, hidden, imperative, question

ROW = Row("python", "pypi-x", "Returns the size of a file, in bytes.", "def file_size(path):\n    pass", "file_size")


def rows(language: str, packages: int, pairs: int) -> list[Row]:
    return [
        Row(language, f"pypi-{package}", f"Reads the thing {package} {pair}", f"def f{pair}(): {package}", f"f{pair}")
        for package in range(packages)
        for pair in range(pairs)
    ]


def test_a_doc_comment_becomes_what_people_type() -> None:
    assert bare_words(ROW.query) == "returns size file"
    questions = {question(ROW.query, np.random.default_rng(seed)) for seed in range(40)}
    assert {"how to return the size of a file", "where do we return the size of a file"} <= questions


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("Returns", "return"),
        ("applies", "apply"),
        ("matches", "match"),
        ("processes", "process"),
        ("parses", "parse"),
        ("Get", "get"),
        ("class", None),
        ("status", None),
        ("this", None),
        ("size", None),
    ],
)
def test_the_first_verb_becomes_an_imperative(word: str, verb: str | None) -> None:
    assert imperative(word) == verb


def test_code_that_is_asked_for_by_its_name_does_not_hold_it() -> None:
    assert hidden("file_size", "def file_size(p): return file_size(p) + my_file_size") == (
        "def _(p): return _(p) + my_file_size"
    )
    assert hidden("empty?", "def empty?\n  size.zero?") == "def _\n  size.zero?"
    found = [asked(ROW, "s", np.random.default_rng(seed)) for seed in range(100)]
    by_name = [example for example in found if example.query == "file size"]
    assert by_name
    assert all("file_size" not in example.code for example in by_name)
    assert {ROW.query in example.code for example in by_name} == {True, False}


def test_code_below_its_doc_comment_is_never_asked_for_by_the_whole_of_it() -> None:
    found = [asked(ROW, "s", np.random.default_rng(seed)) for seed in range(100)]
    assert all(example.code == ROW.code for example in found if example.query == ROW.query)
    others = [example for example in found if example.query not in (ROW.query, "file size")]
    assert {ROW.query in example.code for example in others} == {True, False}


def test_every_kind_of_query_has_its_share() -> None:
    random = np.random.default_rng(0)
    found = Counter(asked(ROW, "s", random).query for _ in range(2_000))
    for query, kind in ((ROW.query, "doc"), ("returns size file", "words"), ("file size", "name")):
        assert found[query] / 2_000 == pytest.approx(SHARES[kind], abs=0.05)


def test_batches_hold_one_language_and_few_packages() -> None:
    made = examples([*rows("go", 40, 100), *rows("python", 40, 100)], most=10_000, seed=0)
    batches = Batches(made, 64, seed=0)
    for step in range(batches.epoch_steps):
        batch = [made[number] for number in batches.at(step)]
        assert len({example.language for example in batch}) == 1
        assert len({example.source for example in batch}) == 1
    packages = Counter((e.source, e.code.rpartition(" ")[2]) for e in made)
    assert max(Counter(source for source, _ in packages).values()) <= 6
    assert set(packages.values()) == {100}  # A package is not torn apart.


def test_no_language_speaks_for_all_and_the_same_seed_asks_the_same() -> None:
    pairs = [*rows("go", 2, 50), *rows("python", 20, 50)]
    made = examples(pairs, most=300, seed=0)
    assert Counter(example.language for example in made) == {"go": 100, "python": 300}
    assert made == examples(pairs, most=300, seed=0)
    assert made != examples(pairs, most=300, seed=1)
