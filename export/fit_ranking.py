"""Fit the weights of ranking on judged repositories.

    python -m export.fit_ranking BENCH [--made MADE] [--out server/search/ranking.json]

BENCH is a folder that shared/bench/export_repos.py laid out, MADE one of `python -m export.made_bench`, whose questions
keep the weights from being those of a few people's repositories alone. Each query's candidates and their signals come
from the product itself. The loss is listwise, over files: -log of the softmax mass on the right files, a file's score
being that of its best unit. Signals that can only speak for a candidate are kept from weighing below 0. What is
printed is NDCG@10 by cross-validation over repositories (no repository is scored by weights that saw it) and, for
comparison, on the repositories that were fitted.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from server.embed.bundle import Bundle, resolve_model
from server.index.index import Index
from server.index.store import StoredUnit
from server.index.workers import Workers
from server.search.candidates import Candidates, gather, terms_of
from server.search.features import FEATURES, feature_matrix
from server.search.query import parse_query
from server.search.rank import Ranking, is_symbol, order
from server.settings import Settings

Array = npt.NDArray[Any]

SIGNED = frozenset({"type_kind", "module_kind", "text_kind", "size", "test", "example", "vendored", "declaration"})
"""Signals whose weight may have either sign; any other speaks for a candidate or is silent."""

FOLDS, STEPS, RATE = 5, 400, 0.03
RIDGE, SYMBOL_RIDGE = 0.1, 0.1
"""Strength of the pull to 0, and of the symbol weights' pull to the sentence weights."""
MADE_SHARE = 0.25
"""What all questions of MADE weigh together, those of BENCH being 1."""
REPEATS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Penalties tried, in tenths of the scores' spread within a query."""
WORTH = 0.002
"""Of penalties whose NDCG@10 differs by less, the smallest is taken: a user may want two functions of one file."""


@dataclass(frozen=True)
class Case:
    """One judged query: candidates, signals, and which targets each candidate meets."""

    repo: str
    symbol: bool
    candidates: Candidates
    units: list[StoredUnit]
    """The same as they are stored."""
    features: Array
    met: list[frozenset[int]]
    targets: int
    files: npt.NDArray[np.int64]
    """For each candidate the number of its file."""
    right: npt.NDArray[np.bool_]
    """For each file, whether it is an answer."""
    made: bool = False
    """Whether nobody judged it: it is of MADE."""

    @classmethod
    def of(
        cls, index: Index, repo: str, item: dict[str, Any], candidates: Candidates, features: Array | None = None
    ) -> Case:
        """A judged question, as annotations/*.json has it, and what was found for it."""
        stored = {unit.id: unit for unit in index.store.stored_units(candidates.units.tolist())}
        units = [stored[unit] for unit in candidates.units.tolist()]
        targets = [_target(target) for target in [*item.get("relevant", []), *item.get("secondary", [])]]
        met = [frozenset(i for i, target in enumerate(targets) if _meets(unit, target)) for unit in units]
        names = {path: number for number, path in enumerate(sorted({unit.path for unit in units}))}
        numbers = np.array([names[unit.path] for unit in units], np.int64)
        right = np.zeros(len(names), bool)
        for number, targets_met in zip(numbers, met, strict=True):
            right[number] |= bool(targets_met)
        features = np.empty((len(candidates), 0)) if features is None else features
        symbol = is_symbol(parse_query(item["query"]).text)
        return cls(repo, symbol, candidates, units, features, met, len(targets), numbers, right)


def judged(bench: Path, bundle: Bundle, settings: Settings) -> Iterator[tuple[str, Index, list[dict[str, Any]]]]:
    """(name, index, questions) of each repository; the index is true, and closed afterwards."""
    for spec in json.loads((bench / "repos.json").read_text()):
        index = Index.open(bench / "repos" / spec["name"] / (spec["benchmark_root"] or ""), bundle, settings)
        with closing(index):
            with Workers(2) as workers:
                index.update(workers=workers)
            index.vectors.follow()
            index.postings.follow()
            yield spec["name"], index, json.loads((bench / "annotations" / f"{spec['name']}.json").read_text())


def load_cases(bench: Path, bundle: Bundle, settings: Settings) -> list[Case]:
    """All judged queries of all repositories, with what the product finds for them."""
    return [_case(index, repo, item) for repo, index, items in judged(bench, bundle, settings) for item in items]


def _case(index: Index, repo: str, item: dict[str, Any]) -> Case:
    query = parse_query(item["query"])
    terms = terms_of(index, query.text)
    candidates = gather(index, terms, index.embedder.embed_queries([query.text])[0], None)
    return Case.of(index, repo, item, candidates, feature_matrix(candidates, terms))


def _target(raw: Any) -> tuple[str, int, int]:
    if isinstance(raw, str):
        return raw, 1, 1 << 30
    return raw["path"], int(raw.get("start_line") or 1), int(raw.get("end_line") or 1 << 30)


def _meets(c: StoredUnit, target: tuple[str, int, int]) -> bool:
    path, first, last = target
    same = path == c.path or path.endswith("/" + c.path) or c.path.endswith("/" + path)
    return same and c.start_line + 1 <= last and c.end_line + 1 >= first


def fit(cases: Sequence[Case]) -> dict[str, Any]:
    """Weights for the cases, in the form of ranking.json; how much repeats cost is told by judged ones alone."""
    data = _Stacked(cases)
    weights: Array = np.zeros((2, len(FEATURES)))  # sentence; what symbols add to it
    weights[0, FEATURES.index("dense")] = 1
    low = np.array([-np.inf if name in SIGNED else 0.0 for name in FEATURES])
    first: Array = np.zeros_like(weights)
    second: Array = np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        slope = data.slope(weights) + np.array([[RIDGE], [SYMBOL_RIDGE]]) * weights
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        weights -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        weights[0] = np.maximum(weights[0], low)
        weights[1] = np.maximum(weights[0] + weights[1], low) - weights[0]
    sentence, symbol = weights[0] / data.scale, (weights[0] + weights[1]) / data.scale
    values: dict[str, Any] = {
        "sentence": _named(sentence),
        "symbol": _named(symbol),
        "refine": {"weight": Ranking.shipped().refine},  # fitted by itself: see fit_refine.py
    }
    spread = float(np.mean([np.ptp(case.features @ sentence) for case in cases if len(case.candidates)])) / 10

    def score(repeat: float) -> float:
        ranking = Ranking.of({**values, "files": {"repeat": repeat * spread}})
        return float(np.mean(list(_repos_ndcg(judged_cases, ranking).values())))

    judged_cases = [case for case in cases if not case.made] or cases
    scored = {repeat: score(repeat) for repeat in REPEATS}
    repeat = min(repeat for repeat, value in scored.items() if value > max(scored.values()) - WORTH)
    return {**values, "files": {"repeat": round(repeat * spread, 4)}}


class _Stacked:
    """All cases that have an answer among their candidates, as one matrix, so that a step is a few array operations."""

    def __init__(self, cases: Sequence[Case]) -> None:
        share = dict(zip(map(id, cases), _shares(cases), strict=True))
        cases = [case for case in cases if case.right.any()]
        orders = [np.argsort(case.files, kind="stable") for case in cases]
        features = np.concatenate([case.features[order] for case, order in zip(cases, orders, strict=True)])
        self.scale: Array = np.maximum(features.std(axis=0), 0.02)
        self._features: Array = features / self.scale
        counts = [np.bincount(case.files) for case in cases]
        self._units = np.concatenate(counts)
        self._starts = np.concatenate([[0], np.cumsum(self._units)[:-1]])
        self._files = np.array([len(count) for count in counts])
        self._firsts = np.concatenate([[0], np.cumsum(self._files)[:-1]])
        self._symbol = np.repeat([case.symbol for case in cases], [len(case.candidates) for case in cases])
        self._wanted = np.concatenate([case.right / case.right.sum() for case in cases])
        self._share = np.repeat([share[id(case)] for case in cases], self._files)

    def slope(self, weights: Array) -> Array:
        """Gradient of the loss by the weights [2, features]."""
        scores = self._features @ weights[0] + self._symbol * (self._features @ weights[1])
        best = np.maximum.reduceat(scores, self._starts)
        # A file's best unit stands for it: the first that has the file's score.
        places = np.flatnonzero(scores == np.repeat(best, self._units))
        files = np.repeat(np.arange(len(best)), self._units)[places]
        unit = places[np.searchsorted(files, np.arange(len(best)))]
        mass = np.exp(best - np.repeat(np.maximum.reduceat(best, self._firsts), self._files))
        mass /= np.repeat(np.add.reduceat(mass, self._firsts), self._files)
        down = self._share * (mass - self._wanted)
        return np.stack([down @ self._features[unit], (down * self._symbol[unit]) @ self._features[unit]])


def _shares(cases: Sequence[Case]) -> list[float]:
    """Each repository weighs the same, as in the benchmark's score; all of MADE weigh MADE_SHARE of all of BENCH."""
    counts = Counter(case.repo for case in cases)
    repositories = Counter(made for _, made in {(case.repo, case.made) for case in cases})
    whole = {False: 1.0, True: MADE_SHARE if repositories[False] else 1.0}
    return [whole[case.made] / (counts[case.repo] * repositories[case.made]) for case in cases]


def _named(weights: Array) -> dict[str, float]:
    return {name: round(float(w), 4) for name, w in zip(FEATURES, weights, strict=True) if abs(w) > 5e-4}


def ndcg(case: Case, ranking: Ranking, scores: Array | None = None) -> float:
    """NDCG@10 of one query, as score.py counts it: a target is met at the rank of its first hit. The scores are those
    of the ranking, if no others are given."""
    if scores is None:
        scores = ranking.scores(case.symbol, case.candidates, case.features)
    place = {unit: i for i, unit in enumerate(case.candidates.units.tolist())}
    ranked = order(case.candidates, scores, ranking.repeat, 10)
    seen: set[int] = set()
    gain = 0.0
    for rank, (unit, _) in enumerate(ranked, 1):
        new = case.met[place[unit]] - seen
        if new:
            gain += 1 / math.log2(rank + 1)
            seen |= new
    ideal = sum(1 / math.log2(i + 1) for i in range(1, min(10, case.targets) + 1))
    return gain / ideal


def _repos_ndcg(cases: Sequence[Case], ranking: Ranking) -> dict[str, float]:
    by_repo: dict[str, list[float]] = {}
    for case in cases:
        by_repo.setdefault(case.repo, []).append(ndcg(case, ranking))
    return {repo: float(np.mean(values)) for repo, values in by_repo.items()}


def cross_validate(cases: Sequence[Case]) -> dict[str, float]:
    """NDCG@10 of each repository by weights that were fitted without it."""
    repos = sorted({case.repo for case in cases})
    found: dict[str, float] = {}
    for fold in range(FOLDS):
        held = set(repos[fold::FOLDS])
        ranking = Ranking.of(fit([case for case in cases if case.repo not in held]))
        found |= _repos_ndcg([case for case in cases if case.repo in held], ranking)
    return found


def main() -> None:
    """Fit, print, and with --write replace the shipped weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--made", type=Path, help="judged repositories made from the corpus, fitted beside them")
    parser.add_argument("--model", default=Settings().model)
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the weights")
    options = parser.parse_args()
    bundle = Bundle.load(resolve_model(options.model))
    cases = load_cases(options.bench, bundle, Settings())
    if options.made:
        cases += [replace(case, made=True) for case in load_cases(options.made, bundle, Settings())]
    held = cross_validate(cases)
    values = fit(cases)
    fitted = _repos_ndcg(cases, Ranking.of(values))
    for repo in held:
        _say(f"{repo:40} held out {held[repo]:.3f}   fitted {fitted[repo]:.3f}")
    for made, what in ((False, "judged"), (True, "made")):
        if some := {case.repo for case in cases if case.made == made}:
            _report(what, [case for case in cases if case.repo in some], held, fitted, some)
    _say(json.dumps(values, indent=1))
    if options.out:
        options.out.write_text(json.dumps(values, indent=1) + "\n")


def _report(
    what: str, cases: Sequence[Case], held: dict[str, float], fitted: dict[str, float], repos: Collection[str]
) -> None:
    reachable = np.mean([case.right.any() for case in cases])
    means = (float(np.mean([values[repo] for repo in repos])) for values in (held, fitted))
    _say(f"{what}: {len(repos)} repositories, {len(cases)} queries, an answer among the candidates of {reachable:.3f}")
    _say("{}: NDCG@10 held out {:.4f}   fitted {:.4f}".format(what, *means))


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
