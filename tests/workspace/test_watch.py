"""Whatever happens to the files, the watcher tells where to look: with real files and the system's real events."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from server.settings import Settings
from server.workspace import watch
from server.workspace.watch import LATEST_SECONDS, MOST_PATHS, NEVER, QUIET_SECONDS, Pending, Watcher

from .trees import repository, write
from .watching import PATIENCE, Seen, eventually, watching


def test_files_that_come_change_and_go(root: Path) -> None:
    with watching(root) as seen:
        (root / "a.py").write_text("1")
        assert seen.until_changed("a.py") == {"a.py"}
        with (root / "a.py").open("a") as file:
            file.write("2")
            file.flush()
            assert seen.until_changed("a.py") == {"a.py"}
        seen.fence(root)
        (root / "a.py").unlink()
        assert seen.until_changed("a.py") == {"a.py"}


def test_names_of_all_kinds(root: Path) -> None:
    with watching(root) as seen:
        write(root, {"ö ü/日本 😀.py": "1", "-x\n.py": "1"})
        (root / os.fsdecode(b"\xff.py")).write_text("no Unicode: the walk passes over it, too")
        assert seen.fence(root) >= {"ö ü", "-x\n.py"}
        (root / "ö ü" / "日本 😀.py").write_text("2")
        assert seen.until_changed("ö ü/日本 😀.py") == {"ö ü/日本 😀.py"}


def test_editors_that_save_by_renaming(root: Path) -> None:
    write(root, {"a.py": "1"})
    with watching(root) as seen:
        (root / "a.py.tmp123").write_text("2")
        (root / "a.py.tmp123").replace(root / "a.py")
        assert seen.until_changed("a.py") <= {"a.py", "a.py.tmp123"}
        (root / "a.py").rename(root / "a.py~")
        write(root, {"a.py": "3"})
        assert seen.until_changed("a.py")


def test_a_folder_that_comes_with_content_is_found_and_followed(root: Path, outside: Path) -> None:
    write(outside, {"pkg/deep/er/x.py": "1"})
    with watching(root) as seen:
        (outside / "pkg").rename(root / "pkg")
        seen.until_changed("pkg")
        (root / "pkg/deep/er/x.py").write_text("2")
        seen.until_changed("pkg/deep/er/x.py")


def test_a_folder_that_is_renamed_is_followed_under_its_new_name(root: Path) -> None:
    write(root, {"old/deep/x.py": "1"})
    with watching(root) as seen:
        (root / "old").rename(root / "new")
        seen.until_changed("old", "new")
        seen.fence(root)
        (root / "new/deep/x.py").write_text("2")
        assert seen.until_changed("new/deep/x.py") == {"new/deep/x.py"}


def test_a_folder_may_take_the_name_of_another(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.py": "1", "b/y.py": "2"})
    with watching(tmp_path) as seen:
        (tmp_path / "a").rename(tmp_path / "c")
        (tmp_path / "b").rename(tmp_path / "a")
        (tmp_path / "c").rename(tmp_path / "b")
        seen.until_changed("a", "b")
        seen.fence(tmp_path)
        write(tmp_path, {"a/y.py": "3", "b/x.py": "4"})
        assert seen.until_changed("a/y.py", "b/x.py") == {"a/y.py", "b/x.py"}


def test_folders_made_at_once_are_followed_to_the_bottom(tmp_path: Path) -> None:
    with watching(tmp_path) as seen:
        for round_ in range(10):
            write(tmp_path, {f"r{round_}/a/b/c/d/x.py": "1"})
        seen.until_changed(*(f"r{round_}" for round_ in range(10)))
        seen.fence(tmp_path)
        for round_ in range(10):
            write(tmp_path, {f"r{round_}/a/b/c/d/x.py": "2"})
        seen.until_changed(*(f"r{round_}/a/b/c/d/x.py" for round_ in range(10)))


def test_what_is_ignored_changes_nothing(root: Path) -> None:
    repository(root, {".gitignore": "*.out\ngen/\n", "src/a.py": "1", "gen/g.py": "1"})
    with watching(root, Settings(exclude=("private",))) as seen:
        write(
            root,
            {
                "src/b.out": "1",
                "src/c.o": "1",
                "gen/g.py": "2",
                "gen/more/g.py": "2",
                "node_modules/lib/package.json": "{}",
                "node_modules/lib/.gitignore": "x",
                "private/p.py": "1",
                ".git/index": "1",
            },
        )
        shutil.rmtree(root / "gen")
        assert seen.fence(root) == set()


def test_a_changed_ignore_file_is_taken_up(root: Path) -> None:
    repository(root, {"pkg/.gitignore": "gen/\n", "pkg/gen/deep/g.py": "1", "pkg/src/a.py": "1"})
    with watching(root) as seen:
        write(root, {"pkg/.gitignore": "src/\n"})
        assert seen.until_changed_within("pkg")
        seen.fence(root)
        write(root, {"pkg/gen/deep/g.py": "2", "pkg/src/a.py": "2"})
        assert seen.fence(root) == {"pkg/gen/deep/g.py"}
        (root / "pkg/.gitignore").unlink()
        assert seen.until_changed_within("pkg")
        seen.fence(root)
        write(root, {"pkg/gen/deep/g.py": "3", "pkg/src/a.py": "3"})
        assert seen.fence(root) == {"pkg/gen/deep/g.py", "pkg/src/a.py"}


@pytest.mark.parametrize("name", [".ignore", ".meaningignore", ".git/info/exclude"])
def test_ignore_files_of_each_kind_are_taken_up(root: Path, name: str) -> None:
    repository(root, {".git/info/exclude": "", "src/a.py": "1"})
    with watching(root) as seen:
        write(root, {name: "src\n"})
        seen.until_changed("")
        seen.fence(root)
        write(root, {"src/a.py": "2"})
        assert seen.fence(root) == set()


def test_a_folder_becomes_a_tools_own_and_is_given_back(root: Path) -> None:
    write(root, {"env/lib/a.py": "1"})
    with watching(root) as seen:
        write(root, {"env/pyvenv.cfg": "home = /usr\n"})
        assert seen.until_changed_within("env")
        seen.fence(root)
        write(root, {"env/lib/a.py": "2"})
        assert seen.fence(root) == set()
        (root / "env/pyvenv.cfg").unlink()
        assert seen.until_changed_within("env")
        seen.fence(root)
        write(root, {"env/lib/a.py": "3"})
        assert seen.fence(root) == {"env/lib/a.py"}


def test_links_are_not_followed(root: Path, outside: Path) -> None:
    write(outside, {"x.py": "1"})
    (root / "link").symlink_to(outside)
    with watching(root) as seen:
        (root / "later").symlink_to(outside)
        seen.fence(root)
        write(outside, {"x.py": "2", "y.py": "2"})
        assert seen.fence(root) == set()


def test_a_workspace_folder_that_is_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with watching(link) as seen:
        write(root, {"a.py": "1"})
        assert seen.until_changed("a.py") == {"a.py"}


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    subprocess.run(("git", *identity, *words), cwd=folder, check=True, capture_output=True)


def test_a_checkout_of_thousands_of_files_is_a_few_sets(tmp_path: Path) -> None:
    files = {f"p{n % 40}/q{n % 8}/f{n}.py": "1" for n in range(2000)}
    git(tmp_path, "init", "-b", "one")
    git(tmp_path, "commit", "--allow-empty", "-m", "nothing")
    git(tmp_path, "checkout", "-b", "two")
    write(tmp_path, files)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    with watching(tmp_path) as seen:
        git(tmp_path, "checkout", "one")
        seen.until(lambda: covered(seen, files))
        assert len(seen.sets) < 40
        seen.fence(tmp_path)
        git(tmp_path, "checkout", "two")
        seen.until(lambda: covered(seen, files))
        assert len(seen.sets) < 40
        seen.fence(tmp_path)
        write(tmp_path, {"p7/q7/f7.py": "2"})
        seen.until_changed("p7/q7/f7.py")


def covered(seen: Seen, paths: dict[str, str]) -> bool:
    """Whether each of the paths is in a set, by itself or with a folder around it."""
    told = seen.paths
    return all(told.intersection((path, *(str(above) for above in Path(path).parents))) for path in paths)


def test_a_folder_that_goes_and_comes_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RETURN_SECONDS", 0.01)
    write(root, {"a.py": "1"})
    with watching(root) as seen:
        shutil.rmtree(root)
        seen.until(lambda: seen.modes and seen.modes[-1][0] == "rescanning")
        write(root, {"b.py": "1"})
        seen.until(lambda: seen.modes[-1] == ("watching", None))
        seen.until_changed("")
        seen.fence(root)
        write(root, {"b.py": "2"})
        seen.until_changed("b.py")


def test_nothing_is_left_when_it_is_closed(root: Path) -> None:
    write(root, {"a/b.py": "1"})
    with watching(root):
        pass  # What is imported and opened once stays.
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(20):
        with watching(root):
            pass
    eventually(lambda: set(threading.enumerate()) <= threads)
    assert open_files() == files


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_it_can_be_closed_at_any_moment(root: Path) -> None:
    write(root, {f"a{n}/b{n}/c.py": "1" for n in range(200)})
    for moment in range(40):
        watcher = Watcher(root, Settings(), lambda change: None)
        threading.Event().wait(moment / 4000)
        watcher.close(PATIENCE)
        assert not watcher._thread.is_alive()


# -- when a set is given


def test_a_set_is_given_when_it_has_been_quiet() -> None:
    pending = Pending()
    assert pending.due() == NEVER
    pending.add({"a"}, 10.0)
    assert pending.due() == 10.0 + QUIET_SECONDS
    pending.add({"b"}, 10.5)
    assert pending.due() == 10.5 + QUIET_SECONDS
    pending.add(set(), 10.9)
    assert pending.due() == 10.5 + QUIET_SECONDS
    assert pending.take().paths == {"a", "b"}
    assert pending.due() == NEVER


def test_a_set_is_given_in_time_even_if_it_is_never_quiet() -> None:
    pending = Pending()
    pending.add({"a"}, 10.0)
    pending.add({"b"}, 10.0 + LATEST_SECONDS)
    assert pending.due() == 10.0 + LATEST_SECONDS


def test_sets_do_not_grow_without_bound() -> None:
    pending = Pending()
    for n in range(3 * MOST_PATHS):
        pending.add({f"f{n}"}, 10.0)
    assert len(pending._paths) <= MOST_PATHS + 1
    assert pending.take().everything
