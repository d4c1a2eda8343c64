"""The ignore files, the settings and the built-in lists, rule by rule. `walk` also asks `Ignores` about every entry."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from server.settings import Settings
from server.workspace.gitignore import Patterns
from server.workspace.ignore import Ignores

from .trees import repository, walk, write

# --- git's rules (what git itself does is in test_against_git.py) ---


def test_an_ignore_file_governs_its_own_folder_and_what_is_below(tmp_path: Path) -> None:
    write(tmp_path, {"x.py": "", "sub/.gitignore": "x.py\n/y.py\n", "sub/x.py": "", "sub/a/x.py": "", "sub/a/y.py": ""})
    assert walk(tmp_path) == ["sub/a/y.py", "x.py"]


def test_nothing_comes_back_from_inside_an_ignored_folder(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "gen/\n!gen/keep.py\n", "gen/keep.py": "", "gen/.gitignore": "!keep.py\n"})
    assert walk(tmp_path) == []


def test_ignore_files_count_without_a_repository(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "a.py\n", "a.py": "", "b.py": ""})
    assert walk(tmp_path) == ["b.py"]


def test_names_beyond_ascii(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "größe*.py\n", "größe-1.py": "", "日本.py": ""})
    assert walk(tmp_path) == ["日本.py"]


def test_a_workspace_inside_a_repository_obeys_the_folders_above(tmp_path: Path) -> None:
    repository(
        tmp_path,
        {
            ".gitignore": "*.gen.py\n/app/src/top.py\n",
            ".git/info/exclude": "private.py\n",
            "app/.ignore": "old.py\n",
            "app/src/a.gen.py": "",
            "app/src/top.py": "",
            "app/src/private.py": "",
            "app/src/old.py": "",
            "app/src/kept.py": "",
        },
    )
    assert walk(tmp_path / "app/src") == ["kept.py"]


def test_a_workspace_that_the_repository_around_it_ignores_is_its_own(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "*\n", "projects/app/main.py": "", "projects/app/build/x.py": ""})
    assert walk(tmp_path / "projects/app") == ["build/x.py", "main.py"]


def test_a_workspace_may_be_a_folder_that_is_left_out_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, {"node_modules/lib/index.js": ""})
    assert walk(tmp_path / "node_modules") == ["lib/index.js"]


def test_a_repository_in_the_repository_has_its_own_patterns(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "*.gen.py\n", "a.gen.py": ""})
    repository(tmp_path / "inner", {"a.gen.py": "", ".git/info/exclude": "b.py\n", "b.py": ""})
    assert walk(tmp_path) == ["inner/a.gen.py"]


def test_info_exclude_of_a_worktree_is_its_repositorys(tmp_path: Path) -> None:
    repository(tmp_path / "main", {".git/info/exclude": "private.py\n"})
    write(tmp_path / "main/.git/worktrees/tree", {"HEAD": "ref: x\n", "commondir": "../..\n"})
    tree = write(tmp_path / "tree", {".git": "gitdir: ../main/.git/worktrees/tree\n", "private.py": "", "a.py": ""})
    assert walk(tree) == ["a.py"]


def test_info_exclude_of_a_submodule(tmp_path: Path) -> None:
    repository(tmp_path, {".git/modules/sub/HEAD": "ref: x\n", ".git/modules/sub/info/exclude": "private.py\n"})
    write(tmp_path / "sub", {".git": "gitdir: ../.git/modules/sub\n", "private.py": "", "a.py": ""})
    assert walk(tmp_path) == walk_below(tmp_path, "sub") == ["sub/a.py"]


def walk_below(root: Path, folder: str) -> list[str]:
    return [f"{folder}/{path}" for path in walk(root / folder)]


def test_the_users_own_excludes(tmp_path: Path) -> None:
    write(Path.home(), {".config/git/ignore": "*.local.py\n"})
    write(tmp_path, {"a.local.py": "", "a.py": ""})
    assert walk(tmp_path) == ["a.py"]
    write(Path.home(), {".gitconfig": "[user]\n\tname = x\n[core]\n\texcludesFile = ~/mine\n", "mine": "a.py\n"})
    assert walk(tmp_path) == ["a.local.py"]


def test_an_empty_git_folder_is_no_repository(tmp_path: Path) -> None:
    write(tmp_path, {".git/notes": "", ".git/info/exclude": "a.py\n", "a.py": ""})
    assert walk(tmp_path) == ["a.py"]


# --- ours ---


def test_meaningignore_over_ignore_over_gitignore(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "a.py\nb.py\nc.py\n",
            ".ignore": "!a.py\n!b.py\nd.py\n",
            ".meaningignore": "b.py\n!d.py\ne.py\n",
            **dict.fromkeys(["a.py", "b.py", "c.py", "d.py", "e.py"], ""),
        },
    )
    assert walk(tmp_path) == ["a.py", "d.py"]


def test_a_stronger_file_is_stronger_from_above_too(tmp_path: Path) -> None:
    write(tmp_path, {".ignore": "a.py\n", "sub/.gitignore": "!a.py\n", "sub/a.py": ""})
    assert walk(tmp_path) == []


@pytest.mark.parametrize("file", [".ignore", ".meaningignore"])
def test_an_ignore_file_of_ours_brings_back_what_the_lists_leave_out(tmp_path: Path, file: str) -> None:
    write(
        tmp_path,
        {
            file: "!node_modules/\nnode_modules/*\n!node_modules/ours/\n!logo.svg\n!env/\n",
            "node_modules/ours/index.js": "",
            "node_modules/theirs/index.js": "",
            "logo.svg": "",
            "env/pyvenv.cfg": "",
        },
    )
    assert walk(tmp_path) == ["env/pyvenv.cfg", "logo.svg", "node_modules/ours/index.js"]


def test_gits_negation_does_not_bring_back_what_the_lists_leave_out(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*\n!*/\n!*.py\n!*.lock\n", "x.lock": "", ".venv/a.py": "", "a.py": ""})
    assert walk(tmp_path) == ["a.py"]


def test_the_setting_is_the_strongest(tmp_path: Path) -> None:
    write(tmp_path, {".meaningignore": "a.py\n!b.py\n", "a.py": "", "b.py": "", "sub/b.py": "", "sub/c.py": ""})
    assert walk(tmp_path, Settings(exclude=("!a.py", "/b.py", "sub/c.py"))) == ["a.py", "sub/b.py"]


def test_the_setting_is_relative_to_the_workspace_not_to_its_repository(tmp_path: Path) -> None:
    repository(tmp_path, {"app/a.py": "", "app/app/a.py": ""})
    assert walk(tmp_path / "app", Settings(exclude=("/app",))) == ["a.py"]


# --- the built-in lists ---


@pytest.mark.parametrize("folder", [".git", ".hg", ".svn", "sub/.git", ".jj", "CVS"])
def test_version_control_is_never_entered(tmp_path: Path, folder: str) -> None:
    write(tmp_path, {f"{folder}/x.py": "", ".meaningignore": f"!{Path(folder).name}\n!x.py\n"})
    assert walk(tmp_path) == []


NO_CODE = """
    node_modules/a/index.js pkg/node_modules/a.js .venv/a.py a/__pycache__/x.py .tox/x.py .gradle/x .next/x.js
    app.egg-info/PKG-INFO package-lock.json yarn.lock Cargo.lock go.sum logo.svg a.PNG lib.so a.min.js
    a.js.map api.pb.go x_pb2.py font.woff2 x.tar.gz id.pem .env
"""


@pytest.mark.parametrize("path", NO_CODE.split())
def test_dependencies_caches_and_files_that_are_no_code(tmp_path: Path, path: str) -> None:
    write(tmp_path, {path: "x", "kept.py": ""})
    assert walk(tmp_path) == ["kept.py"]


SOURCE = """
    .github/workflows/ci.yml .eslintrc docs/guide.md vendor/lib/a.c build/rules.py target/arm.c dist/index.js
    out/a.py bin/run deps/a.py env/a.py log bin/log key Makefile a.d.ts
"""


@pytest.mark.parametrize("path", SOURCE.split())
def test_names_that_may_well_be_source_are_kept(tmp_path: Path, path: str) -> None:
    write(tmp_path, {path: "x"})
    assert walk(tmp_path) == [path]


@pytest.mark.parametrize(
    ("folder", "sign"),
    [
        ("target", "Cargo.toml"),
        ("build", "build.gradle.kts"),
        ("dist", "package.json"),
        ("vendor", "composer.json"),
        ("_build", "mix.exs"),
        ("Pods", "Podfile"),
        ("obj", "App.csproj"),
        ("bin", "App.csproj"),
    ],
)
def test_output_folders_beside_the_sign_of_their_tool(tmp_path: Path, folder: str, sign: str) -> None:
    write(tmp_path, {f"a/{folder}/x.py": "", f"a/{sign}": "", f"b/{folder}/x.py": ""})
    assert walk(tmp_path) == [f"a/{sign}", f"b/{folder}/x.py"]


@pytest.mark.parametrize("sign", ["pyvenv.cfg", "conda-meta/history", "CMakeCache.txt"])
def test_folders_around_the_sign_of_their_tool(tmp_path: Path, sign: str) -> None:
    write(tmp_path, {f"whatever/{sign}": "", "whatever/lib/x.py": "", "a.py": ""})
    assert walk(tmp_path) == ["a.py"]
    assert "lib/x.py" in walk(tmp_path / "whatever")


def test_a_cache_tag_counts_with_its_signature(tmp_path: Path) -> None:
    write(tmp_path, {"real/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# x", "real/a.py": ""})
    write(tmp_path, {"false/CACHEDIR.TAG": "hello", "false/a.py": ""})
    assert walk(tmp_path) == ["false/CACHEDIR.TAG", "false/a.py"]


# --- single questions ---


def test_a_path_that_is_gone_is_judged_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.gen.py\nold/\n"})
    ignores = Ignores(tmp_path, Settings())
    assert ignores.is_ignored("gone/a.gen.py", is_dir=False)
    assert ignores.is_ignored("gone/old/a.py", is_dir=False)
    assert ignores.is_ignored("old", is_dir=True)
    assert not ignores.is_ignored("old", is_dir=False)
    assert not ignores.is_ignored("gone/a.py", is_dir=False)
    assert not ignores.is_ignored("", is_dir=True)


def test_a_path_may_be_deep(tmp_path: Path) -> None:
    ignores = Ignores(tmp_path, Settings())
    assert not ignores.is_ignored("a/" * 2000 + "x.py", is_dir=False)
    assert ignores.is_ignored("a/" * 1000 + "node_modules/" + "a/" * 1000 + "x.py", is_dir=False)


def test_which_files_answers_depend_on(tmp_path: Path) -> None:
    ignores = Ignores(tmp_path, Settings())
    changing = ["a/.gitignore", ".ignore", ".meaningignore", "rust/Cargo.toml", "x/App.csproj", "venv/pyvenv.cfg"]
    assert all(map(ignores.depends_on, [*changing, "inner/.git", ".git/info/exclude"]))
    assert not any(map(ignores.depends_on, ["a.py", "gitignore", "Cargo.toml/a.py", "csproj", "exclude"]))


def test_no_workspace_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Ignores(tmp_path / "gone", Settings())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs atomic groups")
def test_a_hostile_pattern_takes_no_time() -> None:
    patterns = Patterns(["*a" * 40 + "b", "**/" + "*a" * 40 + "b"])
    start = time.perf_counter()
    assert patterns.verdict("x/" + "a" * 255, "a" * 255, is_dir=False) is None
    assert time.perf_counter() - start < 1
