"""Several servers on one workspace: one writes, the others follow, and a killed one is replaced.

    python -m tests.bench.several [--servers N] [--rounds N] [--functions N] [--seed N]

The servers start together on a workspace that has no index. In each round a file is edited, and all of them have to
find the new function; now and then one is killed, most often the one that writes, and another takes its place; the
command line searches beside them. In the end the index equals a fresh one, and no embedding was computed twice.
Printed as one JSON object:

first_index_s   until the index of the whole tree is true
embedded        embeddings that the servers' logs tell of, beside those that are stored
found_s         from an edit until a server finds it: the first of them, and all the others
behind_s        how long the others took after the first
after_kill_s    from a kill in the midst of an edit until all who are left have found it
failures        what went wrong; the exit status is 1 if there is any
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from .client import Gone, Refused, Server, processes_of, run_command
from .history import trouble_in
from .kills import LAST_BREATH
from .made_up import questions, write_tree
from .truth import Asker, embeddings_in, index_folder, lies, spread, told, untidy, until_true, work_done_twice

SERVERS = 3
ROUNDS = 30
FUNCTIONS = 1_500
BESIDE_EVERY, KILL_EVERY = 5, 5
LATEST = 1.0
"""Seconds in which the others have to follow the first."""
PATIENCE = 30.0
POLL = 0.01
_EMBEDDED = re.compile(r"IndexReport\(.*?embedded=(\d+)")


class Several:
    """A workspace with several servers."""

    def __init__(self, scratch: Path, servers: int, functions: int, seed: int) -> None:
        self.root, self.cache, self._scratch = scratch / "tree", scratch / "cache", scratch
        write_tree(self.root, functions)
        self._draw = random.Random(seed)
        self._logs: list[Path] = []
        self.failures: list[str] = []
        self.first: list[float] = []
        self.others: list[float] = []
        self.behind: list[float] = []
        self.after_kill: list[float] = []
        self.kills = 0
        self._number = 0
        self.servers = [self._start() for _ in range(servers)]

    def _start(self) -> Server:
        log = self._scratch / f"server_{len(self._logs)}.log"
        self._logs.append(log)
        return Server(self.root, self.cache, log)

    def first_index(self) -> float:
        """Until all of them say that it is done."""
        start = time.monotonic()
        for server in self.servers:
            until_true(server, self.cache)
        return time.monotonic() - start

    # -- rounds

    def edit(self) -> str:
        """A function of a new name in some file; returns the name."""
        self._number += 1
        files = sorted(path for path in self.root.rglob("*.py") if path.is_file())
        name = f"brand_new_{self._number}_{self._draw.randrange(10**6)}"
        with self._draw.choice(files).open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef {name}(value):\n    return value * {self._number}\n")
        return name

    def followed(self) -> None:
        """An edit is found by all of them, at nearly the same time."""
        seconds = self._until_all_find(self.edit())
        self.first.append(seconds[0])
        self.others += seconds[1:]
        self.behind.append(seconds[-1] - seconds[0])
        if self.behind[-1] > LATEST:
            self.failures.append(
                f"edit {self._number}: found after {seconds[0]:.2f} s, by all after {seconds[-1]:.2f} s"
            )

    def killed(self) -> None:
        """One of them is killed while an edit is taken up; the others take it up all the same."""
        name, start = self.edit(), time.monotonic()
        time.sleep(self._draw.uniform(0, 0.3))
        victim = self.servers.pop(self._writer())
        victim.kill()
        self.kills += 1
        self._until_all_find(name)
        self.after_kill.append(time.monotonic() - start)
        self.servers.append(self._start())
        until_true(self.servers[-1], self.cache)

    def _writer(self) -> int:
        """Who holds the lock now, or else any of them."""
        for number, server in enumerate(self.servers):
            try:
                opened = [file.path for file in psutil.Process(server.process.pid).open_files()]
            except psutil.Error:
                continue
            if str(index_folder(self.cache) / "writer.lock") in opened:
                return number
        return self._draw.randrange(len(self.servers))

    def _until_all_find(self, name: str) -> list[float]:
        """When each of them found it, in order."""
        start = time.monotonic()
        found: list[float] = []
        threads = [threading.Thread(target=self._until_found, args=(each, name, start, found)) for each in self.servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(found) < len(self.servers):
            raise TimeoutError(f"{name}: found by {len(found)} of {len(self.servers)} servers in {PATIENCE} s")
        return sorted(found)

    def _until_found(self, server: Server, name: str, start: float, found: list[float]) -> None:
        while time.monotonic() - start < PATIENCE:
            try:
                if name in [hit.name for hit in server.search(name, limit=3)]:
                    found.append(time.monotonic() - start)
                    return
            except (Gone, Refused, TimeoutError) as error:
                self.failures.append(f"{name}: {type(error).__name__}: {error}")
                return
            time.sleep(POLL)

    def beside(self) -> None:
        """The command line finds what the servers have indexed, and embeds nothing itself."""
        name = self.edit()
        self._until_all_find(name)
        printed = run_command("search", name, str(self.root), "--json", "--cache-dir", str(self.cache))
        if name not in [hit["name"] for hit in json.loads(printed)["hits"]]:
            self.failures.append(f"the command line does not find {name}")

    # -- in the end

    def embedded(self) -> int:
        """What the logs tell of."""
        return sum(int(count) for log in self._logs for count in _EMBEDDED.findall(log.read_text("utf-8", "replace")))

    def end(self) -> None:
        """All is true, tidy, and gone."""
        until_true(self.servers[0], self.cache)
        for server in self.servers:
            self.failures += lies(self.root, self.cache, server.search_all)
        self.failures += untidy(self.cache)
        if twice := work_done_twice(self.cache):
            self.failures.append(f"{twice} embeddings were computed twice")
        for server in self.servers:
            if code := server.close():
                self.failures.append(f"a server ended with {code}")
            server.kill()
        end = time.monotonic() + LAST_BREATH
        while left := processes_of(self.cache):
            if time.monotonic() > end:
                self.failures.append(f"processes {left} are left")
                break
            time.sleep(POLL)
        for log in self._logs:
            self.failures += trouble_in(log)


def share(scratch: Path, servers: int, rounds: int, functions: int, seed: int) -> dict[str, Any]:
    """The whole of it."""
    bench = Several(scratch, servers, functions, seed)
    figures: dict[str, Any] = {}
    try:
        first = bench.first_index()
        with Asker(bench.servers[0], questions(20)) as asker:
            for number in range(rounds):
                bench.beside() if number % BESIDE_EVERY == 0 else bench.followed()
        bench.failures += asker.failures
        for _ in range(rounds // KILL_EVERY):
            bench.killed()
        figures = {"first_index_s": round(first, 3), "answer_s": spread(asker.seconds)}
        bench.end()
        figures["embedded"] = {"told": bench.embedded(), "stored": embeddings_in(bench.cache)}
    except (Gone, Refused, TimeoutError, RuntimeError) as error:
        bench.failures.append(f"{type(error).__name__}: {error}")
    finally:
        for server in bench.servers:
            server.kill()
    return {
        "seed": seed,
        "servers": servers,
        "kills": bench.kills,
        **figures,
        "found_s": {"first": spread(bench.first), "others": spread(bench.others)},
        "behind_s": spread(bench.behind),
        "after_kill_s": spread(bench.after_kill),
        "failures": bench.failures,
    }


def main() -> int:
    """Share and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.several", description="several servers, as JSON")
    parser.add_argument("--servers", type=int, default=SERVERS, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--functions", type=int, default=FUNCTIONS, help="of the made-up tree")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meaning-several-") as scratch:
        return told(share(Path(scratch), options.servers, options.rounds, options.functions, options.seed))


if __name__ == "__main__":
    sys.exit(main())
