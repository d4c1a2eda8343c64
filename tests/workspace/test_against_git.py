"""git is the judge: over made-up ignore files and settings, the walk finds what `git ls-files` lists."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from server.settings import Settings
from server.workspace.discover import discover
from server.workspace.git import _excludes_file

from .trees import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FOLDERS = ["", "a", "ab", "a/b", "a/a", "a/b/a", "a/b/a/b", "ab/.a", "ab/b-]"]
NAMES = ["a", "b", "ba", "a.b", "b.a.ab", ".b", "a b", "a ", "#a", "!b", "[a]", "\\a", "-", "aaa*b"]
IGNORE_PLACES = ["", "a", "a/b", "ab"]

PIECES = (
    *("a", "b", "ab", ".", "*", "*", "**", "**/", "/**", "/", "/", "?", " ", "\\ ", "\\", "\\*", "#", "!", "-", "]"),
    *("[ab]", "[!a]", "[^b-]", "[a-b]", "[b-a]", "[]-]", "[]a]", "[\\]]", "[a\\-b]", "[-a]", "[", "[[:alpha:]]"),
    *("[![:punct:]]", "[[:nope:]]", "[[:]", "[[:a]", "[a-[:digit:]]", "[/]", "[!/]", "[.-a]", "\\/", "\r", "\t"),
)
pieces = st.sampled_from(PIECES)
patterns = st.builds(
    lambda bang, slash, parts, end: bang + slash + "".join(parts) + end,
    st.sampled_from(["", "", "", "!", "\\!", "#", "\\#"]),
    st.sampled_from(["", "", "/"]),
    st.lists(pieces, min_size=1, max_size=5),
    st.sampled_from(["", "", "/", "  ", "\\ ", "\\  ", "/*"]),
)
ignore_files = st.lists(patterns, min_size=1, max_size=5).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda ending: ending.join(lines))
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True, env=_environment())
    for folder, name in itertools.product(FOLDERS, NAMES):
        if folder and name in ("a", "b"):
            continue
        file = root / folder / name
        if not (not folder and name == "a"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    yield root


def _environment() -> dict[str, str]:
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def _listed(root: Path) -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--cached", "--exclude-standard"],
        cwd=root,
        env=_environment(),
        check=True,
        capture_output=True,
    )
    return {path for path in done.stdout.decode().split("\0") if path}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"": "a**/b\n", "a": "**/a\n"})
@example({"": "a/**/b\n!a/b/a/b\n"})
@example({"": "/*\n!/a\n/a/*\n!/a/b\n"})
@example({"": "a/b/\n!a/b/a\n"})
@example({"": "\ufeffa\n"})
@example({"": "a*a*a*a*b"})
@example({"": "*a/**/b*/?*a"})
@given(st.dictionaries(st.sampled_from([*IGNORE_PLACES, ".git/info/exclude"]), ignore_files, min_size=1, max_size=3))
def test_the_walk_finds_what_git_lists(repository: Path, files: dict[str, str]) -> None:
    written = {
        repository / place if place.startswith(".git/") else repository / place / ".gitignore": content
        for place, content in files.items()
    }
    for file, content in written.items():
        file.write_bytes(content.encode())
    try:
        found = {file.path for file in discover(repository, Settings())}
        assert found == _listed(repository)
    finally:
        for file in written:
            file.unlink()


# -- core.excludesFile

CONFIG_PIECES = (
    *(
        "[core]",
        "[core]\n",
        "[CORE]\n",
        '[core "x"]\n',
        "[user]\n",
        "[core.x]\n",
        " excludesFile = ",
        "excludesfile=",
        "\n",
    ),
    *(
        "\nexcludesFile = ",
        "\n[core]\nexcludesFile = ",
        "a",
        "b/",
        " ",
        "  ",
        '"',
        '"a b"',
        '"#"',
        "#",
        ";",
        "~/",
    ),
    *("\\\\", '\\"', "\\n", "\\t", "\\\n", "\r\n", "= ", "é", "\nname = v\n", "# excludesFile = c\n"),
)
configs = st.lists(st.sampled_from(CONFIG_PIECES), max_size=12).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example('[core]\n\texcludesFile = "a b" ; c\n')
@example("[core] excludesFile = a\\\n\\\\b # c")
@example("[core]\nexcludesFile = a\n[user]\nexcludesFile = b\n[core]\nexcludesFile = c\n")
@example("\ufeff[core]\r\nexcludesFile =\r\n")
@given(configs)
def test_settings_are_read_as_git_reads_them(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config"
    config.write_bytes(text.encode())
    asked = ("git", "config", "--null", "--file", config, "core.excludesFile")
    answer = subprocess.run(asked, env=_environment(), check=False, capture_output=True)
    if answer.returncode <= 1:  # git refuses no part of the file
        assert _excludes_file(config) == (answer.stdout.decode()[:-1] if answer.returncode == 0 else None)


@pytest.mark.parametrize(
    ("users", "repositorys"),
    [
        ("", ""),
        ("excludesFile = ~/mine", ""),
        ("excludesFile = ~/mine", "excludesFile = theirs"),
        ("excludesFile = ~/mine", "excludesFile ="),
        ("excludesFile =", ""),
        ("excludesFile = ~/link", ""),
        ("excludesFile = theirs", ""),
        ("", "excludesFile = ../a/theirs"),
    ],
)
def test_the_exclude_file_in_force_is_gits(tmp_path: Path, users: str, repositorys: str) -> None:
    home, root = Path.home(), tmp_path / "a"
    write(home, {"mine": "mine.py\n", ".config/git/ignore": "default.py\n", ".gitconfig": f"[core]\n{users}\n"})
    (home / "link").symlink_to("mine")
    subprocess.run(["git", "init", "-q", root], check=True)
    write(
        root,
        {"theirs": "theirs.py\n", "mine.py": "", "default.py": "", "theirs.py": "", "b/theirs": "", "b/mine.py": ""},
    )
    with (root / ".git/config").open("a") as config:
        config.write(f"[core]\n{repositorys}\n")
    listed = subprocess.check_output(["git", "ls-files", "--others", "--exclude-standard"], cwd=root, text=True)
    assert [file.path for file in discover(root, Settings())] == sorted(listed.split())
