"""Damage on purpose, full disks and disks that refuse: found out or harmless, told once, and healed.

    python -m tests.bench.disk [--damages N] [--functions N] [--seed N]

The files of an index are truncated, flipped, emptied, deleted, replaced by older ones and by folders, while no server
runs and while one does. Whatever was done, hits are true, the index becomes true again, nothing is told twice, and
nothing ends in a traceback. Then the cache lies on a disk of its own that is full, or that is read-only: searches go
on from what is there, and the server is whole again soon after the disk is, though no file has changed. (Disks need
the right to mount; without it they are named under `skipped`.) Printed as one JSON object:

true_s       from a damage to an index that is true
failures     what went wrong; the exit status is 1 if there is any

Not tried: to truncate a file that a running server has mapped, which on every system ends who reads it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from .client import LOWERED, Gone, Refused, Server
from .made_up import questions, write_tree
from .truth import DATABASE, checked_search, files_in, index_folder, lies, spread, told, untidy, until_true

FUNCTIONS = 600
HEALED_WITHIN = 60.0
"""Seconds until an index has to be true after anything."""
ASKED = 8
"""Questions while it heals."""
MOST_FLIPPED = 64
LOCK = "writer.lock"
BALLAST = "ballast"

Damage: TypeAlias = Callable[[Path, Path, random.Random], None]
"""What is done to a file; the second path is the file as it once was."""


def truncate(file: Path, _old: Path, draw: random.Random) -> None:
    with file.open("rb+") as data:
        data.truncate(draw.randrange(max(1, file.stat().st_size)))


def flip(file: Path, _old: Path, draw: random.Random) -> None:
    """A few bytes anywhere."""
    size = file.stat().st_size
    with file.open("rb+") as data:
        for _ in range(draw.randint(1, MOST_FLIPPED)):
            place = draw.randrange(max(1, size))
            data.seek(place)
            byte = data.read(1) or b"\0"
            data.seek(place)
            data.write(bytes([byte[0] ^ draw.randint(1, 255)]))


def overwrite(file: Path, _old: Path, draw: random.Random) -> None:
    """A run of nonsense anywhere."""
    with file.open("rb+") as data:
        data.seek(draw.randrange(max(1, file.stat().st_size)))
        data.write(draw.randbytes(draw.randint(100, 20_000)))


def empty(file: Path, _old: Path, _draw: random.Random) -> None:
    file.write_bytes(b"")


def delete(file: Path, _old: Path, _draw: random.Random) -> None:
    file.unlink()


def put_back(file: Path, old: Path, _draw: random.Random) -> None:
    """An older generation, as by a backup."""
    scratch = file.with_name("restored")
    shutil.copy(old, scratch)
    scratch.chmod(0o600)
    scratch.replace(file)


def folder(file: Path, _old: Path, _draw: random.Random) -> None:
    """Something else of the same name."""
    file.unlink()
    (file / "inside").mkdir(parents=True)


DAMAGES: tuple[Damage, ...] = (truncate, flip, flip, flip, overwrite, empty, delete, put_back, folder)
_FILES = {
    "database": DATABASE,
    "vectors": "vectors-*",
    "postings": "postings-*",
    "log": f"{DATABASE}-wal",
    "lock": LOCK,
}
TARGETS = ("database", "database", "vectors", "vectors", "postings", "log", "lock", "everything")
MAPPED = ("vectors", "postings", "log")
"""What a running server has mapped, itself or by what belongs to it."""


class Disk:
    """A workspace and an index of it that is damaged again and again."""

    def __init__(self, scratch: Path, functions: int, seed: int) -> None:
        self.root, self.cache, self.log = scratch / "tree", scratch / "cache", scratch / "server.log"
        self._sound, self._old = scratch / "sound", scratch / "old"
        self.draw = random.Random(seed)
        self.questions = questions(30)
        self.healed: list[float] = []
        self.trials: Counter[str] = Counter()
        self.failures: list[str] = []
        self._edits = 0
        write_tree(self.root, functions)
        self._build(self._old)
        for file in sorted(self.root.rglob("*.*"))[::2]:
            file.write_text(file.read_text("utf-8").replace("limit", "most").replace("log", "journal"), "utf-8")
        self._build(self._sound)

    def _build(self, kept: Path) -> None:
        """An index as a killed server leaves it: with a log beside the database."""
        with Server(self.root, self.cache, self.log, LOWERED) as server:
            until_true(server, self.cache)
            self.edit()
            until_true(server, self.cache)
            server.kill()
        shutil.copytree(self.cache, kept)

    def edit(self) -> None:
        """One file more that has to be found."""
        self._edits += 1
        (self.root / f"fresh_{self._edits}.py").write_text(f"def fresh_{self._edits}(x):\n    return x\n", "utf-8")

    # -- damage

    def trial(self, damage: Damage, target: str, running: bool) -> None:
        """Damage, and see it heal."""
        name = f"{damage.__name__} {target}{', running' if running else ''}"
        self.trials[name] += 1
        shutil.rmtree(self.cache)
        shutil.copytree(self._sound, self.cache)
        self.log.write_bytes(b"")
        try:
            if running:
                with Server(self.root, self.cache, self.log, LOWERED) as server:
                    until_true(server, self.cache)
                    self._damage(damage, target)
                    self.edit()
                    self._heals(name, server, target)
            else:
                self._damage(damage, target)
                with Server(self.root, self.cache, self.log, LOWERED) as server:
                    self._heals(name, server, target)
        except (Gone, Refused, TimeoutError, RuntimeError) as error:
            self.fail(name, f"{type(error).__name__}: {error}")

    def _damage(self, damage: Damage, target: str) -> None:
        there = index_folder(self.cache)
        old = index_folder(self._old)
        if target == "everything":
            shutil.rmtree(there)
            return
        if target == "database":  # all of which is in its log, else, and damage to it harmless
            with closing(sqlite3.connect(there / DATABASE)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pattern = _FILES[target]
        for file in there.glob(pattern):
            damage(file, next(old.glob(pattern), file), self.draw)

    def _heals(self, name: str, server: Server, target: str) -> None:
        start = time.monotonic()
        for query in self.draw.sample(self.questions, ASKED):
            self._ask(name, server, query)
        blocked = self._in_the_way()
        if blocked:  # nothing can be done about it but to tell
            self._until_told(name, server)
            shutil.rmtree(blocked)
        try:
            until_true(server, self.cache, HEALED_WITHIN)
        except TimeoutError as error:
            self.fail(name, f"{error}; log: {self._log_text()[-800:]}")
            return
        self.healed.append(time.monotonic() - start)
        for lie in lies(self.root, self.cache, server.search_all, graph=True):
            self.fail(name, lie)
        if not blocked and not any(file.is_dir() for file in index_folder(self.cache).iterdir()):
            for file in untidy(self.cache):
                self.fail(name, file)
        self.told_once(name, server)

    def _ask(self, name: str, server: Server, query: str) -> None:
        """An answer is true; a refusal is one line that names the index."""
        try:
            _, untrue = checked_search(server, query, HEALED_WITHIN)
        except Refused as error:
            if str(self.cache) not in str(error) or "\n" in str(error):
                self.fail(name, f"a search is refused: {error}")
            return
        for lie in untrue:
            self.fail(name, lie)

    def _in_the_way(self) -> Path | None:
        there = index_folder(self.cache) if self.cache.exists() and any(self.cache.iterdir()) else self.cache
        return next((each for name in (DATABASE, f"{DATABASE}-wal", LOCK) if (each := there / name).is_dir()), None)

    def _until_told(self, name: str, server: Server) -> None:
        end = time.monotonic() + HEALED_WITHIN
        while not (problem := server.status()["problem"]):
            if time.monotonic() > end:
                self.fail(name, "a folder in the way is not told")
                return
            time.sleep(0.05)
        if str(self.cache) not in problem:
            self.fail(name, f"a folder in the way is told as {problem!r}")

    # -- disks

    def full_from_the_start(self, mount: Path) -> None:
        """The first index does not fit."""
        with _disk(mount, self._megabytes(0.5)), self._serving("full from the start", mount) as server:
            self._until_problem("full from the start", server, mount)
            self._ask_all("full from the start", server)
            _remount(mount, f"size={self._megabytes(20)}m")
            until_true(server, mount, HEALED_WITHIN)
            self._compare("full from the start", server, mount)

    def full_later(self, mount: Path) -> None:
        """Somebody else fills the disk, and goes away."""
        name = "full later"
        with _disk(mount, self._megabytes(20)), self._serving(name, mount) as server:
            until_true(server, mount)
            _fill(mount)
            for file in sorted(self.root.rglob("*.py"))[:10]:
                file.write_text(file.read_text("utf-8").replace("record", "entry") + "\n# changed\n", "utf-8")
            self._until_problem(name, server, mount)
            self._ask_all(name, server)
            (mount / BALLAST).unlink()
            until_true(server, mount, HEALED_WITHIN)
            self._compare(name, server, mount)

    def read_only(self, mount: Path) -> None:
        """A disk that can be read, and later written."""
        name = "read-only"
        with _disk(mount, self._megabytes(20)):
            shutil.copytree(self._sound, mount, dirs_exist_ok=True)
            before = len(files_in(mount))
            self.edit()
            _remount(mount, "ro")
            with self._serving(name, mount) as server:
                self._until_problem(name, server, mount)
                self._ask_all(name, server)
                if not before or not server.search(self.questions[0]):
                    self.fail(name, "nothing is found")
                _remount(mount, "rw")
                until_true(server, mount, HEALED_WITHIN)
                self._compare(name, server, mount)

    @contextmanager
    def _serving(self, name: str, cache: Path) -> Iterator[Server]:
        self.trials[name] += 1
        self.log.write_bytes(b"")
        try:
            with Server(self.root, cache, self.log, LOWERED) as server:
                yield server
                self.told_once(name, server)
        except (Gone, Refused, TimeoutError, RuntimeError) as error:
            self.fail(name, f"{type(error).__name__}: {error}; log: {self._log_text()[-800:]}")

    def _megabytes(self, share: float) -> int:
        size = sum(file.stat().st_size for file in self._sound.rglob("*") if file.is_file())
        return max(1, int(share * size / 1e6))

    def _until_problem(self, name: str, server: Server, cache: Path) -> None:
        end = time.monotonic() + HEALED_WITHIN
        while not (problem := server.status()["problem"]):
            if time.monotonic() > end:
                raise TimeoutError("the trouble is not told")
            time.sleep(0.02)
        if str(cache) not in problem:
            self.fail(name, f"told without a place: {problem!r}")

    def _ask_all(self, name: str, server: Server) -> None:
        for query in self.questions:
            _, untrue = checked_search(server, query, HEALED_WITHIN)
            for lie in untrue:
                self.fail(name, lie)

    def _compare(self, name: str, server: Server, cache: Path) -> None:
        for lie in lies(self.root, cache, server.search_all, graph=True):
            self.fail(name, lie)

    # -- what is said

    def told_once(self, name: str, server: Server) -> None:
        """No message comes twice, and no traceback ever."""
        lines = self._log_text().splitlines()
        said = Counter(server.shown()) + Counter(line for line in lines if line.startswith(("WARNING", "ERROR")))
        for message, times in said.items():
            if times > 1:
                self.fail(name, f"told {times} times: {message}")
        if "Traceback" in self._log_text():
            self.fail(name, f"a traceback: {self._log_text()[-1500:]}")

    def _log_text(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def fail(self, name: str, what: str) -> None:
        """Remember a failure, and tell of it at once."""
        self.failures.append(f"{self.trials.total()}: {name}: {what}")
        print(self.failures[-1], file=sys.stderr, flush=True)


@contextmanager
def _disk(mount: Path, megabytes: int) -> Iterator[None]:
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(mount)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def _remount(mount: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(mount)], check=True)


def _fill(mount: Path) -> None:
    with (mount / BALLAST).open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(1 << 12))


def may_mount(mount: Path) -> bool:
    """Whether this user may make disks."""
    try:
        with _disk(mount, 1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def damage_often(scratch: Path, damages: int, functions: int, seed: int) -> dict[str, Any]:
    """The whole of it."""
    bench = Disk(scratch, functions, seed)
    for number in range(damages):
        bench.draw = random.Random(f"{seed} {number}")
        running = number % 3 == 2
        target = bench.draw.choice([each for each in TARGETS if not running or each not in MAPPED])
        bench.trial(delete if target == "everything" else bench.draw.choice(DAMAGES), target, running)
        print(f"{number + 1} damages, {len(bench.failures)} failures", file=sys.stderr, flush=True)
    skipped = []
    mount = scratch / "disk"
    if may_mount(mount):
        bench.full_from_the_start(mount)
        bench.full_later(mount)
        bench.read_only(mount)
    else:
        skipped.append("full and read-only disks: this user may not mount any")
    return {
        "seed": seed,
        "trials": dict(sorted(bench.trials.items())),
        "true_s": spread(bench.healed),
        "skipped": skipped,
        "failures": bench.failures,
    }


def main() -> int:
    """Damage and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.disk", description="damage on purpose, as JSON")
    parser.add_argument("--damages", type=int, default=60, help="(default: %(default)s)")
    parser.add_argument("--functions", type=int, default=FUNCTIONS, help="of the made-up tree")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meaning-disk-") as scratch:
        return told(damage_often(Path(scratch), options.damages, options.functions, options.seed))


if __name__ == "__main__":
    sys.exit(main())
