"""What every peer goes through on one tree, in turns, so that a machine that is busy for a while is so for each.

cold        from nothing to the first answer: index and search, the whole process
unchanged   a search with nothing changed since, the whole process, start included
edited      the same after one function was renamed; what is asked for is its new name
checkout    the same after git has changed 2,000 files (on a tree of its own)
warm        inside of a process: milliseconds of a search, and memory
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .edits import BRANCHES, branch_names, editable, editable_if_any, edited, git, make_branches, new_name, write
from .made_up import FUNCTIONS_PER_FILE, write_tree
from .peers import Peer
from .processes import Cost
from .usage import folder_mb

Figures = dict[str, Any]

CHECKED_OUT_FILES = 2_000
WARM_UP = 20
"""Searches inside of a process that are not counted."""


@dataclass(frozen=True)
class Tree:
    """A folder to measure on."""

    name: str
    root: Path
    """Is written to for a moment, and left as it was."""
    repeats: int
    """Of each measurement of a whole process."""


def measure(
    tree: Tree, peers: Sequence[Peer], questions: Sequence[str], scratch: Path, say: Callable[[str], None]
) -> Figures:
    """All of a tree: {"files", "mb", "peers": {name: figures}}."""
    asked = scratch / "questions.txt"
    asked.write_text("".join(f"{question}\n" for question in questions), "utf-8")
    found: dict[str, Figures] = {peer.name: {} for peer in peers}

    def note(scenario: str, costs: dict[str, list[Cost]]) -> None:
        for name, all_of_it in costs.items():
            found[name][scenario] = summary(all_of_it)
        told = ", ".join(f"{name} {found[name][scenario]['seconds']['median']}" for name in found)
        say(f"{tree.name}: {scenario}: {told} s")

    note("cold", _in_turns(tree.repeats, peers, lambda peer, _: _cold(peer, tree.root, questions[0])))
    for peer in peers:
        found[peer.name]["index_mb"] = folder_mb(peer.index) if peer.index.exists() else 0.0
    note("unchanged", _in_turns(tree.repeats, peers, lambda peer, _: peer.search(tree.root, questions[0])))
    for file in editable_if_any(tree.root)[:1]:
        with restored(file):
            note("edited", _in_turns(tree.repeats, peers, partial(_edit, tree.root, file)))
    for peer in peers:
        peer.search(tree.root, questions[0])  # the file as it was is taken up again
        if inside := peer.warm(tree.root, asked):
            found[peer.name]["warm"] = _warm(inside)
            found[peer.name]["units"] = inside["units"]
    files = [path for path in tree.root.rglob("*") if path.is_file() and ".git" not in path.parts]
    size = round(sum(path.stat().st_size for path in files) / 1e6, 1)
    return {"files": len(files), "mb": size, "peers": found}


def measure_checkout(peers: Sequence[Peer], scratch: Path, files: int = CHECKED_OUT_FILES, repeats: int = 3) -> Figures:
    """A search right after a checkout, there and back in turn; the time is of the search alone."""
    root = scratch / "checkout"
    write_tree(root, files * FUNCTIONS_PER_FILE)
    changed = editable(root)
    make_branches(root, changed)
    last = len(changed) - 1
    for peer in peers:
        peer.search(root, branch_names(BRANCHES[0], last)[-1])

    costs: dict[str, list[Cost]] = {peer.name: [] for peer in peers}
    for number in range(repeats):
        branch = BRANCHES[(number + 1) % 2]
        git(root, "checkout", "-q", branch)
        for peer in _turned(peers, number):
            costs[peer.name].append(peer.search(root, branch_names(branch, last)[-1]))
    return {"files": len(changed), "peers": {name: {"checkout": summary(each)} for name, each in costs.items()}}


def summary(costs: Sequence[Cost]) -> Figures:
    """Median and spread of the time, median of the processor's, the most memory."""
    return {
        "seconds": spread([cost.seconds for cost in costs]),
        "cpu_seconds": round(statistics.median(cost.cpu_seconds for cost in costs), 2),
        "peak_mb": round(max(cost.peak_mb for cost in costs)),
    }


def spread(values: Sequence[float]) -> Figures:
    """n, median, least and most."""
    rounded = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {"n": len(values)} | {name: round(value, 3) for name, value in rounded.items()}


@contextmanager
def restored(file: Path) -> Iterator[None]:
    """A file is as it was, after the block."""
    before = file.read_bytes()
    try:
        yield
    finally:
        file.write_bytes(before)


def _cold(peer: Peer, root: Path, question: str) -> Cost:
    shutil.rmtree(peer.index, ignore_errors=True)
    peer.index.mkdir(parents=True)
    return peer.search(root, question)


def _edit(root: Path, file: Path, peer: Peer, number: int) -> Cost:
    name = new_name(peer.name, number)
    write(file, edited(file, [name]))
    return peer.search(root, name)


def _in_turns(repeats: int, peers: Sequence[Peer], measured: Callable[[Peer, int], Cost]) -> dict[str, list[Cost]]:
    """Every peer once, then every peer again, another one first."""
    costs: dict[str, list[Cost]] = {peer.name: [] for peer in peers}
    for number in range(repeats):
        for peer in _turned(peers, number):
            costs[peer.name].append(measured(peer, number))
    return costs


def _turned(peers: Sequence[Peer], number: int) -> list[Peer]:
    first = number % len(peers)
    return [*peers[first:], *peers[:first]]


def _warm(inside: Figures) -> Figures:
    took = inside["took_ms"][WARM_UP:] or inside["took_ms"]
    cuts = statistics.quantiles(took, n=100, method="inclusive") if len(took) > 1 else took * 99
    return {
        "n": len(took),
        "query_ms": {"p50": round(cuts[49], 2), "p99": round(cuts[98], 2)},
        "first_answer_s": round(inside["first_answer_s"], 3),
        "open_s": round(inside["open_s"], 3),
        "resident_mb": round(inside["resident_mb"]),
        "imports_mb": round(inside["imports_mb"]),
    }
