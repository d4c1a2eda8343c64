"""Whatever takes long can be given up, and nothing that takes long holds up anything else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server.index.index import Index
from server.index.report import IndexReport, Progress
from server.search.answer import Answer, Query
from server.search.searcher import Cancelled, Searcher
from server.settings import Settings

from .peer import PATIENCE, Refused, peer_of, story, working_peer


class SlowUpdate:
    """An update of the index that lasts until it is cancelled, or let go."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.go = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, index: Index, progress: Progress, cancelled: Callable[[], bool], *_: object) -> IndexReport:
        progress(0, 30)
        self.running.set()
        while not self.go.wait(0.005):
            progress(1, 30)
            if cancelled():
                self.cancelled.set()
                return IndexReport(1, 3, 0, 3, 0, 0.1, 9)
        return IndexReport(1, 3, 0, 3, 0, 0.1, 0)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowUpdate]:
    update = SlowUpdate()
    monkeypatch.setattr(Index, "update", lambda index, *a, **_: update(index, *a))
    yield update
    update.go.set()


async def event(happens: threading.Event) -> None:
    assert await asyncio.to_thread(happens.wait, PATIENCE)


@story
async def test_a_search_can_be_cancelled(settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, given_up = threading.Event(), threading.Event()

    def endless(searcher: Searcher, query: Query, cancelled: Callable[[], bool]) -> Answer:
        running.set()
        while not cancelled():
            time.sleep(0.005)
        given_up.set()
        raise Cancelled

    monkeypatch.setattr(Searcher, "search", endless)
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        for method, params in (
            ("meaning/search", {"query": "w1"}),
            ("workspace/symbol", {"query": "w1"}),
            ("workspace/executeCommand", {"command": "meaning.search", "arguments": ["w1"]}),
        ):
            running.clear()
            given_up.clear()
            msg_id, result = peer.begin(method, params)
            await event(running)
            peer.notify("$/cancelRequest", {"id": msg_id})
            with pytest.raises(Refused, match="-32800"):
                await asyncio.wait_for(result, PATIENCE)
            await event(given_up)
        given_up.clear()
        _, result = peer.begin("meaning/search", {"query": "w1", "workDoneToken": "t"})
        await peer.until(lambda: peer.told("$/progress"))
        peer.notify("window/workDoneProgress/cancel", {"token": "t"})
        with pytest.raises(Refused, match="-32800"):
            await asyncio.wait_for(result, PATIENCE)


@pytest.mark.parametrize("by", ["request", "command", "progress"])
@story
async def test_a_reindex_can_be_cancelled(settings: Settings, workspace: Path, slow: SlowUpdate, by: str) -> None:
    slow.go.set()
    async with working_peer(settings, workspace) as peer:
        slow.go.clear()
        slow.running.clear()
        if by == "command":
            msg_id, result = peer.begin("workspace/executeCommand", {"command": "meaning.reindex"})
        else:
            msg_id, result = peer.begin("meaning/reindex", {"workDoneToken": "t"})
        await event(slow.running)
        if by == "progress":
            peer.notify("window/workDoneProgress/cancel", {"token": "t"})
            assert (await asyncio.wait_for(result, PATIENCE))["folders"][0]["pending"] == 9
        else:
            peer.notify("$/cancelRequest", {"id": msg_id})
            with pytest.raises(Refused, match="-32800"):
                await asyncio.wait_for(result, PATIENCE)
        await event(slow.cancelled)


@story
async def test_the_user_can_click_indexing_away(settings: Settings, workspace: Path, slow: SlowUpdate) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace, capabilities={"window": {"workDoneProgress": True}})
        await peer.until(lambda: peer.told("$/progress"))
        [(method, created)] = peer.requests
        assert method == "window/workDoneProgress/create"
        assert peer.told("$/progress")[0]["token"] == created["token"]
        assert peer.told("$/progress")[0]["value"]["kind"] == "begin"
        peer.notify("window/workDoneProgress/cancel", created)
        await event(slow.cancelled)
        await peer.until(lambda: peer.told("$/progress")[-1]["value"]["kind"] == "end")


@story
async def test_searching_does_not_wait_for_indexing(settings: Settings, workspace: Path, slow: SlowUpdate) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
        result = await peer.request("meaning/search", {"query": "w1"})
        assert result["pending"] > 0
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert (folder["state"], folder["total"]) == ("indexing", 30)


@story
async def test_an_answer_from_before_the_end_of_an_update_says_so(
    settings: Settings, workspace: Path, slow: SlowUpdate, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched, ready = threading.Event(), threading.Event()
    search = Searcher.search

    def overtaken(searcher: Searcher, *arguments: Any) -> Answer:
        answer = search(searcher, *arguments)
        searched.set()
        assert ready.wait(PATIENCE)
        return answer

    monkeypatch.setattr(Searcher, "search", overtaken)
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
        _, result = peer.begin("meaning/search", {"query": "w1"})
        await event(searched)
        slow.go.set()
        await peer.indexed()
        ready.set()
        assert (await asyncio.wait_for(result, PATIENCE))["pending"] > 0


@story
async def test_changes_during_an_update_make_one_more(settings: Settings, workspace: Path, slow: SlowUpdate) -> None:
    def updates() -> int:
        return sum(status["state"] == "indexing" for status in peer.told("meaning/indexChanged"))

    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
        for _ in range(50):
            peer.notify("textDocument/didSave", {"textDocument": {"uri": (workspace / "uploads.py").as_uri()}})
        await peer.request("meaning/status")
        slow.go.set()
        await peer.until(lambda: updates() == 2 and peer.told("meaning/indexChanged")[-1]["state"] == "ready")
        await peer.request("meaning/status")
        assert updates() == 2


@story
async def test_a_folder_that_leaves_stops_its_update(settings: Settings, workspace: Path, slow: SlowUpdate) -> None:
    folder = {"uri": workspace.as_uri(), "name": "x"}
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
        _, waiting = peer.begin("meaning/reindex")
        await peer.request("meaning/status")
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}})
        await event(slow.cancelled)
        assert await asyncio.wait_for(waiting, PATIENCE) == {"folders": []}


@story
async def test_the_server_ends_at_once_while_it_indexes(settings: Settings, workspace: Path, slow: SlowUpdate) -> None:
    start = time.monotonic()
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
    await event(slow.cancelled)
    assert time.monotonic() - start < PATIENCE / 2


@story
async def test_an_index_that_another_process_writes_is_looked_at_again(
    settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = [5, 4, 0]

    def update(index: Index, *arguments: Any, **keywords: Any) -> IndexReport:
        return IndexReport(1, 3, 0, 3, 0, 0.1, pending.pop(0))

    monkeypatch.setattr("server.lsp.folders.FOLLOW_SECONDS", 0.01)
    monkeypatch.setattr(Index, "update", update)
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await peer.until(lambda: sum(s["state"] == "ready" for s in peer.told("meaning/indexChanged")) == 3)
    assert pending == []


@story
async def test_a_folder_that_leaves_during_a_reindex_costs_the_others_nothing(
    settings: Settings, workspace: Path, tmp_path: Path, slow: SlowUpdate
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    comes, goes = ({"uri": folder.as_uri(), "name": folder.name} for folder in (other, workspace))
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await event(slow.running)
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [comes], "removed": []}})
        _, answer = peer.begin("meaning/reindex")
        await peer.request("meaning/status")
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [goes]}})
        await event(slow.cancelled)
        slow.go.set()
        [report] = (await asyncio.wait_for(answer, PATIENCE))["folders"]
    assert report["uri"] == other.as_uri()


@story
async def test_a_reindex_during_which_settings_change_is_one_with_these(
    settings: Settings, workspace: Path, slow: SlowUpdate
) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        _, answer = peer.begin("meaning/reindex")
        await event(slow.running)
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"maxFileBytes": 5000}}})
        await event(slow.cancelled)
        slow.go.set()
        [report] = (await asyncio.wait_for(answer, PATIENCE))["folders"]
    assert report["pending"] == 0
