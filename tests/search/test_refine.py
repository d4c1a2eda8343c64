"""A better model's opinion changes the order, as far as it is known, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder, EmbeddingError
from server.embed.pace import Pace
from server.index.embeddings import Embeddings
from server.index.index import Index
from server.index.prepare import prepare_text
from server.index.store import StoredUnit
from server.index.vectors import Vectors
from server.search import refine
from server.search.candidates import Candidates
from server.search.query import parse_query
from server.search.rank import Ranking, Scores
from server.search.refine import Refiner
from server.search.searcher import Searcher
from server.settings import Settings
from tests.embed.tiny import write_bundle

QUERY = "w11 w22"

Places = npt.NDArray[np.int64]


class Story:
    """An index with twenty functions, a search in it, and a better model."""

    def __init__(self, root: Path, settings: Settings, quick: Bundle, better: Bundle) -> None:
        self.root = root
        for i in range(20):
            (root / f"f{i}.py").write_text(f"def f{i}():\n    return w{i} + w{i + 1}\n")
        self.index = Index.open(root, quick, settings)
        self.index.update()
        self.pace = Pace(Embedder(better, 1))
        self.missed: list[str] = []

    def refiner(self, budget: float = 60, unsaved: Callable[[str], str | None] = lambda _: None) -> Refiner:
        return Refiner(self.index, lambda: self.pace, budget, unsaved, self.missed.extend)

    def scored(self) -> tuple[Candidates, Scores]:
        return Searcher(self.index).score(parse_query(QUERY), self.index.embedder.embed_queries([QUERY])[0])

    def units(self, candidates: Candidates) -> list[StoredUnit]:
        """In the same order."""
        stored = {unit.id: unit for unit in self.index.store.stored_units(candidates.units.tolist())}
        return [stored[unit] for unit in candidates.units.tolist()]

    def refined(self, refiner: Refiner, candidates: Candidates, scores: Scores, weight: float) -> Scores:
        return refiner.refined(QUERY, candidates, scores, weight, self.index.store.stored_units)

    def opinion(self, refiner: Refiner, candidates: Candidates, scores: Scores) -> tuple[Places, Scores]:
        return refiner.opinion(self.pace, QUERY, candidates, scores, self.index.store.stored_units)

    def store(self, *units: StoredUnit) -> None:
        """The better model's vectors of these units, as a backfill leaves them."""
        of_better = Embeddings(self.index.store, self.pace.embedder.bundle)
        with self.index.store.transaction():
            for c in units:
                text = (self.root / c.path).read_text()
                [prepared] = [each for each in prepare_text(c.path, text).texts if each.key == c.key]
                of_better.put(c.key, self.pace.embedder.embed_code([(prepared.text, prepared.breaks)])[0])


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    root = tmp_path / "workspace"
    root.mkdir()
    quick = Bundle.load(write_bundle(tmp_path / "quick"))
    better = Bundle.load(write_bundle(tmp_path / "better", changed={"id": "tiny-2"}, seed=5))
    story = Story(root, Settings(cache_dir=tmp_path / "cache", threads=1), quick, better)
    yield story
    story.index.close()


def test_the_opinion_is_on_the_quick_models_scale(story: Story) -> None:
    candidates, scores = story.scored()
    places, more = story.opinion(story.refiner(), candidates, scores)
    assert len(places) == len(candidates) == 20
    dense = candidates.dense[places]
    assert np.mean(more) == pytest.approx(0, abs=1e-5)
    assert np.std(dense + more) == pytest.approx(np.std(dense), abs=1e-4)


def test_the_order_becomes_the_better_models_as_its_weight_grows(story: Story) -> None:
    candidates, scores = story.scored()
    refined = story.refined(story.refiner(), candidates, scores, 1e6)
    [asked] = story.pace.embedder.embed_queries([QUERY])
    units = story.units(candidates)
    story.store(*units)
    of_better = Embeddings(story.index.store, story.pace.embedder.bundle).of(c.key for c in units)
    more = [float((of_better[c.key] @ asked).max()) for c in units]
    more_than_quick = np.array(more) / np.std(more) * np.std(candidates.dense) - candidates.dense
    assert list(np.argsort(-refined)) == list(np.argsort(-more_than_quick))
    assert np.array_equal(story.refined(story.refiner(), candidates, scores, 0), scores)


def test_an_opinion_weighs_what_its_model_was_measured_to(story: Story, tmp_path: Path) -> None:
    candidates, scores = story.scored()
    unmeasured = {weight: story.refined(story.refiner(), candidates, scores, weight) for weight in (0.5, 7)}
    measured = write_bundle(tmp_path / "measured", changed={"id": "tiny-2", "refine_weight": 0.5}, seed=5)
    story.pace = Pace(Embedder(Bundle.load(measured), 1))
    assert np.array_equal(story.refined(story.refiner(), candidates, scores, 7), unmeasured[0.5])
    assert not np.array_equal(unmeasured[7], unmeasured[0.5])


def test_a_model_that_brings_nothing_is_not_asked(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates, scores = story.scored()
    nothing = write_bundle(tmp_path / "nothing", changed={"id": "tiny-2", "refine_weight": 0}, seed=5)
    story.pace = Pace(Embedder(Bundle.load(nothing), 1))
    monkeypatch.setattr(Embedder, "embed_queries", lambda *_: pytest.fail("asked"))
    assert np.array_equal(story.refined(story.refiner(), candidates, scores, 7), scores)


def test_stored_vectors_cost_no_time_and_those_without_keep_their_place(story: Story) -> None:
    candidates, scores = story.scored()
    best = np.argsort(-scores, kind="stable")
    units = story.units(candidates)
    story.store(*(units[place] for place in best[:8]))
    refined = story.refined(story.refiner(budget=0), candidates, scores, 3)
    assert set(np.flatnonzero(refined != scores)) <= set(best[:8])
    assert len(np.flatnonzero(refined != scores)) >= 5
    assert story.missed == [units[place].path for place in best[8:]]


def test_what_the_query_takes_is_of_the_budget(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Embedder.embed_queries

    def slow(embedder: Embedder, texts: Sequence[str]) -> Vectors:
        time.sleep(0.2)
        return original(embedder, texts)

    candidates, scores = story.scored()
    monkeypatch.setattr(Embedder, "embed_queries", slow)
    story.store(*story.units(candidates)[:10])
    places, _ = story.opinion(story.refiner(budget=0.2), candidates, scores)
    assert len(places) == 10


def test_without_time_nothing_is_asked_of_a_model_that_knows_too_little(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates, scores = story.scored()
    monkeypatch.delattr(Embedder, "embed_queries")
    places, _ = story.opinion(story.refiner(budget=0), candidates, scores)
    assert len(places) == 0
    assert len(story.missed) == 20


def test_few_that_are_known_say_nothing(story: Story) -> None:
    candidates, scores = story.scored()
    story.store(*story.units(candidates)[: refine.COMPARABLE - 1])
    assert np.array_equal(story.refined(story.refiner(budget=0), candidates, scores, 3), scores)


def test_only_the_best_are_looked_at(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refine, "REFINED", 6)
    candidates, scores = story.scored()
    places, _ = story.opinion(story.refiner(), candidates, scores)
    assert list(places) == list(np.argsort(-scores, kind="stable")[:6])


def test_what_was_computed_for_one_search_is_there_for_the_next(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    refiner = story.refiner()
    candidates, scores = story.scored()
    first = story.refined(refiner, candidates, scores, 3)
    monkeypatch.setattr(refiner, "_budget", 0)
    assert np.array_equal(story.refined(refiner, candidates, scores, 3), first)
    monkeypatch.setattr(refine, "REMEMBERED", 7)
    refiner.refined("w3", candidates, scores, 3, story.index.store.stored_units)
    assert len(refiner._computed) == 20  # nothing new came


def test_an_open_documents_text_is_the_buffers(story: Story) -> None:
    candidates, scores = story.scored()
    text = "def f0():\n    return w30 + w31\n"
    key = prepare_text("f0.py", text).texts[0].key
    units = story.units(candidates)
    story.store(*(c for c in units if c.path != "f0.py"))
    [place] = [place for place, c in enumerate(units) if c.path == "f0.py"]
    typed = replace(units[place], id=-units[place].id, key=key)
    candidates.units[place] = typed.id

    def stored(ids: Collection[int]) -> list[StoredUnit]:
        return [*story.index.store.stored_units(ids), typed]

    for unsaved, looked_at in (({"f0.py": text}, 20), ({}, 19)):
        refiner = story.refiner(unsaved=unsaved.get)
        places, _ = refiner.opinion(story.pace, QUERY, candidates, scores, stored)
        assert len(places) == looked_at


def test_a_file_that_is_gone_or_another_one_is_passed_over(story: Story) -> None:
    candidates, scores = story.scored()
    (story.root / "f1.py").unlink()
    (story.root / "f2.py").write_text("def f2(): ...\n")
    places, _ = story.opinion(story.refiner(), candidates, scores)
    units = story.units(candidates)
    assert sorted(units[p].path for p in set(range(20)) - set(places.tolist())) == ["f1.py", "f2.py"]


def test_a_model_that_is_not_there_yet_changes_nothing(story: Story) -> None:
    candidates, scores = story.scored()
    refiner = Refiner(story.index, lambda: None, 60)
    assert np.array_equal(story.refined(refiner, candidates, scores, 3), scores)


def test_a_model_that_fails_costs_nothing_but_its_opinion(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EmbeddingError("not finite")

    monkeypatch.setattr(story.pace.embedder, "embed_queries", fail)
    candidates, scores = story.scored()
    assert np.array_equal(story.refined(story.refiner(), candidates, scores, 3), scores)


def test_one_side_alone_is_not_refined(story: Story) -> None:
    searcher = Searcher(story.index, refiner=story.refiner())
    plain = Searcher(story.index)
    for only in ("dense", "lexical"):
        query = parse_query(QUERY, only=only)
        assert searcher.search(query).hits == plain.search(query).hits
    assert searcher.search(parse_query(QUERY)).hits != plain.search(parse_query(QUERY)).hits
    assert Ranking.shipped().refine > 0
