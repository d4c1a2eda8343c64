"""The walk itself: order, links, special files, what cannot be read, limits, speed."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from server.settings import Settings
from server.workspace.builtin import DATA_BYTES
from server.workspace.discover import discover
from server.workspace.ignore import Ignores

from .trees import walk, write

FILES_IN_A_LARGE_TREE = 5_000
SECONDS_FOR_A_LARGE_TREE = 0.6
"""Of one core; over ten times what it takes. 100,000 files take 0.7 s."""


def test_entries_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, {"b/z.py": "", "b/a.py": "", "a.py": "", "c.py": "", "B.py": ""})
    assert [file.path for file in discover(tmp_path, Settings())] == ["B.py", "a.py", "b/a.py", "b/z.py", "c.py"]


def test_a_file_comes_with_its_size_and_times(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "12345"})
    (file,) = discover(tmp_path, Settings())
    status = (tmp_path / "a.py").stat()
    assert (file.size, file.mtime_ns, file.ctime_ns) == (5, status.st_mtime_ns, status.st_ctime_ns)


def test_nothing_is_found_in_an_empty_folder(tmp_path: Path) -> None:
    assert walk(tmp_path) == []


def test_the_root_has_to_be_a_folder(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": ""})
    with pytest.raises(NotADirectoryError):
        list(discover(tmp_path / "a.py", Settings()))
    with pytest.raises(FileNotFoundError):
        list(discover(tmp_path / "gone", Settings()))


def test_large_files_and_data_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"large.py": "x" * 2001, "small.py": "x" * 2000})
    assert walk_unchecked(tmp_path, Settings(max_file_bytes=2000)) == ["small.py"]
    write(tmp_path, {"large.json": "x" * (DATA_BYTES + 1), "small.json": "x" * DATA_BYTES})
    assert walk_unchecked(tmp_path, Settings()) == ["large.py", "small.json", "small.py"]


def walk_unchecked(root: Path, settings: Settings) -> list[str]:
    """Without `Ignores`, which does not look at sizes."""
    return [file.path for file in discover(root, settings)]


def test_what_links_point_to_is_found_once_and_at_its_own_place(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": ""})
    root = write(tmp_path / "root", {"src/a.py": ""})
    (root / "file.py").symlink_to(root / "src/a.py")
    (root / "folder").symlink_to(root / "src")
    (root / "src/circle").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "dangling.py").symlink_to("nowhere.py")
    (root / "out.py").symlink_to(outside / "secret.py")
    (root / "out").symlink_to(outside)
    assert walk(root) == ["src/a.py"]
    ignores = Ignores(root, Settings())
    for path in ["file.py", "folder/a.py", "src/circle/src/a.py", "out.py", "out/secret.py", "self", "dangling.py"]:
        assert ignores.is_ignored(path, is_dir=False), path
    assert ignores.is_ignored("folder", is_dir=True)


def test_the_workspace_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a.py": ""})
    (tmp_path / "link").symlink_to("real")
    assert walk(tmp_path / "link") == ["a.py"]


def test_an_ignore_file_that_is_a_link_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, {"rules": "a.py\n", "a.py": ""})
    (tmp_path / ".gitignore").symlink_to("rules")
    assert walk(tmp_path) == ["a.py", "rules"]


def test_pipes_and_sockets_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / ".gitignore")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(tmp_path / "socket.py"))
    listener.close()
    assert walk(tmp_path) == []
    assert Ignores(tmp_path, Settings()).is_ignored("pipe.py", is_dir=False)


def test_what_cannot_be_read_is_told_and_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"closed/a.py": "", "open/a.py": "", "open/.gitignore": "a.py\n"})
    scandir, read_bytes = os.scandir, Path.read_bytes

    def refusing(place: str) -> object:
        if Path(place).name == "closed":
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    def refuse(file: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    problems: list[tuple[str, str | None]] = []
    found = [f.path for f in discover(tmp_path, Settings(), lambda path, why: problems.append((path, why.strerror)))]
    assert found == ["open/.gitignore", "open/a.py"]
    assert problems == [
        ("closed", "Permission denied"),
        (str(tmp_path / "open/.gitignore"), "Permission denied"),
    ]
    monkeypatch.setattr(Path, "read_bytes", read_bytes)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_not_utf8_is_told_and_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": ""})
    (tmp_path / os.fsdecode(b"\xff.py")).touch()
    (tmp_path / os.fsdecode(b"\xfe")).mkdir()
    write(tmp_path / os.fsdecode(b"\xfe"), {"b.py": ""})
    problems: list[str] = []
    assert [f.path for f in discover(tmp_path, Settings(), lambda path, _: problems.append(path))] == ["a.py"]
    assert problems == ["\udcfe", "\udcff.py"]
    assert Ignores(tmp_path, Settings()).is_ignored("\udcff.py", is_dir=False)
    assert Ignores(tmp_path, Settings()).is_ignored("\udcfe/b.py", is_dir=False)


def test_a_folder_that_goes_away_during_the_walk_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "b/x.py": "", "c.py": ""})
    found = discover(tmp_path, Settings())
    assert next(found).path == "a.py"
    (tmp_path / "b/x.py").unlink()
    (tmp_path / "b").rmdir()
    assert [file.path for file in found] == ["c.py"]


def test_a_tree_of_many_files_is_walked_in_no_time(tmp_path: Path) -> None:
    folders = FILES_IN_A_LARGE_TREE // 50
    (tmp_path / ".gitignore").write_text("\n".join(f"*.gen{i}\n/x{i}/**/y\nname{i}" for i in range(30)))
    for folder in range(folders):
        place = tmp_path / f"group{folder % 20}" / f"folder{folder}"
        place.mkdir(parents=True)
        for file in range(50):
            (place / f"module{file}.py").touch()
    start = time.process_time()
    assert sum(1 for _ in discover(tmp_path, Settings())) == FILES_IN_A_LARGE_TREE + 1
    assert time.process_time() - start < SECONDS_FOR_A_LARGE_TREE
