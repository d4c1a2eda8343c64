"""What is opened is closed: a folder that goes leaves no connection behind, and none that is in use is taken away."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from server.index.index import Index
from server.lsp.folder import Folder
from server.lsp.folders import Folders, Job
from server.search.query import parse_query
from server.settings import Settings
from server.workspace.overlay import Overlay

SOON = 10.0


def background(_folder: Folder) -> Job:
    return Job(lambda done, total: None, lambda: False)


def eventually(reached: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Index]]:
    """The connections that are open."""
    alive: list[Index] = []
    original_open, original_close = Index.open.__func__, Index.close  # type: ignore[attr-defined]

    def counted_open(cls: type[Index], /, *arguments: object, **keywords: object) -> Index:
        index: Index = original_open(cls, *arguments, **keywords)
        alive.append(index)
        return index

    def counted_close(index: Index) -> None:
        alive.remove(index)
        original_close(index)

    monkeypatch.setattr(Index, "open", classmethod(counted_open))
    monkeypatch.setattr(Index, "close", counted_close)
    yield alive
    assert alive == []


@pytest.fixture
def folders(settings: Settings, opened: list[Index]) -> Iterator[Folders]:
    made = Folders(settings, Overlay(), lambda folder: None, background)
    yield made
    made.close(SOON)


def indexed(folders: Folders) -> Folder:
    [folder] = folders
    eventually(lambda: folder.state == "ready")
    return folder


def test_a_folder_that_goes_is_closed(folders: Folders, workspace: Path, opened: list[Index]) -> None:
    folders.set([workspace.as_uri()])
    with indexed(folders).reading():
        assert len(opened) == 2
    folders.set([])
    eventually(lambda: not opened)


def test_a_search_that_runs_keeps_its_connection(folders: Folders, workspace: Path, opened: list[Index]) -> None:
    folders.set([workspace.as_uri()])
    with indexed(folders).reading() as searcher:
        folders.set([])
        eventually(lambda: opened == [searcher.index])
        assert searcher.search(parse_query("w1")).hits
    assert opened == []


def test_changed_settings_open_anew(folders: Folders, workspace: Path, settings: Settings, opened: list[Index]) -> None:
    folders.set([workspace.as_uri()])
    before = indexed(folders)
    folders.configure(replace(settings, limit=3))
    assert indexed(folders) is before
    folders.configure(replace(settings, max_file_bytes=5000))
    after = indexed(folders)
    assert after is not before
    assert before.retired
    eventually(lambda: len(opened) == 1)


def test_the_folder_of_a_path_is_the_innermost(folders: Folders, workspace: Path) -> None:
    inner = workspace / "inner"
    inner.mkdir()
    folders.set([workspace.as_uri(), inner.as_uri()])
    by_path = {path: folders.holding(path) for path in (workspace / "a.py", inner / "a.py", workspace.parent / "a.py")}
    assert [found and found.path for found in by_path.values()] == [workspace, inner, None]
    named = folders.named(f"{workspace.as_uri()}/")
    assert named is not None
    assert named.path == workspace
    assert folders.named("file:///elsewhere") is None


def test_many_threads_may_search_while_the_folder_is_indexed(folders: Folders, workspace: Path) -> None:
    folders.set([workspace.as_uri()])
    folder = indexed(folders)
    failures: list[BaseException] = []

    def search() -> None:
        try:
            for _ in range(30):
                with folder.reading() as searcher:
                    assert searcher.search(parse_query("w1")).hits
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for n in range(10):
        (workspace / f"new{n}.py").write_text(f"def w{n}():\n    return {n}\n")
        folders.update(folder)
        folder.reopen()
        time.sleep(0.01)
    for thread in threads:
        thread.join(SOON)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_a_folder_follows_its_files(folders: Folders, workspace: Path) -> None:
    folders.set([workspace.as_uri()])
    folder = indexed(folders)
    (workspace / "later.py").write_text("def w6(): ...\n")
    eventually(lambda: found(folder, "w6"))
    (workspace / "later.py").unlink()
    eventually(lambda: not found(folder, "w6"))


def test_an_index_that_was_deleted_is_built_anew_when_it_is_missed(
    folders: Folders, workspace: Path, settings: Settings
) -> None:
    folders.set([workspace.as_uri()])
    folder = indexed(folders)
    assert found(folder, "w1")
    shutil.rmtree(settings.cache_dir)
    with folder.reading() as searcher:
        answer = searcher.search(parse_query("w1"))
        assert answer.hits or folder.pending(answer.pending)
    eventually(lambda: found(folder, "w1"))


def found(folder: Folder, name: str) -> bool:
    with folder.reading() as searcher:
        return name in [hit.name for hit in searcher.search(parse_query(name)).hits]


def test_no_thread_is_left(settings: Settings, workspace: Path) -> None:
    before = set(threading.enumerate())
    folders = Folders(settings, Overlay(), lambda folder: None, background)
    folders.set([workspace.as_uri()])
    indexed(folders)
    folders.close(SOON)
    assert set(threading.enumerate()) <= before
