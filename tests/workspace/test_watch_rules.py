"""The files elsewhere that say what is left out: each change of one is taken up, and nothing else around them is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.settings import Settings
from server.workspace import inotify, rule_files, watch
from server.workspace.ignore import Ignores
from server.workspace.rule_files import trail

from .trees import repository, write
from .watching import Seen, eventually, watched, watching

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are many steps, and each is waited for."""
    monkeypatch.setattr(watch, "QUIET_SECONDS", 0.003)


def home(*files: tuple[str, str]) -> None:
    write(Path.home(), dict(files))


@pytest.fixture
def root(root: Path) -> Path:
    """A repository with two files, of which rules may speak."""
    return repository(root, {"a.py": "1", "b.py": "1"})


def left_out(root: Path) -> set[str]:
    """Which of the two are."""
    ignores = Ignores(root, Settings())
    return {path for path in ("a.py", "b.py") if ignores.is_ignored(path, is_dir=False)}


@contextmanager
def changing(root: Path, seen: Seen, now: set[str]) -> Iterator[None]:
    """What is done changes what is left out, which is told, and goes for later events."""
    before = left_out(root)
    yield
    assert left_out(root) == now != before
    seen.until_changed("")
    seen.fence(root)
    write(root, {"a.py": str(time.monotonic_ns()), "b.py": str(time.monotonic_ns())})
    assert seen.fence(root) == {"a.py", "b.py"} - now


def go_through_all(root: Path, place: Path, rule: Callable[[str], str], after: set[str] | None = None) -> None:
    """A file comes, changes, is replaced and goes, and its folder is moved away and comes back."""
    after = after or set()
    spare = root.parent / "spare"
    with watching(root) as seen:
        with changing(root, seen, {"a.py"}):
            write(place.parent, {place.name: rule("a.py")})
        with changing(root, seen, {"b.py"}):
            write(place.parent, {place.name: rule("b.py")})
        with changing(root, seen, {"a.py"}):
            spare.write_text(rule("a.py"))
            spare.replace(place)
        with changing(root, seen, after):
            place.rename(spare)
        with changing(root, seen, {"a.py"}):
            spare.rename(place)
        with changing(root, seen, after):
            place.unlink()


def plain(pattern: str) -> str:
    return f"{pattern}\n"


def naming(pattern: str) -> str:
    """Configuration that names the exclude file of one pattern."""
    return f"[user]\n\tname = x\n[core]\n\texcludesFile = ~/only-{pattern}\n"


PLACES = {
    "the user's excludes": (".config/git/ignore", plain),
    "the user's configuration": (".gitconfig", naming),
    "the user's other configuration": (".config/git/config", naming),
}


@pytest.mark.parametrize("prepared", [True, False], ids=["in its folder", "and its folder"])
@pytest.mark.parametrize("what", PLACES)
def test_the_users_own_files(root: Path, what: str, prepared: bool) -> None:
    home(("only-a.py", "a.py\n"), ("only-b.py", "b.py\n"))
    name, rule = PLACES[what]
    place = Path.home() / name
    if prepared:
        place.parent.mkdir(parents=True, exist_ok=True)
    go_through_all(root, place, rule)


@pytest.mark.parametrize("prepared", [True, False], ids=["in its folder", "and its folder"])
def test_a_configuration_that_the_environment_names(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared: bool
) -> None:
    home(("only-a.py", "a.py\n"), ("only-b.py", "b.py\n"), (".gitconfig", naming("b.py")))
    place = tmp_path / "far/away/config"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(place))
    if prepared:
        place.parent.mkdir(parents=True)
    go_through_all(root, place, naming)


@pytest.mark.parametrize("stated", ["~/mine/rules", "~/dots/rules"])
def test_the_exclude_file_that_is_named(root: Path, stated: str) -> None:
    home((".gitconfig", f"[core]\nexcludesFile = {stated}\n"), (".config/git/ignore", "b.py\n"), ("real/x", ""))
    (Path.home() / "dots").symlink_to("real")
    go_through_all(root, Path(stated).expanduser(), plain)


@pytest.mark.parametrize("prepared", [True, False], ids=["in its folder", "and its folder"])
def test_the_repositorys_excludes(root: Path, prepared: bool) -> None:
    if prepared:
        (root / ".git/info").mkdir()
    go_through_all(root, root / ".git/info/exclude", plain)


def test_the_repositorys_configuration(root: Path) -> None:
    home(("only-a.py", "a.py\n"), ("only-b.py", "b.py\n"), (".config/git/ignore", "a.py\nb.py\n"))
    go_through_all(root, root / ".git/config", naming, after={"a.py", "b.py"})


def test_the_excludes_of_a_worktree(tmp_path: Path, root: Path) -> None:
    write(root, {".git/worktrees/tree/HEAD": "ref: x\n", ".git/worktrees/tree/commondir": "../..\n"})
    tree = write(tmp_path / "tree", {".git": f"gitdir: {root}/.git/worktrees/tree\n", "a.py": "1", "b.py": "1"})
    go_through_all(tree, root / ".git/info/exclude", plain)


def test_the_rules_above_the_workspace_folder(root: Path) -> None:
    repository(root.parent, {})
    shutil.rmtree(root / ".git")
    go_through_all(root, root.parent / ".gitignore", lambda name: f"/{root.name}/{name}\n")


def test_folders_that_are_moved_away_and_back(root: Path) -> None:
    home((".config/git/ignore", "a.py\n"))
    config, away = Path.home() / ".config", Path.home() / "away"
    with watching(root) as seen:
        for folder in (config, config / "git"):
            with changing(root, seen, set()):
                folder.rename(away)
            with changing(root, seen, {"a.py"}):
                away.rename(folder)
        with changing(root, seen, set()):
            shutil.rmtree(config)
        with changing(root, seen, {"b.py"}):
            home((".config/git/ignore", "b.py\n"))


def test_links_on_the_way_that_are_turned(root: Path) -> None:
    home(("one/ignore", "a.py\n"), ("two/ignore", "b.py\n"), (".config/x", ""))
    link = Path.home() / ".config/git"
    link.symlink_to("../one")
    with watching(root) as seen:
        with changing(root, seen, {"b.py"}):
            (link.parent / "next").symlink_to("../two")
            (link.parent / "next").replace(link)
        with changing(root, seen, {"a.py"}):
            home(("two/ignore", "a.py\n"))
        with changing(root, seen, set()):
            (Path.home() / "two").rename(Path.home() / "three")


def test_a_repository_that_begins_slowly(root: Path) -> None:
    shutil.rmtree(root / ".git")
    with watching(root) as seen:
        write(root, {".git/info/exclude": "a.py\n"})
        seen.fence(root)
        with changing(root, seen, {"a.py"}):
            write(root, {".git/HEAD": "ref: x\n"})
        with changing(root, seen, {"b.py"}):
            write(root, {".git/info/exclude": "b.py\n"})
        with changing(root, seen, set()):
            (root / ".git/HEAD").unlink()


@pytest.mark.parametrize("inner", ["inner", "a/b/inner"])
def test_a_repository_that_begins_above_the_workspace_folder(tmp_path: Path, inner: str) -> None:
    top = tmp_path / "top"
    root = write(top / inner, {"a.py": "1", "b.py": "1"})
    write(top, {".gitignore": "a.py\n"})
    with watching(root) as seen:
        with changing(root, seen, {"a.py"}):
            repository(top, {})
        with changing(root, seen, set()):
            (top / ".git").rename(tmp_path / "away")
        with changing(root, seen, {"a.py"}):
            (tmp_path / "away").rename(top / ".git")
        with changing(root, seen, {"b.py"}):
            write(top, {".gitignore": "b.py\n"})


@linux
def test_what_says_nothing_else_changes_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {})
    home((".gitconfig", naming("a.py")), ("only-a.py", "a.py\n"))
    with watching(root) as seen:
        home((".gitconfig", naming("a.py") + "[user]\nemail = e@x\n"))
        write(root, {".git/config": "[branch]\nmerge = x\n", ".git/HEAD": "ref: y\n", ".git/index": "1"})
        assert seen.fence(root) == set()


@linux
def test_a_way_that_is_cut_for_a_moment_counts(tmp_path: Path) -> None:
    """What was read meanwhile was read without its rules."""
    root = repository(tmp_path / "above/root", {})
    home((".config/git/ignore", "a.py\n"))
    with watching(root) as seen:
        for folder in (Path.home() / ".config", tmp_path / "above"):
            folder.rename(tmp_path / "away")
            (tmp_path / "away").rename(folder)
            seen.until_changed("")
            seen.fence(root)


@linux
def test_another_folder_in_the_place_of_one_above(tmp_path: Path) -> None:
    root = write(tmp_path / "above/root", {"a.py": "1"})
    write(tmp_path / "other/root", {"b.py": "1"})
    with watching(root) as seen:
        (tmp_path / "above").rename(tmp_path / "away")
        (tmp_path / "other").rename(tmp_path / "above")
        eventually(lambda: watched(tmp_path / "above") == [".", "root"])
        seen.fence(root)
        write(root, {"b.py": "2"})
        assert seen.until_changed("b.py") == {"b.py"}


# -- what it costs


@linux
def test_only_the_folders_on_the_way_are_watched(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {".git/objects/x": ""})
    home((".config/git/config", ""), (".config/other/x", ""), ("Documents/deep/x", ""), (".ssh/config", ""))
    with watching(root):
        assert watched(Path.home()) == [".", ".config", ".config/git"]
        assert watched(root) == [".", ".git"]
    assert watched(Path.home()) == []


@linux
def test_a_busy_home_folder_changes_nothing_and_is_dismissed_in_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    of_the_user = rule_files.of_the_user

    def noted(root: Path) -> rule_files.Sources:
        looks.append(root)
        return of_the_user(root)

    monkeypatch.setattr(rule_files, "of_the_user", noted)
    root = tmp_path / "root"
    root.mkdir()
    home((".config/git/ignore", ""))
    with watching(root) as seen:
        looks.clear()
        for n in range(300):
            home((f"n{n % 7}", "1"), (f".config/n{n % 7}", "1"), (f".config/git/n{n % 7}", "1"))
        assert seen.fence(root) == set()
        assert looks == []


@linux
def test_the_home_folder_may_be_the_workspace_folder(tmp_path: Path) -> None:
    """The walk and the rules share the watch of a folder."""
    root = Path.home()
    home((".config/git/config", naming("a.py")), ("only-a.py", "a.py\n"), ("a.py", ""), ("b.py", ""))
    with watching(root) as seen:
        with changing(root, seen, set()):
            shutil.rmtree(root / ".config")
        with changing(root, seen, {"a.py"}):
            home((".config/git/config", naming("a.py")))
        with changing(root, seen, {"b.py"}):
            home(("only-a.py", "b.py\n"))
        home((".config/git/code.py", "1"))
        assert seen.fence(root) == {".config/git/code.py"}


@linux
def test_repositories_that_come_and_go_leave_no_watch_behind(tmp_path: Path) -> None:
    root = tmp_path / "root"
    repository(root / "inner", {".git/info/exclude": "", "a.py": ""})
    with watching(root) as seen:
        for _ in range(3):
            (root / "inner").rename(tmp_path / "elsewhere")
            eventually(lambda: watched(tmp_path) == [".", "root"])
            (tmp_path / "elsewhere").rename(root / "inner")
            eventually(lambda: watched(root) == [".", "inner", "inner/.git", "inner/.git/info"])
        seen.fence(root)
        write(root, {"inner/.git/info/exclude": "a.py\n"})
        seen.until_changed("inner")


@linux
def test_without_a_watch_for_the_rules_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = inotify.Inotify.add

    def refuse(self: inotify.Inotify, folder: str, mask: int, user: int) -> int:
        if user == inotify.RULES:
            raise OSError(28, "no more watches", folder)
        return add(self, folder, mask, user)

    monkeypatch.setattr(inotify.Inotify, "add", refuse)
    with watching(tmp_path) as seen:
        assert seen.modes == [("partly watching", "no more watches")]


# -- the way to a file


def test_a_way_ends_where_something_is_missing(tmp_path: Path) -> None:
    place = Path(os.path.realpath(tmp_path))
    write(place, {"a/b/x": ""})
    assert list(trail(place / "a/b/x"))[-3:] == [(f"{place}/a", ""), (f"{place}/a/b", ""), (f"{place}/a/b", "x")]
    assert list(trail(place / "a/c/d/x"))[-2:] == [(f"{place}/a", ""), (f"{place}/a", "c")]
    assert list(trail(place / "a/b/x/y"))[-1] == (f"{place}/a/b", "x")


def test_a_way_turns_at_links(tmp_path: Path) -> None:
    place = Path(os.path.realpath(tmp_path))
    write(place, {"a/b/x": ""})
    (place / "a/link").symlink_to("../a/b")
    (place / "far").symlink_to(place / "a/link")
    (place / "circle").symlink_to("circle")
    turns = [step for step in trail(place / "far/x") if step[1]]
    assert turns == [(str(place), "far"), (f"{place}/a", "link"), (f"{place}/a/b", "x")]
    assert {step for step in trail(place / "circle/x") if step[1]} == {(str(place), "circle")}
