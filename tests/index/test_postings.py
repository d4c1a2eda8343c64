"""Full text follows the database: whatever came and went, it knows what one that is made anew knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.index import postings
from server.index.database import DamagedStore
from server.index.postings import Postings, Scores
from server.index.segment import Counts, Segment, UnitTerms, field_of, merged
from server.index.store import FileState, Store, UnitRow
from server.index.words import counts, packed, stems, term

WORDS = ("retry", "socket", "close", "parse", "cron", "cache")
TERMS = [term(stem) for word in WORDS for stem in stems(word)]

texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
files = st.lists(texts, max_size=4)
steps = st.one_of(
    st.tuples(st.sampled_from("abc"), files),
    st.tuples(st.just("delete"), st.sampled_from("abc")),
    st.tuples(st.just("compact"), st.booleans()),
    st.tuples(st.just("follow"), st.integers(0, 1)),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path)
    yield store
    store.close()


def put(store: Store, path: str, bodies: list[str]) -> None:
    state = FileState(path, "", b"", "", "text", "", "", b"")
    rows = [
        UnitRow(
            body.encode(), "f", "", "function", line, line, (line, 0, 1), "", body,
            packed([counts("name", body.split(" ")[0]), counts("body", body)]),
        )
        for line, body in enumerate(bodies)
    ]  # fmt: skip
    with store.transaction():
        store.put(state, rows)


def sums(known: Postings) -> dict[int, float]:
    """What each unit has of all terms, by how often they stand in its body."""

    def impact(number: int, found: Counts, lengths: Counts) -> Scores:
        return (field_of(found, "body") * (number + 1)).astype(np.float32)

    units, scores = known.sums(TERMS, impact)
    return dict(zip(units.tolist(), scores.tolist(), strict=True))


def knowledge(known: Postings, units: list[int]) -> object:
    found = known.find(np.array(units, np.int64), TERMS)
    return (
        known.units,
        round(known.mean_length, 6),
        known.frequencies(TERMS).tolist(),
        sums(known),
        known.living(np.arange(0, 60)).tolist(),
        [column.tolist() for column in found],
    )


@given(st.lists(steps, max_size=12))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_who_follows_knows_what_one_that_begins_anew_knows(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("index")
    store, reader = Store.open(folder), Store.open(folder)
    with pytest.MonkeyPatch.context() as patch:
        limits = {"TAIL_LIMIT": 4, "GONE_LIMIT": 6, "DEAD_UNITS": 2, "_SLICE": 3, "_FOLLOWED_AT_ONCE": 4}
        for limit, value in limits.items():
            patch.setattr(postings, limit, value)
        followers = [Postings(store, folder), Postings(reader, folder)]
        for name, value in changes:
            if name == "delete":
                with store.transaction():
                    for row in store.files_within([value]).values():
                        store.remove(row.id)
            elif name == "compact":
                meanwhile = count()
                followers[0].compact(
                    between=(lambda: put(store, f"d{next(meanwhile)}", ["close"])) if value else None  # noqa: B023
                )
            elif name == "follow":
                followers[value].follow()
            else:
                put(store, name, value)
        units = [unit for (unit,) in store.rows("SELECT id FROM units ORDER BY id")]
        fresh = Postings(store, folder)
        for known in (fresh, *followers):
            known.follow()
        expected = knowledge(fresh, units)
        for known in followers:
            assert knowledge(known, units) == expected
        bodies = [body for (body,) in store.rows("SELECT preview FROM units ORDER BY id")]
        assert fresh.units == len(bodies)
        having = Counter(stem for body in bodies for stem in {*stems(body)})
        assert fresh.frequencies(TERMS).tolist() == [having[stem] for word in WORDS for stem in stems(word)]
    store.close()
    reader.close()


def test_segments_that_are_merged_are_one_of_all(tmp_path: Path) -> None:
    rows = [
        UnitTerms(unit, unit // 3, "function", unit, packed([counts("body", f"w{unit % 7} w{unit % 5} common")]))
        for unit in range(1, 40)
    ]
    whole = Segment.of(rows)
    parts = merged([Segment.of(rows[:5]), Segment.of(rows[5:6]), Segment.of([]), Segment.of(rows[6:])])
    whole.save(tmp_path / "segment")
    for other in (parts, Segment.load(tmp_path / "segment")):
        for name in Segment.__dataclass_fields__:
            one, another = getattr(whole, name), getattr(other, name)
            assert one.dtype == another.dtype
            assert np.array_equal(one, another)


def test_a_term_that_nobody_has_has_no_postings() -> None:
    segment = Segment.of([UnitTerms(1, 1, "function", 1, packed([counts("body", "retry")]))])
    for missing in (term("cache"), 0, 0xFFFFFFFF):
        assert not len(segment.postings(missing)[0])
    assert not len(Segment.of([]).postings(term("cache"))[0])


@pytest.mark.parametrize("size", [0, 10, 31, 60])
def test_a_segment_that_is_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "segment"
    Segment.of([UnitTerms(1, 1, "function", 1, packed([counts("body", "retry")]))]).save(file)
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"cut short|empty"):
        Segment.load(file)


@pytest.mark.parametrize("table", ["terms", "gone"])
def test_terms_that_are_none_are_damage(store: Store, tmp_path: Path, table: str) -> None:
    known = Postings(store, tmp_path)
    put(store, "a", ["retry"])
    if table == "gone":
        known.follow()
        put(store, "a", ["close"])
    with store.transaction():
        store.write(f"UPDATE {table} SET terms = x'0102'")
    with pytest.raises(DamagedStore):
        known.follow()
