"""What a workspace is called by itself, and which names a filter means."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.org.names import NotAName, checked_name, default_name, is_path, repository_matcher


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/billing.git", "acme/billing"),
        ("https://token:x@git.example.org/group/sub/billing/", "sub/billing"),
        ("git@github.com:acme/billing.git", "acme/billing"),
        ("ssh://git@host:2222/acme/billing", "acme/billing"),
        ("/srv/git/acme/billing.git", "acme/billing"),
        ("C:\\\\git\\\\billing", "git/billing"),
    ],
)
def test_a_clone_is_called_by_its_remote(tmp_path: Path, url: str, name: str) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(
        '[core]\n\tbare = false\n[remote "fork"]\n\turl = https://x/y/z\n'
        f'[remote "origin"]\n\tfetch = +a:b\n\turl = {url}\n'
        '[branch "main"]\n\turl = no\n'
    )
    assert default_name(tmp_path) == name
    (tmp_path / "libs" / "core").mkdir(parents=True)
    assert default_name(tmp_path / "libs" / "core") == f"{name}/libs/core"


def test_a_folder_without_a_remote_is_called_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    assert default_name(folder) == "my-code"
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert default_name(folder) == "my-code"


@pytest.mark.parametrize("name", ["", " ", "a b", "a//b", "/a", "a/", "a/../b", ".", "a\nb", "a\x1b[2J", "x" * 201])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(NotAName):
        checked_name(name)


@pytest.mark.parametrize("path", ["/a", "a/../b", "a\tb", "a//b", "", "a\udc80"])
def test_what_cannot_be_a_path_is_none(path: str) -> None:
    assert not is_path(path)
    assert is_path("src/a b.py")


@pytest.mark.parametrize(
    ("patterns", "matching"),
    [
        ((), {"acme/api", "acme/web", "other/api"}),
        (("api",), {"acme/api", "other/api"}),
        (("ACME/Api",), {"acme/api"}),
        (("acme/*",), {"acme/api", "acme/web"}),
        (("web", "other/*"), {"acme/web", "other/api"}),
        (("ap",), set[str]()),
    ],
)
def test_a_filter_means_names_their_last_parts_and_globs(patterns: tuple[str, ...], matching: set[str]) -> None:
    matches = repository_matcher(patterns)
    assert {name for name in ("acme/api", "acme/web", "other/api") if matches(name)} == matching
