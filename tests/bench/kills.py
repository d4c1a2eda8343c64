"""kill -9 at any moment, and what is there afterwards.

    python -m tests.bench.kills [--kills N] [--functions N] [--seed N]

A server (its limits lowered, see `tests.bench.lowered`) is killed while it starts, builds its first index, follows
edits, or saves vectors; so is a worker of it, and the command line. After each kill: nothing that was committed is
lost, no process is left, the next start answers soon, and each hit is true for its file. After a few kills in a row
the index has to become true, equal to one that is built from nothing, with no file left behind. Printed as one
JSON object:

kills           how many, by what they aimed at
first_answer_s  from the start of a server after a kill to its first answer, the start of Python included
true_s          from the start of a server to an index that is true
failures        what went wrong; the exit status is 1 if there is any
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from .client import HOUSE, LOWERED, Gone, Refused, Server, environment, processes_of
from .history import trouble_in
from .made_up import FUNCTIONS_PER_FILE, questions, write_tree
from .truth import (
    DATABASE,
    checked_search,
    files_in,
    files_on_disk,
    index_folder,
    lies,
    reading,
    spread,
    told,
    untidy,
    until_true,
)

FUNCTIONS = 1_500
MOST_IN_A_ROW = 5
"""Kills before the index is given the time to become true."""
SHARE_EDITED = 0.4
"""Of the files, in one edit: enough for vectors to be saved."""
FROM_NOTHING = 0.2
"""Share of the rounds that begin without an index."""
LONGEST_WAIT = 1.2
"""Seconds within which a moment is drawn: about what a first index takes."""
SAVE_WAIT = 4.0
"""Seconds in which a save is waited for."""
SAVING = 0.02
"""Seconds within which a moment of a save is drawn."""
LAST_BREATH = 10.0
"""Seconds in which a worker has to end after its server; it may be at a file."""
ANSWER_PATIENCE = 30.0


class Kills:
    """A workspace, its index, and the one who kills."""

    def __init__(self, scratch: Path, functions: int, seed: int, module: str = LOWERED) -> None:
        self.root, self.cache, self.log = scratch / "tree", scratch / "cache", scratch / "server.log"
        write_tree(self.root, functions)
        self._draw = random.Random(seed)
        self._module = module
        self._edits = 0
        self.questions = questions(30)
        self.kills: Counter[str] = Counter()
        self.first_answers: list[float] = []
        self.settled: list[float] = []
        self.failures: list[str] = []
        self._aims: dict[str, Callable[[], None]] = {
            "start": self.at_start,
            "work": self.at_work,
            "edit": self.at_an_edit,
            "save": self.at_a_save,
            "worker": self.a_worker,
            "command": self.the_command,
        }

    # -- a round

    def round(self, kills: int) -> None:
        """Change the files, kill so often, and let the index become true."""
        if self._draw.random() < FROM_NOTHING:
            shutil.rmtree(self.cache, ignore_errors=True)
        self.edit()
        for _ in range(kills):
            aim = self._draw.choice(list(self._aims))
            try:
                self._aims[aim]()
            except (Gone, Refused, TimeoutError, OSError, ValueError) as error:
                self.fail(aim, f"{type(error).__name__}: {error}")
            self.kills[aim] += 1
        self.settle()

    def settle(self) -> None:
        """The index has to become true, and to be as if nothing had happened."""
        try:
            with self.server() as server:
                self.first_answer(server)
                until_true(server, self.cache)
                self.settled.append(time.monotonic() - server.started)
                found = lies(self.root, self.cache, server.search_all, graph=True)
                found += untidy(self.cache)
            self.no_process_is_left("after its end")
        except (Gone, Refused, TimeoutError, RuntimeError) as error:
            found = [f"{type(error).__name__}: {error}"]
        for lie in found:
            self.fail("in the end", lie)
        if (index_folder(self.cache) / f"{DATABASE}.damaged").exists():
            self.fail("in the end", "a kill damaged the database")
        for trouble in trouble_in(self.log):
            self.fail("in the end", trouble)
        self.log.write_bytes(b"")

    def fail(self, where: str, what: str) -> None:
        """Remember a failure, and tell of it at once."""
        self.failures.append(f"after {self.kills.total()} kills, {where}: {what}")
        print(self.failures[-1], file=sys.stderr, flush=True)

    # -- moments

    def at_start(self) -> None:
        """Before it could answer, or shortly after."""
        server = self.server()
        self.wait(LONGEST_WAIT)
        self.kill(server)

    def at_work(self) -> None:
        """After the first answer, when it takes up what has changed."""
        server = self.server()
        self.first_answer(server)
        self.wait(LONGEST_WAIT / 2)
        self.kill(server)

    def at_an_edit(self) -> None:
        """While it follows changes that it was told of."""
        server = self.server()
        self.first_answer(server)
        until_true(server, self.cache)
        self.edit()
        self.wait(LONGEST_WAIT / 2)
        self.kill(server)

    def at_a_save(self) -> None:
        """While it saves vectors, or just after."""
        self.edit()
        server = self.server()
        before, end = self._vector_files(), time.monotonic() + SAVE_WAIT
        while self._vector_files() <= before and time.monotonic() < end:
            time.sleep(0.0002)
        if time.monotonic() >= end:
            self.kills["save, but there was none"] += 1
            self.kills["save"] -= 1
        self.wait(SAVING)
        self.kill(server)

    def _vector_files(self) -> set[str]:
        try:
            return {file.name for file in index_folder(self.cache).glob("vectors*")}
        except (OSError, ValueError):
            return set()

    def a_worker(self) -> None:
        """A worker, whose server has to go on without it."""
        self.edit()
        with self.server() as server:
            end = time.monotonic() + LONGEST_WAIT
            while not (workers := _workers(server)) and time.monotonic() < end:
                time.sleep(0.001)
            self.wait(0.3)
            for pid in self._draw.sample(workers, min(1, len(workers))):
                self._kill_worker(pid)
            self.first_answer(server)
            until_true(server, self.cache)
        self.no_process_is_left("after its end")

    def _kill_worker(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self.kills["worker, but it was done"] += 1
            self.kills["worker"] -= 1

    def the_command(self) -> None:
        """`index`, which may run beside nothing else."""
        command = [sys.executable, "-m", self._module, "index", str(self.root)]
        process = subprocess.Popen(
            command, cwd=HOUSE, env=environment(self.cache), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.wait(LONGEST_WAIT)
        kept = self.kept()
        process.kill()
        process.wait()
        self.afterwards(kept)

    # -- deeds

    def server(self) -> Server:
        """A new one."""
        return Server(self.root, self.cache, self.log, self._module)

    def wait(self, longest: float) -> None:
        """Until the moment comes."""
        time.sleep(self._draw.uniform(0, longest))

    def first_answer(self, server: Server) -> None:
        """Ask at once; the answer has to be true."""
        _, untrue = checked_search(server, self._draw.choice(self.questions), ANSWER_PATIENCE)
        self.first_answers.append(time.monotonic() - server.started)
        for lie in untrue:
            self.fail("first answer", lie)

    def kill(self, server: Server) -> None:
        """End it, and see what is there."""
        kept = self.kept()
        server.kill()
        self.afterwards(kept)

    def edit(self) -> None:
        """Change, move, copy and delete files."""
        files = sorted(path for path in self.root.rglob("*.*") if path.is_file())
        for path in self._draw.sample(files, int(len(files) * SHARE_EDITED)):
            self._edits += 1
            self._draw.choice(_EDITS)(path, self._edits)

    # -- what has to hold after a kill

    def kept(self) -> tuple[dict[str, bytes], set[bytes]]:
        """What is committed: files, and the keys of embeddings."""
        return files_in(self.cache), self._embedded()

    def _embedded(self) -> set[bytes]:
        try:
            with reading(self.cache) as database:
                return {key for (key,) in database.execute("SELECT key FROM embeddings")}
        except (OSError, ValueError, sqlite3.OperationalError):
            return set()

    def afterwards(self, kept: tuple[dict[str, bytes], set[bytes]]) -> None:
        """What was committed is there, and nobody is left."""
        files, keys = kept
        there, wanted = files_in(self.cache), files_on_disk(self.root)
        lost = [path for path, digest in files.items() if wanted.get(path) == digest != there.get(path)]
        if lost:
            self.fail("kill", f"{len(lost)} files are lost: {lost[:3]}")
        if gone := keys - self._embedded():
            self.fail("kill", f"{len(gone)} embeddings are lost")
        self.no_process_is_left("after the kill")

    def no_process_is_left(self, when: str) -> None:
        """Workers end with their parent."""
        end = time.monotonic() + LAST_BREATH
        while left := processes_of(self.cache):
            if time.monotonic() > end:
                self.fail(when, f"processes {left} are left")
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.005)


def _workers(server: Server) -> list[int]:
    try:
        children = psutil.Process(server.process.pid).children(recursive=True)
        return [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
    except psutil.Error:
        return []


# -- edits


def _renew(path: Path, number: int) -> None:
    """Other functions, in another file."""
    with tempfile.TemporaryDirectory() as scratch:
        write_tree(Path(scratch), FUNCTIONS_PER_FILE, seed=number)
        [made] = Path(scratch).rglob("*.*")
        path.with_name(f"new_{number}.py").write_bytes(made.read_bytes())
    path.unlink()


def _lengthen(path: Path, number: int) -> None:
    text = path.read_text("utf-8")
    path.write_text(f"{text}\n{text[: len(text) // 3]}\nedit_{number}\n", "utf-8")


def _shorten(path: Path, _number: int) -> None:
    text = path.read_text("utf-8")
    path.write_text(text[: len(text) * 2 // 3], "utf-8")


def _shift(path: Path, number: int) -> None:
    path.write_text("\n" * (1 + number % 3) + path.read_text("utf-8"), "utf-8")


def _move(path: Path, number: int) -> None:
    path.rename(path.with_name(f"moved_{number}{path.suffix}"))


def _copy(path: Path, number: int) -> None:
    shutil.copy(path, path.with_name(f"copy_{number}{path.suffix}"))


def _delete(path: Path, _number: int) -> None:
    path.unlink()


_EDITS = (_renew, _renew, _lengthen, _shorten, _shift, _move, _copy, _delete)


def kill_often(scratch: Path, kills: int, functions: int, seed: int, module: str = LOWERED) -> dict[str, Any]:
    """The whole of it."""
    bench = Kills(scratch, functions, seed, module)
    draw = random.Random(seed)
    rounds, left = 0, kills
    while left > 0:
        in_a_row = min(left, draw.randint(1, MOST_IN_A_ROW))
        bench.round(in_a_row)
        rounds, left = rounds + 1, left - in_a_row
        print(f"{kills - left} kills, {len(bench.failures)} failures", file=sys.stderr, flush=True)
    return {
        "seed": seed,
        "functions": functions,
        "kills": dict(bench.kills),
        "first_answer_s": spread(bench.first_answers),
        "true_s": spread(bench.settled),
        "compared": rounds,
        "failures": bench.failures,
    }


def main() -> int:
    """Kill and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kills", description="kill -9 at any moment, as JSON")
    parser.add_argument("--kills", type=int, default=300, help="(default: %(default)s)")
    parser.add_argument("--functions", type=int, default=FUNCTIONS, help="of the made-up tree")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meaning-kills-") as scratch:
        return told(kill_often(Path(scratch), options.kills, options.functions, options.seed))


if __name__ == "__main__":
    sys.exit(main())
