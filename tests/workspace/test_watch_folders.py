"""Linux: a watch for each folder of the walk, none for any other, and what happens when there are not enough."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import random
import shutil
import sys
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from server.settings import Settings
from server.workspace import inotify, watch
from server.workspace.discover import discover
from server.workspace.watch import ChangeSet, Watcher
from server.workspace.watch_folders import FolderWatches

from .trees import repository, write
from .watching import PATIENCE, Seen, eventually, watched, watching

AT_FDCWD, RENAME_EXCHANGE = -100, 2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def test_what_is_left_out_costs_no_watch(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {
            ".gitignore": "out/\n",
            "src/pkg/a.py": "",
            "node_modules/lib/dist/index.js": "",
            "out/deep/x.py": "",
            "target/debug/x.rs": "",
            "Cargo.toml": "",
            ".git/objects/aa/bb": "",
            ".git/info/exclude": "",
        },
    )
    with watching(tmp_path):
        assert watched(tmp_path) == [".", ".git", ".git/info", "src", "src/pkg"]
    assert watched(tmp_path) == []


def test_two_folders_that_are_exchanged_are_both_watched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, {"one/a/x.py": "", "two/b/x.py": ""})
    with watching(root) as seen:
        exchange(root / "one", root / "two")
        seen.fence(root)
        assert watched(root) == [".", "one", "one/b", "two", "two/a"]
        write(root, {"one/b/x.py": "1", "two/a/x.py": "1"})
        seen.until_changed("one/b/x.py", "two/a/x.py")


def exchange(one: Path, other: Path) -> None:
    """Each has the other's name at once."""
    exchanged = ctypes.CDLL(None).renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    if exchanged:
        pytest.skip("this file system exchanges nothing")


def test_a_folder_too_deep_for_its_path_is_no_gap(tmp_path: Path) -> None:
    above = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=above)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = inner
    os.close(above)
    with watching(tmp_path) as seen:
        seen.fence(tmp_path)
        assert seen.modes == []


def test_watches_come_and_go_with_the_folders_and_the_rules(tmp_path: Path) -> None:
    write(tmp_path, {"src/a.py": "", "gen/deep/b.py": "", ".ignore": "gen\n"})
    with watching(tmp_path) as seen:
        assert watched(tmp_path) == [".", "src"]
        write(tmp_path, {".ignore": "src\n", "new/x/a.py": ""})
        eventually(lambda: watched(tmp_path) == [".", "gen", "gen/deep", "new", "new/x"])
        (tmp_path / "gen").rename(tmp_path / "src/gen")
        (tmp_path / "new").rename(tmp_path / "newer")
        eventually(lambda: watched(tmp_path) == [".", "newer", "newer/x"])
        write(tmp_path, {"newer/CMakeCache.txt": ""})
        eventually(lambda: watched(tmp_path) == [".", "newer"])
        seen.fence(tmp_path)


def test_a_folder_that_is_moved_away_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    write(root, {"pkg/deep/x.py": "1"})
    with watching(root) as seen:
        (root / "pkg").rename(outside / "pkg")
        seen.until_changed("pkg")
        (outside / "pkg/deep/x.py").write_text("2")
        assert seen.fence(root) == set()
        assert watched(outside) == []


def changes(watches: FolderWatches) -> set[str]:
    """All that is heard until now."""
    heard: set[str] = set()
    while now := watches.wait(0):
        heard |= now
    return heard


@pytest.fixture
def watches(tmp_path: Path) -> Iterator[FolderWatches]:
    """The watches of a workspace folder, which hear nothing before they are asked to."""
    write(tmp_path, {"a/deep/x.py": "1"})
    watches = FolderWatches(tmp_path, Settings(), lambda: False)
    yield watches
    watches.close()


def test_a_folder_that_is_found_before_its_move_is_heard_stays_watched(watches: FolderWatches, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "a").rename(tmp_path / "new/b")
    assert changes(watches) == {"a", "new"}
    write(tmp_path, {"new/b/deep/x.py": "2", "new/b/y.py": "2"})
    assert changes(watches) == {"new/b/deep/x.py", "new/b/y.py"}


def test_nothing_slips_in_between_the_watch_and_the_look(
    watches: FolderWatches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def slow(place: str) -> contextlib.nullcontext[list[os.DirEntry[str]]]:
        with scandir(place) as entries:
            listed = list(entries)
        if place == str(tmp_path / "new"):
            write(tmp_path, {"new/late/x.py": "1"})
        return contextlib.nullcontext(listed)

    (tmp_path / "new").mkdir()
    monkeypatch.setattr(os, "scandir", slow)
    changes(watches)
    write(tmp_path, {"new/late/x.py": "2"})
    assert changes(watches) == {"new/late/x.py"}


def test_what_is_written_through_a_memory_map_is_heard(watches: FolderWatches, tmp_path: Path) -> None:
    with (tmp_path / "a/deep/x.py").open("r+b") as file, mmap.mmap(file.fileno(), 1) as memory:
        changes(watches)
        memory[0:1] = b"2"
    assert changes(watches) == {"a/deep/x.py"}


def test_a_build_that_is_configured_again_changes_nothing(watches: FolderWatches, tmp_path: Path) -> None:
    write(tmp_path, {"a/CMakeCache.txt": "1"})
    assert changes(watches) == {"a", "a/CMakeCache.txt"}
    watches.settle()
    write(tmp_path, {"a/CMakeCache.txt": "2", "a/y.py": "2", "a/deep/x.py": "2"})
    assert changes(watches) == set()


def test_a_cache_tag_counts_by_what_it_holds(watches: FolderWatches, tmp_path: Path) -> None:
    write(tmp_path, {"a/CACHEDIR.TAG": ""})
    assert "a" in changes(watches)
    watches.settle()
    for content in ("Signature: 8a477f597d28d172789f06886806bc55", "no more"):
        write(tmp_path, {"a/CACHEDIR.TAG": content})
        assert "a" in changes(watches)
        watches.settle()
    write(tmp_path, {"a/deep/x.py": "2"})
    assert changes(watches) == {"a/deep/x.py"}


def test_a_repository_around_the_workspace_folder_has_a_say(tmp_path: Path) -> None:
    root = repository(tmp_path, {"app/src/a.py": "1", "app/gen/b.py": "1"}) / "app"
    with watching(root) as seen:
        write(tmp_path, {".gitignore": "/app/gen\n"})
        seen.until_changed("")
        seen.fence(root)
        write(root, {"gen/b.py": "2"})
        write(tmp_path, {"package.json": "2"})
        assert seen.fence(root) == set()


def test_a_folder_that_may_be_read_at_last(tmp_path: Path) -> None:
    write(tmp_path, {"closed/a.py": "1"})
    (tmp_path / "closed").chmod(0)
    if os.access(tmp_path / "closed", os.R_OK):
        pytest.skip("root may read all")
    with watching(tmp_path) as seen:
        (tmp_path / "closed").chmod(0o755)
        seen.until_changed("closed")
        write(tmp_path, {"closed/a.py": "2"})
        seen.until_changed("closed/a.py")


def test_a_saved_sign_plans_nothing_anew(tmp_path: Path) -> None:
    """An editor saves package.json often; that it is there says all."""
    write(tmp_path, {"package.json": "1", "src/a.py": "1"})
    with watching(tmp_path) as seen:
        write(tmp_path, {"package.json": "2"})
        write(tmp_path, {"package.json.new": "3"})
        (tmp_path / "package.json.new").replace(tmp_path / "package.json")
        assert "" not in seen.fence(tmp_path)


def test_lost_events_make_everything_suspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": "", "b.py": ""})
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    seen, free = Seen(), threading.Event()

    def take(change: ChangeSet) -> None:
        seen.take(change)
        free.wait(PATIENCE)

    watcher = Watcher(tmp_path, Settings(), take)
    try:
        seen.until_changed("")  # Whose thread now waits in `take`.
        for n in range(most):
            os.utime(tmp_path / ("a.py" if n % 2 else "b.py"))
        write(tmp_path, {"lost/deep/c.py": ""})
        free.set()
        seen.until_changed("")
        eventually(lambda: watched(tmp_path) == [".", "lost", "lost/deep"])
    finally:
        watcher.close(PATIENCE)


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RESCAN_SECONDS", 0.1)


@pytest.mark.usefixtures("_often")
def test_without_enough_watches_everything_is_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "user_watches", lambda: 8)
    write(tmp_path, {f"p{n}/q/a.py": "" for n in range(9)})
    with watching(tmp_path) as seen:
        assert len(watched(tmp_path)) == 4
        assert "." in watched(tmp_path)
        for _ in range(3):
            seen.until_changed("")
        assert [mode for mode, _ in seen.modes] == ["partly watching"]
        assert "fs.inotify.max_user_watches" in str(seen.modes[0][1])


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSYS])
def test_without_any_watch_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(self: object) -> None:
        raise OSError(number, "no more")

    monkeypatch.setattr(inotify.Inotify, "__init__", refuse)
    with watching(tmp_path) as seen:
        for _ in range(3):
            seen.until_changed("")
        assert seen.modes == [("rescanning", "no more")]


@pytest.fixture
def timeouts(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """How long the watcher was ready to sleep each time."""
    found: list[float | None] = []
    read = inotify.Inotify.read

    def noted(self: inotify.Inotify, timeout: float | None) -> Iterator[tuple[int, int, str]]:
        found.append(timeout)
        return read(self, timeout)

    monkeypatch.setattr(inotify.Inotify, "read", noted)
    return found


@pytest.mark.usefixtures("_often")
def test_a_shared_file_system_is_watched_and_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeouts: list[float | None]
) -> None:
    monkeypatch.setattr(watch, "shared_mount", lambda root: ("/mnt/c", "9p"))
    with watching(tmp_path) as seen:
        for _ in range(3):
            seen.until_changed("")
        assert len(timeouts) < 30
        assert seen.modes == [("partly watching", "/mnt/c (9p) does not tell of changes that are made elsewhere")]
        write(tmp_path, {"a.py": ""})
        seen.until_changed("a.py")


def test_nobody_wakes_when_nothing_happens(tmp_path: Path, timeouts: list[float | None]) -> None:
    with watching(tmp_path):
        eventually(lambda: timeouts[-1:] == [None])


# -- chance


@pytest.mark.parametrize("seed", range(12))
def test_who_looks_where_the_sets_say_knows_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever happens in whatever order, and however fast."""
    monkeypatch.setattr(watch, "RETURN_SECONDS", 0.01)
    chance = random.Random(seed)
    root = repository(tmp_path / "above/root", {})
    (tmp_path / "outside").mkdir()
    known: dict[str, int] = {}
    lock = threading.Lock()

    def look(change: ChangeSet) -> None:
        with lock:
            for path in tuple(known):
                around = {"", path, *(str(above) for above in Path(path).parents)}
                if not change.paths.isdisjoint(around):
                    del known[path]
            known.update(stamps(root, change.paths))

    watcher = Watcher(root, Settings(), look)
    try:
        for _ in range(6):
            for _ in range(chance.randrange(60)):
                happen(chance, root, tmp_path / "outside")
            eventually(lambda: known == stamps(root) and set(watched(root)) == folders(root))
    finally:
        watcher.close(PATIENCE)


def stamps(root: Path, within: Collection[str] = ("",)) -> dict[str, int]:
    """The files that the walk finds now, none if the folder is gone."""
    with contextlib.suppress(OSError):
        return {file.path: file.ctime_ns for file in discover(root, Settings(), within=within)}
    return {}


NAMES = ("a", "b", "src", "build", "node_modules")
FILES = ("x.py", "y.js", "z.o", "setup.py", "CMakeCache.txt", "CACHEDIR.TAG")
CONTENTS = ("1", "2", "Signature: 8a477f597d28d172789f06886806bc55")
RULES = ("", "a/\n", "src\n", "*.py\n", "!build\n", "/b/a\n")
RULE_FILES = (".gitignore", ".ignore", ".meaningignore", ".git/info/exclude")


def happen(chance: random.Random, root: Path, outside: Path) -> None:
    """Something, if it can."""
    places = [place for place in (root, *root.rglob("*")) if ".git" not in place.parts and place.is_dir()]
    here, there = chance.choice(places), chance.choice(places)
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    with contextlib.suppress(OSError):
        match chance.randrange(16):
            case 0 | 1:
                (here / name / other).mkdir(parents=True)
            case 2 | 3:
                (here / chance.choice(FILES)).write_text(chance.choice(CONTENTS))
            case 4 | 5:
                (here / name).rename(there / other)
            case 6:
                shutil.rmtree(here / name)
            case 7:
                (here / chance.choice(FILES)).replace(there / chance.choice(FILES))
            case 8:
                (here / chance.choice(RULE_FILES)).write_text(chance.choice(RULES))
            case 9 | 10:
                place = outside / name
                (here / name).rename(place) if not place.exists() else place.rename(here / other)
            case 11:
                repository(here / name, {chance.choice(("y.js", ".git/info/exclude")): chance.choice(RULES)})
            case 12:
                shutil.rmtree(here / name / ".git") if chance.random() < 0.5 else (here / ".git/HEAD").unlink()
            case 13:
                (here / chance.choice((name, "x.py"))).symlink_to(chance.choice((there, outside, "nowhere")))
            case 14:
                write(Path.home(), {chance.choice((".config/git/ignore", "mine")): chance.choice(RULES)})
                config = chance.choice((Path.home() / ".gitconfig", here / ".git/config"))
                config.write_text(chance.choice(("", "[core]\nexcludesFile = ~/mine\n")))
            case 15:
                place = chance.choice((root, root.parent))
                place.rename(outside / "gone")
                (outside / "gone").rename(place)


def folders(root: Path) -> set[str]:
    """The folders that are to be watched: those of a watcher that starts now."""
    fresh = FolderWatches(root, Settings(), lambda: False)
    fresh.close()
    rules = {folder for heeded in fresh._rules._heeded.values() for each in heeded for folder in each.watched}
    found = {Path(folder) for folder in rules | {place.where for place in fresh._places.values()}}
    return {os.path.relpath(folder, root) for folder in found if folder.is_relative_to(root)}
