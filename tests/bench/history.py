"""Real history under a running server: checkouts, stashes and rebases, neighbours and far jumps.

    python -m tests.bench.history REPO [--commits N] [--every N] [--seed N]

A clone of REPO is led through its last N commits in an order that people work in, while somebody searches all the
time. Each answer has to be true for the files as they are at that moment; after each step the index has to become
true by itself; at each tenth it is compared with one built from nothing. Printed as one JSON object:

true_s        from the end of a step to an index that is true (and by how many files the largest steps changed)
answer_s      searches, all the while
failures      what went wrong; the exit status is 1 if there is any
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .client import Server
from .truth import Asker, files_in, lies, questions_about, spread, told, untidy, until_true

LONGEST_WALK = 8
"""Commits that are visited one after the other before a jump."""
STASH_EVERY, REBASE_EVERY = 7, 11
QUESTIONS = ["where is a request handled", "parse the command line", "raise an error for a bad argument", "test"]


class History:
    """A clone whose working tree changes as under somebody's hands."""

    def __init__(self, repo: Path, clone: Path, draw: random.Random) -> None:
        self.clone, self._draw = clone, draw
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(repo), str(clone)], check=True)
        for key, value in (("user.name", "A"), ("user.email", "a@b.c"), ("commit.gpgsign", "false")):
            self.git("config", key, value)

    def git(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.clone, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def commits(self, count: int) -> list[str]:
        """The last commits, the newest first."""
        return self.git("rev-list", "--topo-order", "-n", str(count), "HEAD").split()

    def steps(self, commits: list[str]) -> Iterator[str]:
        """Changes the tree each time that it is asked for more, and says how."""
        previous = self.git("rev-parse", "HEAD").strip()
        for number, commit in enumerate(_as_people_walk(commits, self._draw), 1):
            self.git("checkout", "--quiet", "--force", commit)
            yield f"checkout {commit[:10]}"
            if number % STASH_EVERY == 0:
                yield from self._stash()
            if number % REBASE_EVERY == 0:
                yield from self._rebase(commit, previous)
            previous = commit

    def _stash(self) -> Iterator[str]:
        tracked = [self.clone / path for path in self.git("ls-files", "-z").split("\0") if path]
        for path in self._draw.sample(tracked, min(20, len(tracked))):
            if path.is_file() and not path.is_symlink():
                path.write_bytes(b"\n" + path.read_bytes() + b"\ndef added_by_hand(): pass\n")
        (self.clone / "untracked.py").write_text("def never_seen_by_git():\n    return 1\n")
        yield "edit 20 files"
        self.git("stash", "--include-untracked")
        yield "stash"
        self.git("stash", "pop")
        self.git("checkout", "--quiet", "--force", "HEAD")
        (self.clone / "untracked.py").unlink()
        yield "stash pop, undone"

    def _rebase(self, commit: str, onto: str) -> Iterator[str]:
        for number in range(3):
            (self.clone / f"topic_{number}.py").write_text(
                f"def topic_function_{number}(x):\n    return x + {number}\n"
            )
            self.git("add", f"topic_{number}.py")
            self.git("commit", "--quiet", "--no-verify", "-m", f"topic {number}")
        yield "three commits"
        self.git("rebase", "--quiet", "--onto", onto, commit)
        yield f"rebase onto {onto[:10]}"


def _as_people_walk(commits: list[str], draw: random.Random) -> list[str]:
    """Each commit once: in runs of neighbours, forwards or backwards, with jumps between."""
    runs, start = [], 0
    while start < len(commits):
        length = draw.randint(1, LONGEST_WALK)
        run = commits[start : start + length]
        runs.append(run[:: draw.choice((1, -1))])
        start += length
    draw.shuffle(runs)
    return [commit for run in runs for commit in run]


def walk(repo: Path, scratch: Path, commits: int, every: int, seed: int) -> dict[str, Any]:
    """The whole of it."""
    draw = random.Random(seed)
    root, cache, log = scratch / "clone", scratch / "cache", scratch / "server.log"
    history = History(repo, root, draw)
    chosen = history.commits(commits)
    history.git("checkout", "--quiet", "--force", chosen[-1])
    failures: list[str] = []
    seconds: list[tuple[float, int, str]] = []
    compared = 0
    with Server(root, cache, log) as server:
        first = until_true(server, cache)
        with Asker(server, QUESTIONS + questions_about(cache)) as asker:
            for number, step in enumerate(history.steps(chosen), 1):
                before, start = files_in(cache), time.monotonic()
                try:
                    until_true(server, cache)
                except TimeoutError as error:
                    failures.append(f"{step}: {error}")
                after = files_in(cache)
                changed = sum(before.get(path) != after.get(path) for path in {*before, *after})
                seconds.append((time.monotonic() - start, changed, step))
                if number % every == 0:
                    compared += 1
                    found = lies(root, cache, server.search_all)
                    failures += [f"{step}: {lie}" for lie in found + untidy(cache)]
        failures += asker.failures
    failures += trouble_in(log)
    slowest = sorted(seconds, reverse=True)[:3]
    return {
        "repository": repo.parent.name if repo.name == "repo" else repo.name,
        "seed": seed,
        "commits": len(chosen),
        "steps": len(seconds),
        "files_changed": sum(changed for _, changed, _ in seconds),
        "compared": compared,
        "first_index_s": round(first, 3),
        "true_s": spread([took for took, _, _ in seconds]),
        "slowest": [f"{took:.2f} s: {step}, {changed} files" for took, changed, step in slowest],
        "searches": len(asker.seconds),
        "answer_s": spread(asker.seconds),
        "failures": failures,
    }


def trouble_in(log: Path) -> list[str]:
    """What no server should ever say."""
    text = log.read_text("utf-8", "replace")
    return [f"in the log: {text[at : at + 1500]}"] if (at := text.find("Traceback")) >= 0 else []


def main() -> int:
    """Walk and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.history", description="real history, as JSON")
    parser.add_argument("repo", type=Path, help="a git repository; it is only read")
    parser.add_argument("--commits", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--every", type=int, default=10, help="steps from one comparison to the next")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meaning-history-") as scratch:
        return told(walk(options.repo.resolve(), Path(scratch), options.commits, options.every, options.seed))


if __name__ == "__main__":
    sys.exit(main())
