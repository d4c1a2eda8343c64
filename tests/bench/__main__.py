"""How fast, how heavy and how good, beside semble and ripgrep, in one run.

    python -m tests.bench [--quick] [--bench FOLDER] [--sizes 20000,100000] [--out FOLDER] [--only PART …]

Parts: `repositories` (those of --bench, each from nothing; see scenarios.py), `quality` (their judged questions),
`sizes` (trees of so many units, made of their code by renaming), `checkout`, and `live` (a server while code changes,
see live.py). Writes results.json, results.md and two pictures into --out; what is there of other parts, from a run
before, is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import live, made_up
from .machine import load, machine
from .peers import HOUSE, Ours, Peer, Quality, Ripgrep, Semble, available
from .quality import Judged, judged
from .renamed import write_renamed_tree
from .report import markdown, pictures
from .scenarios import WARM_UP, Tree, measure, measure_checkout

QUERIES = 300
LIVE = ("save", "checkout", "busy", "start")
SIZES = "10000,100000"
QUICK_UNITS = 300
QUICK_FILES = 10
PEERS_UNITS = 100_000
"""The largest tree that peers are given: an hour and gigabytes beyond."""
REPEATS, REPEATS_OF_LARGE = 3, 1
LARGE = 50_000
"""Units from which a tree is measured REPEATS_OF_LARGE times."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What the parts need."""

    options: argparse.Namespace
    peers: Sequence[Peer]
    scratch: Path

    @property
    def sources(self) -> list[Path]:
        """Folders of real code: the repositories, or this project and what it depends on."""
        if self.options.bench:
            return sorted(path for path in (self.options.bench / "repos").iterdir() if path.is_dir())
        packages = Path(json.__file__).parents[1] / "site-packages"
        return [HOUSE / "server", HOUSE / "tests", *([packages] if packages.is_dir() else [])]

    @property
    def questions(self) -> list[str]:
        """For searches inside of a process: judged ones if they are there."""
        number = WARM_UP + (QUERIES if not self.options.quick else QUICK_FILES)
        files = sorted((self.options.bench / "annotations").glob("*.json")) if self.options.bench else []
        if not files:
            return made_up.questions(number)
        asked = [item["query"] for file in files for item in json.loads(file.read_text("utf-8"))]
        return [asked[place * len(asked) // number] for place in range(min(number, len(asked)))]


def repositories(bench: Bench) -> Figures:
    """Every repository of --bench."""
    if not bench.options.bench:
        return {}
    found = {}
    for root in bench.sources:
        found[root.name] = measure(Tree(root.name, root, REPEATS), bench.peers, bench.questions, bench.scratch, say)
    return found


def sizes(bench: Bench) -> Figures:
    """Trees of given sizes."""
    found: Figures = {}
    for units in bench.options.sizes:
        root = bench.options.trees / str(units)
        write_renamed_tree(root, units, bench.sources, say)
        peers = [each for each in bench.peers if units <= bench.options.peers_units or isinstance(each, Ours)]
        repeats = REPEATS if units < LARGE and not bench.options.quick else REPEATS_OF_LARGE
        found[str(units)] = measure(Tree(f"{units} units", root, repeats), peers, bench.questions, bench.scratch, say)
    return found


def checkout(bench: Bench) -> Figures:
    """A checkout and a search."""
    if bench.options.quick:
        return measure_checkout(bench.peers, bench.scratch, QUICK_FILES, repeats=1)
    return measure_checkout(bench.peers, bench.scratch)


def live_server(bench: Bench) -> Figures:
    """A server while code changes."""
    found = {}
    for name in LIVE:
        say(f"live: {name} …")
        units = QUICK_UNITS if bench.options.quick else None
        with tempfile.TemporaryDirectory(prefix="live-") as scratch:
            found[name] = live.MEASUREMENTS[name](live.Bench(Path(scratch), None, units, bench.options.model))
    return found


def quality(bench: Bench) -> Figures:
    """How good the answers are, where questions are judged; of the peers, what was published."""
    found: Figures = {
        peer.name: {"ndcg": peer.quality.ndcg, "source": peer.quality.source} for peer in bench.peers if peer.quality
    }
    if bench.options.bench and (score := bench.options.score).exists():
        ours: Judged = judged(bench.options.bench, score, bench.options.model)
        found["meaning-lsp"] = {"ndcg": ours.ndcg, "source": f"{ours.questions} questions, in this run"}
    return found


PARTS: dict[str, Callable[[Bench], Figures]] = {
    "repositories": repositories,
    "sizes": sizes,
    "checkout": checkout,
    "live": live_server,
    "quality": quality,
}


def main() -> int:
    """Measure and write."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.json"
    found: Figures = json.loads(results.read_text("utf-8")) if results.exists() else {}
    with tempfile.TemporaryDirectory(prefix="meaning-bench-") as scratch:
        wanted = _peers(options, Path(scratch))
        peers, versions = available(wanted, say)
        bench = Bench(options, peers, Path(scratch))
        for part in options.only:
            before = load()
            figures = PARTS[part](bench)
            told = {"machine": machine(), "versions": versions, "load": [before, load()], "figures": figures}
            found[part] = told
            results.write_text(json.dumps(found, indent=1), "utf-8")
    (options.out / "results.md").write_text(markdown(found), "utf-8")
    for name, picture in pictures(found).items():
        (options.out / name).write_text(picture, "utf-8")
    say(f"{options.out}/results.md")
    return 0


def _peers(options: argparse.Namespace, scratch: Path) -> list[Peer]:
    texts = [options.bench / "repos"] if options.bench else [HOUSE / "server", HOUSE / "tests"]
    peers: list[Peer] = [Ours(scratch / "ours", options.model)]
    if not options.alone:
        of_these = "published, of the 20 repositories of shared/bench/dev"
        peers += [
            Semble(scratch / "semble", options.peers, texts, quality=Quality(0.870, of_these)),
            Ripgrep(scratch / "ripgrep", quality=Quality(0.12, "published, of 63 repositories")),
        ]
    return peers


def say(message: str) -> None:
    """Tell whoever waits."""
    print(message, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kept = Path(sys.prefix)
    parser.add_argument("--quick", action="store_true", help="everything, on very little: whether it works")
    parser.add_argument("--bench", type=Path, help="a folder laid out by shared/bench/export_repos.py")
    parser.add_argument("--sizes", help=f"units of the trees made by renaming (default: {SIZES})")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="(default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS], metavar="PART", help="(default: all)")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--peers-units", type=int, default=PEERS_UNITS, help="largest tree for peers (%(default)s)")
    parser.add_argument("--model", default="default", help="default, or a bundle's folder")
    parser.add_argument("--trees", type=Path, default=kept / "bench-trees", help="made once, kept (%(default)s)")
    parser.add_argument("--peers", type=Path, default=kept / "bench-peers", help="likewise (%(default)s)")
    parser.add_argument("--score", type=Path, default=HOUSE.parent / "shared/bench/score.py", help="(%(default)s)")
    options = parser.parse_args()
    options.sizes = [int(size) for size in (options.sizes or (str(QUICK_UNITS) if options.quick else SIZES)).split(",")]
    return options


if __name__ == "__main__":
    sys.exit(main())
