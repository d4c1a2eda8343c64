"""How much a refining model's opinion should weigh, and what it brings: NDCG@10 by weight on judged repositories.

    python -m tests.bench.fit_refine BENCH REFINING [--repos NAME …] [--refined N] [--opinions FILE] [--write]

BENCH is a folder that shared/bench/export_repos.py laid out, REFINING the bundle that looks at the N best candidates of
each query. What it thinks of them takes long to compute and is kept in FILE, from which a second run goes on. Printed:
the quick tier alone, the candidates in the refining model's order alone, and both together by weight; the weight that
is best on the other repositories is what each is scored by under `held out`. With --write, the weight that is best on
all of them goes into REFINING's bundle.json, which the server goes by.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from export.fit_ranking import Array, Case, judged, ndcg
from server.embed.bundle import MANIFEST, Bundle, resolve_model
from server.embed.embedder import Embedder
from server.embed.pace import Pace
from server.index.index import Index
from server.search import refine
from server.search.query import parse_query
from server.search.rank import Ranking
from server.search.refine import Refiner
from server.search.searcher import Searcher
from server.settings import Settings

WEIGHTS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
EVER = 1e9
"""Seconds for one search: nothing is left out for want of time."""


@dataclass(frozen=True)
class Refined:
    """A judged query, its scores by the quick tier, and what the refining model thinks more of each candidate."""

    case: Case
    scores: Array
    opinion: Array
    """NaN for a candidate that it did not look at."""

    def ndcg(self, weight: float) -> float:
        """NDCG@10 with the opinion weighed so."""
        return ndcg(self.case, Ranking.shipped(), self.scores + weight * np.nan_to_num(self.opinion))

    def ndcg_alone(self) -> float:
        """NDCG@10 of the candidates in the refining model's order."""
        dense = self.case.candidates.dense + self.opinion
        return ndcg(self.case, replace(Ranking.shipped(), repeat=0.0), np.nan_to_num(dense, nan=-1e3))


def refined_cases(options: argparse.Namespace, settings: Settings) -> Iterator[Refined]:
    """Each judged query, the opinions from the file as far as they are there."""
    pace = Pace(Embedder(Bundle.load(options.refining), settings.threads, settings.device))
    kept = _kept(options.opinions)
    for repo, index, items in judged(options.bench, Bundle.load(resolve_model(settings.model)), settings):
        if options.repos and repo not in options.repos:
            continue
        searcher = Searcher(index)
        refiner = Refiner(index, lambda: pace, EVER)
        for number, item in enumerate(items):
            case, scores = _scored(searcher, index, repo, item)
            key = f"{pace.embedder.id} {options.refined} {repo} {item['query']}"
            if key not in kept:
                places, more = refiner.opinion(pace, item["query"], case.candidates, scores, index.store.stored_units)
                kept[key] = {_name(case, place): float(v) for place, v in zip(places, more, strict=True)}
                with options.opinions.open("a") as file:
                    file.write(json.dumps({key: kept[key]}) + "\n")
                print(f"{repo} {number + 1}/{len(items)}", file=sys.stderr, flush=True)
            opinion = [kept[key].get(_name(case, place), np.nan) for place in range(len(scores))]
            yield Refined(case, scores, np.array(opinion))


def _scored(searcher: Searcher, index: Index, repo: str, item: dict[str, Any]) -> tuple[Case, Array]:
    query = parse_query(item["query"])
    vector = index.embedder.embed_queries([query.text])[0]
    candidates, scores = searcher.score(query, vector)
    return Case.of(index, repo, item, candidates), scores


def _name(case: Case, place: int) -> str:
    c = case.units[place]
    return f"{c.path}:{c.start_line}:{c.name}"


def _kept(file: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            found |= json.loads(line)
    return found


def _by_repo(cases: Sequence[Refined], weight: float) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for each in cases:
        found[each.case.repo].append(each.ndcg(weight))
    return {repo: float(np.mean(values)) for repo, values in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("refining", type=Path, help="the refining model's bundle")
    parser.add_argument("--repos", nargs="+", metavar="NAME", help="these alone (default: all)")
    parser.add_argument("--refined", type=int, default=refine.REFINED, help="candidates (default: %(default)s)")
    parser.add_argument("--opinions", type=Path, default=Path("opinions.jsonl"), help="default: %(default)s")
    parser.add_argument("--write", action="store_true", help="the best weight into the bundle")
    options = parser.parse_args()
    refine.REFINED = options.refined
    cases = list(refined_cases(options, Settings()))
    table = {weight: _by_repo(cases, weight) for weight in WEIGHTS}
    alone = np.mean([each.ndcg_alone() for each in cases])
    print(f"{len(cases)} queries; the candidates in the refining model's order alone {alone:.4f}")
    for weight, repos in table.items():
        print(f"weight {weight:5.1f}  {np.mean([*repos.values()]):.4f}")
    held = []
    for repo in table[0.0]:
        others = {weight: np.mean([v for name, v in repos.items() if name != repo]) for weight, repos in table.items()}
        held.append(table[max(others, key=lambda weight: others[weight])][repo])
    print(f"held out      {np.mean(held):.4f}")
    if options.write:
        _write(options.refining / MANIFEST, max(table, key=lambda weight: np.mean([*table[weight].values()])))


def _write(manifest: Path, weight: float) -> None:
    values = {**json.loads(manifest.read_text("utf-8")), "refine_weight": weight}
    manifest.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
