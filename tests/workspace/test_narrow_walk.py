"""A walk that looks only at some paths says of them what the whole walk says, and costs no more than they do."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.settings import Settings
from server.workspace.discover import discover

from .trees import repository, write

# -- chance

NAMES = ("a", "b", "src", "build", "node_modules", ".git", "é")
FILES = (*NAMES, "x.py", "y.js", "z.o", "setup.py", "CMakeCache.txt")
RULES = ("a\n", "b/\n", "*.py\n", "!b\n!build\n!*.o\n", "/src/a\n", "**/x.py\n", "src/*\n!src/a\n")
LINKS = ("a", "..", "src/b", "x.py", "../..", "nowhere")

folders = st.lists(st.sampled_from(NAMES), max_size=4).map("/".join)
files = st.builds(os.path.join, folders, st.sampled_from(FILES))
ignore_files = st.builds(os.path.join, folders, st.sampled_from((".gitignore", ".ignore", ".meaningignore")))
contents = (
    st.dictionaries(files, st.sampled_from(("", "x" * 50)), max_size=25),
    st.dictionaries(ignore_files, st.sampled_from(RULES), max_size=4),
    st.dictionaries(st.builds(os.path.join, folders, st.just(".git/HEAD")), st.just("ref: x\n"), max_size=2),
)
links = st.dictionaries(files, st.sampled_from(LINKS), max_size=4)
odd = st.sampled_from(
    ("..", "../root", ".", "a/..", "a/../b", "/", "/a", "a/", "a//b", "./a", "\0", "\udcff", "x.py/x")
)
asked = st.lists(st.one_of(folders, files, ignore_files, odd), max_size=5)


def make(root: Path, contents: tuple[dict[str, str], ...], links: dict[str, str]) -> None:
    """As much of the tree as can stand together."""
    for path, content in [item for files in contents for item in files.items()]:
        with suppress(OSError):
            write(root, {path: content})
    for path, target in links.items():
        with suppress(OSError):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)


def is_asked_for(path: str, within: Collection[str]) -> bool:
    return any(not member or f"{path}/".startswith(f"{member}/") for member in within)


@settings(max_examples=150, deadline=None)
@given(st.tuples(*contents), links, asked, st.booleans())
def test_the_narrow_walk_is_the_whole_walk_filtered(
    contents: tuple[dict[str, str], ...], links: dict[str, str], within: list[str], below_a_repository: bool
) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        root = top / "root"
        make(root, contents, links)
        root.mkdir(exist_ok=True)
        if below_a_repository:
            repository(top, {".gitignore": "/root/src/b\nbuild\n", "secret.py": ""})
        chosen = Settings(max_file_bytes=40, exclude=("é/a",))
        whole = list(discover(root, chosen))
        narrow = list(discover(root, chosen, within=within))
        assert narrow == [file for file in whole if is_asked_for(file.path, within)]
    finally:
        shutil.rmtree(top)


# -- and by name


def narrow(root: Path, *within: str) -> list[str]:
    return [file.path for file in discover(root, Settings(), within=within)]


def test_files_and_folders_are_given_once_and_in_the_order_of_the_walk(tmp_path: Path) -> None:
    write(tmp_path, {"a/b/x.py": "", "a/b/y.py": "", "a/z.py": "", "b.py": "", "c.py": ""})
    assert narrow(tmp_path, "b.py", "a/b/y.py", "a/b", "a/b/y.py", "gone", "c.py/x") == ["a/b/x.py", "a/b/y.py", "b.py"]
    assert narrow(tmp_path, "a", "") == narrow(tmp_path, "")
    assert narrow(tmp_path) == []


def test_what_is_left_out_is_left_out_when_it_is_asked_for_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"node_modules/lib/x.js": "", "env/pyvenv.cfg": "", "env/lib/x.py": "", ".ignore": "gen\n", "gen/x": ""},
    )
    assert narrow(tmp_path, "node_modules/lib/x.js", "env/lib", "gen/x") == []


@pytest.mark.parametrize("member", ["..", "../secret.py", "root/../../secret.py", "link/secret.py", "link"])
def test_no_path_leads_out_of_the_workspace(tmp_path: Path, member: str) -> None:
    root = write(tmp_path / "root", {"root/a.py": ""})
    write(tmp_path, {"secret.py": ""})
    (root / "link").symlink_to(tmp_path)
    assert narrow(root, member, str(tmp_path / "secret.py"), str(root / "root/a.py")) == []


def test_only_the_folders_on_the_way_and_below_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"p{n}/q{m}/r/x.py": "" for n in range(5) for m in range(5)})
    listed: list[str] = []
    scandir = os.scandir

    def noted(place: str) -> object:
        listed.append(os.path.relpath(place, tmp_path))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", noted)
    assert narrow(tmp_path, "p1/q2/r/x.py", "p3/q4", "p9/q9") == ["p1/q2/r/x.py", "p3/q4/r/x.py"]
    assert listed == [".", "p1", "p1/q2", "p1/q2/r", "p3", "p3/q4", "p3/q4/r"]


def test_a_path_of_any_depth_does_no_harm(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.py": ""})
    assert narrow(tmp_path, "a/" * 100_000, "a/x.py") == ["a/x.py"]
