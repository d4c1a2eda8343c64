"""What an editor gets: answers in its own terms, whatever the workspace is like."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.index.database import DATABASE
from server.settings import Settings

from .peer import Peer, Refused, peer_of, story, working_peer


async def refusal(peer: Peer, method: str, params: object = None) -> Refused:
    with pytest.raises(Refused) as caught:
        await peer.request(method, params)
    return caught.value


@story
async def test_a_hit_says_what_and_where_it_is(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        result = await peer.request("meaning/search", {"query": "w1", "limit": 1})
    [item] = result.pop("items")
    assert item.pop("score") > 0
    assert item == {
        "location": {
            "uri": (workspace / "uploads.py").as_uri(),
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 3, "character": 0}},
        },
        "selectionRange": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 6}},
        "name": "w1",
        "containerName": None,
        "kind": 12,
        "language": "python",
        "preview": "def w1()",
    }
    assert result.pop("tookMs") > 0
    assert result == {"pending": 0, "indexed": 3, "model": "tiny-1"}


@pytest.mark.parametrize(("encodings", "column"), [(["utf-8"], 18), (["utf-16"], 16), (["utf-32"], 15), (None, 16)])
@story
async def test_columns_are_counted_as_the_client_counts(
    settings: Settings, workspace: Path, encodings: list[str] | None, column: int
) -> None:
    (workspace / "a.js").write_text("/* 😀 */ function w7() {}\n", encoding="utf-8")
    async with peer_of(settings) as peer:
        capabilities = await peer.hello(workspace, capabilities={"general": {"positionEncodings": encodings}})
        assert capabilities["positionEncoding"] == (encodings or ["utf-16"])[0]
        await peer.indexed()
        result = await peer.request("meaning/search", {"query": "w7 lang:javascript", "limit": 1})
    start, end = (result["items"][0]["selectionRange"][side]["character"] for side in ("start", "end"))
    assert (start, end) == (column + 2, column + 4)


@story
async def test_filters_may_stand_in_the_query_or_beside_it(settings: Settings, workspace: Path) -> None:
    (workspace / "b.go").write_text("package b\n\nfunc w1() {}\n")
    async with working_peer(settings, workspace) as peer:
        for asked in (
            {"query": "w1 lang:go kind:function"},
            {"query": "w1", "languages": ["go"], "kinds": ["function"]},
            {"query": "w1", "paths": ["*.go"], "kinds": ["function"]},
        ):
            result = await peer.request("meaning/search", asked)
            assert [(item["name"], item["language"]) for item in result["items"]] == [("w1", "go")]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (None, "params are None, they should be an object"),
        ([], "params are [], they should be an object"),
        ({}, "`query` is missing"),
        ({"query": None}, "`query` is None, it should be a string"),
        ({"query": ["x"]}, "`query` is ['x'], it should be a string"),
        ({"query": "  "}, "the query is empty"),
        ({"query": "lang:go"}, "the query is empty"),
        ({"query": "x", "limit": 0}, "`limit` is 0, it should be a whole number from 1 to 1000"),
        ({"query": "x", "limit": "5"}, "`limit` is '5'"),
        ({"query": "x", "limit": True}, "`limit` is True"),
        ({"query": "x", "languages": "go"}, "`languages` is 'go', it should be a list of strings"),
        ({"query": "x", "languages": ["pithon"]}, "unknown language 'pithon': did you mean python?"),
        ({"query": "x kind:thing"}, "unknown kind 'thing'"),
        ({"query": "x", "paths": [1]}, "`paths` is [1]"),
        ({"query": "x", "workspaceFolder": 3}, "`workspaceFolder` is 3"),
        ({"query": "x", "workspaceFolder": "file:///elsewhere"}, "`workspaceFolder` is 'file:///elsewhere', which"),
        ({"query": "x", "workDoneToken": {}}, "`workDoneToken` is {}"),
        ({"query": "x", "partialResultToken": 1.5}, "`partialResultToken` is 1.5"),
    ],
)
@story
async def test_wrong_params_of_a_search_are_refused_by_name(settings: Settings, params: object, message: str) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        error = await refusal(peer, "meaning/search", params)
    assert error.code == -32602
    assert message in error.message


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "`position` is missing"),
        ({"position": {"line": 0, "character": 0}}, "`textDocument` is missing"),
        ({"position": {"line": 0}, "textDocument": {"uri": "file:///x"}}, "`position.character` is missing"),
        ({"position": {"line": -1, "character": 0}, "textDocument": {"uri": "file:///x"}}, "`position.line` is -1"),
        ({"position": {"line": 10**25, "character": 0}, "textDocument": {"uri": "file:///x"}}, "`position.line` is"),
        ({"position": {"line": 0, "character": 0}, "textDocument": {}}, "`textDocument.uri` is missing"),
        ({"position": {"line": 0, "character": 0}, "textDocument": "x"}, "`textDocument` is 'x'"),
    ],
)
@story
async def test_wrong_params_of_similar_are_refused_by_name(settings: Settings, params: object, message: str) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        error = await refusal(peer, "meaning/similar", params)
    assert error.code == -32602
    assert message in error.message


@story
async def test_similar_finds_code_that_does_the_same(settings: Settings, workspace: Path) -> None:
    (workspace / "copy.py").write_text((workspace / "uploads.py").read_text())
    place = {"textDocument": {"uri": (workspace / "uploads.py").as_uri()}, "position": {"line": 1, "character": 3}}
    async with working_peer(settings, workspace) as peer:
        result = await peer.request("meaning/similar", {**place, "limit": 1})
        [item] = result["items"]
        assert (item["name"], item["location"]["uri"]) == ("w1", (workspace / "copy.py").as_uri())
        for uri in ("file:///elsewhere/a.py", "untitled:one", (workspace / "absent.py").as_uri(), ""):
            nowhere = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 3}}
            assert (await peer.request("meaning/similar", nowhere))["items"] == []
        far = {**place, "position": {"line": 10**6, "character": 0}}
        assert (await peer.request("meaning/similar", far))["items"] == []


@story
async def test_workspace_symbols_are_found_by_meaning(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        capabilities = await peer.hello(workspace)
        assert capabilities["workspaceSymbolProvider"]["workDoneProgress"]
        await peer.indexed()
        symbols = await peer.request("workspace/symbol", {"query": "w4"})
        assert symbols[0] == {
            "name": "w4",
            "containerName": "Uploader",
            "kind": 6,
            "location": {
                "uri": (workspace / "uploads.py").as_uri(),
                "range": {"start": {"line": 6, "character": 0}, "end": {"line": 8, "character": 0}},
            },
        }
        for typed in ("", " ", "lang:", "lang:pyth", "kind:meth w4"):
            assert isinstance(await peer.request("workspace/symbol", {"query": typed}), list)
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"workspaceSymbol": False}}})
        assert await peer.request("workspace/symbol", {"query": "w4"}) == []


@story
async def test_commands_do_what_the_requests_do(settings: Settings, workspace: Path) -> None:
    async def execute(command: str, *arguments: object) -> Any:
        return await peer.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    async with peer_of(settings) as peer:
        capabilities = await peer.hello(workspace)
        provider = capabilities["executeCommandProvider"]
        assert set(provider["commands"]) == {"meaning.search", "meaning.reindex"}
        assert provider["workDoneProgress"]
        [report] = (await execute("meaning.reindex"))["folders"]
        assert (report["uri"], report["files"], report["pending"]) == (workspace.as_uri(), 1, 0)
        assert (await execute("meaning.search", "w1"))["items"][0]["name"] == "w1"
        assert len((await execute("meaning.search", {"query": "w1", "limit": 1}))["items"]) == 1
        for command, arguments in (
            ("meaning.guess", ()),
            ("meaning.search", ()),
            ("meaning.search", (3,)),
            ("meaning.search", ("a", "b")),
            ("meaning.reindex", ("x",)),
        ):
            with pytest.raises(Refused, match="-32602"):
                await execute(command, *arguments)


def latest(peer: Peer) -> Iterable[Mapping[str, Any]]:
    """What was told last of each folder."""
    return {told["uri"]: told for told in peer.told("meaning/indexChanged")}.values()


@story
async def test_status_tells_every_folders_state(settings: Settings, workspace: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    async with peer_of(settings) as peer:
        await peer.hello(workspace, absent)
        await peer.until(lambda: {told["state"] for told in latest(peer)} == {"ready", "failed"})
        status = await peer.request("meaning/status")
    assert status["model"] == "tiny-1"
    ready, failed = status["folders"]
    assert (ready["uri"], ready["state"], ready["units"], ready["pending"]) == (workspace.as_uri(), "ready", 3, 0)
    assert (failed["state"], failed["problem"]) == ("failed", f"{absent}: no such folder")


@story
async def test_the_index_follows_saved_and_changed_files(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        peer.notifications.clear()
        new = workspace / "new.py"
        new.write_text("def w8():\n    pass\n")
        peer.notify("textDocument/didSave", {"textDocument": {"uri": new.as_uri()}})
        await peer.until(
            lambda: any(s["files"] == 2 and s["state"] == "ready" for s in peer.told("meaning/indexChanged"))
        )
        assert "w8" in await peer.names("w8")
        new.unlink()
        peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": new.as_uri(), "type": 3}]})
        await peer.until(lambda: peer.told("meaning/indexChanged")[-1]["files"] == 1)
        assert "w8" not in await peer.names("w8")


@story
async def test_changes_that_cannot_matter_start_nothing(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        peer.notifications.clear()
        for uri in ((workspace / ".git" / "index").as_uri(), "file:///elsewhere/a.py", "untitled:one"):
            peer.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        await peer.request("meaning/status")
        assert peer.told("meaning/indexChanged") == []


@story
async def test_folders_come_and_go(settings: Settings, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other folder"
    other.mkdir()
    (other / "a.py").write_text("def w9():\n    pass\n")
    folder = {"uri": other.as_uri(), "name": "other"}
    async with peer_of(settings) as peer:
        capabilities = await peer.hello(workspace)
        assert capabilities["workspace"]["workspaceFolders"]["changeNotifications"]
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
        await peer.indexed()
        result = await peer.request("meaning/search", {"query": "w9", "limit": 1})
        assert result["items"][0]["location"]["uri"] == f"{other.as_uri()}/a.py"
        assert result["indexed"] == 4
        assert await peer.names("w9", workspaceFolder=other.as_uri()) == ["w9"]
        assert "w9" not in await peer.names("w9", workspaceFolder=workspace.as_uri())
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}})
        assert "w9" not in await peer.names("w9")
        peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}})
        await peer.indexed()
        assert "w9" in await peer.names("w9")


@story
async def test_a_folder_within_a_folder_finds_nothing_twice(settings: Settings, workspace: Path) -> None:
    (workspace / "inner").mkdir()
    (workspace / "inner" / "a.py").write_text("def w9():\n    pass\n")
    async with working_peer(settings, workspace, workspace / "inner") as peer:
        assert (await peer.names("w9")).count("w9") == 1


@story
async def test_a_root_without_folders_is_the_folder(settings: Settings, workspace: Path) -> None:
    for roots in ({"rootUri": workspace.as_uri()}, {"rootPath": str(workspace)}):
        async with working_peer(settings, workspaceFolders=None, **roots) as peer:
            assert "w1" in await peer.names("w1")


@pytest.mark.parametrize(
    "folders",
    [
        [],
        [{"uri": "file:///no/such/folder", "name": "absent"}],
        [{"uri": "vscode-vfs://github/a/b", "name": "remote"}],
        [{"uri": "untitled:x", "name": "x"}],
        [{"uri": "http://[bad", "name": "x"}],
        [{"uri": "", "name": ""}],
        None,
    ],
)
@story
async def test_without_a_folder_of_code_there_are_no_hits(settings: Settings, folders: object) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspaceFolders=folders)
        result = await peer.request("meaning/search", {"query": "w1"})
        assert (result["items"], result["indexed"], result["model"]) == ([], 0, "tiny-1")
        assert await peer.request("workspace/symbol", {"query": "w1"}) == []
        await peer.request("meaning/status")


@story
async def test_an_empty_folder_has_nothing_to_find(settings: Settings, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    async with working_peer(settings, empty) as peer:
        result = await peer.request("meaning/search", {"query": "w1"})
    assert (result["items"], result["pending"], result["indexed"]) == ([], 0, 0)


@story
async def test_a_file_as_a_folder_is_told(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace / "uploads.py")
        error = await refusal(peer, "meaning/reindex")
    assert (error.code, error.message) == (-32803, f"{workspace / 'uploads.py'}: no such folder")


@story
async def test_a_folder_that_is_not_there_keeps_no_other_from_being_indexed(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(tmp_path / "gone", workspace)
        [report] = (await peer.request("meaning/reindex"))["folders"]
        assert (report["uri"], report["pending"]) == (workspace.as_uri(), 0)
        gone, there = (await peer.request("meaning/status"))["folders"]
    assert "no such folder" in gone["problem"]
    assert there["problem"] is None


@story
async def test_partial_results_go_out_as_progress(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        result = await peer.request("meaning/search", {"query": "w1", "partialResultToken": "part"})
        symbols = await peer.request("workspace/symbol", {"query": "w1", "partialResultToken": 7})
        assert result["items"] == symbols == []
        assert result["indexed"] == 3
        parts = {told["token"]: told["value"] for told in peer.told("$/progress")}
        assert (parts["part"]["items"][0]["name"], parts[7][0]["name"]) == ("w1", "w1")


def kinds(peer: Peer, token: object) -> list[str]:
    return [told["value"]["kind"] for told in peer.told("$/progress") if told["token"] == token]


@story
async def test_a_request_that_brings_a_token_is_told_its_progress(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await peer.request("meaning/reindex", {"workDoneToken": "index"})
        (workspace / "more.py").write_text("def w3():\n    pass\n")
        await peer.request("meaning/reindex", {"workDoneToken": "more"})
        await peer.request("meaning/search", {"query": "w1", "workDoneToken": "search"})
        await refusal(peer, "meaning/search", {"query": "x", "workDoneToken": "x", "workspaceFolder": "file:///y"})
        first, *middle, last = kinds(peer, "more")
        assert (first, set(middle), last) == ("begin", {"report"}, "end")
        assert {kinds(peer, "index")[0], kinds(peer, "index")[-1]} == {"begin", "end"}
        assert kinds(peer, "search") == ["begin", "end"]
        assert kinds(peer, "x") == []


@story
async def test_a_client_that_cannot_show_progress_is_not_asked_to(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        assert peer.requests == []
        assert peer.told("$/progress") == []


@story
async def test_neither_code_nor_queries_are_logged(
    settings: Settings, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "server")
    async with working_peer(settings, workspace) as peer:
        await peer.names("w2 secret words")
        await refusal(peer, "meaning/search", {"query": "w2 secret words", "limit": 0})
        logged = caplog.text + str(peer.told("window/logMessage"))
    assert "secret" not in logged
    assert "network failed" not in logged


@story
async def test_without_a_runtime_the_user_is_told_once_and_each_request(
    settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        for _ in range(2):
            error = await refusal(peer, "meaning/search", {"query": "w1"})
            assert error.code == -32803
            assert "meaning-lsp[cpu]" in error.message
            await refusal(peer, "meaning/reindex")
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert (folder["state"], folder["problem"]) == ("failed", error.message)
        shown = [message["message"] for message in peer.told("window/showMessage")]
        assert len(shown) == 1
        assert "meaning-lsp[cpu]" in shown[0]


@story
async def test_status_answers_without_a_model(settings: Settings, workspace: Path, tmp_path: Path) -> None:
    async with peer_of(replace(settings, model=str(tmp_path / "absent"))) as peer:
        await peer.hello(workspace)
        status = await peer.request("meaning/status")
        assert status["model"] is None
        assert "no model" in status["problem"]
        assert (await refusal(peer, "meaning/search", {"query": "w1"})).message == status["problem"]


@pytest.mark.parametrize("sound", [0, 4096])
@pytest.mark.parametrize("running", [False, True])
@story
async def test_a_damaged_index_is_built_anew(settings: Settings, workspace: Path, running: bool, sound: int) -> None:
    """All of its file, or all but the first page, which is what opening reads."""

    def damage() -> None:
        [database] = settings.cache_dir.rglob(DATABASE)
        with closing(sqlite3.connect(database)) as connection:  # else all of it is in its log
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.write_bytes(database.read_bytes()[:sound] + b"damage" * 10_000)

    async with working_peer(settings, workspace) as peer:
        if running:
            damage()
            with suppress(Refused):  # The first to see the damage.
                await peer.names("w1")
            await peer.indexed()
            assert "w1" in await peer.names("w1")
    damage()
    async with working_peer(settings, workspace) as peer:
        assert "w1" in await peer.names("w1")


@story
async def test_an_index_that_cannot_be_written_is_told(settings: Settings, workspace: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the cache folder should be")
    async with peer_of(replace(settings, cache_dir=blocked)) as peer:
        await peer.hello(workspace)
        error = await refusal(peer, "meaning/search", {"query": "w1"})
        assert error.code == -32803
        assert str(blocked) in error.message


@story
async def test_many_requests_at_once_are_all_answered(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        answers = await asyncio.gather(*(peer.names(f"w{n}") for n in range(40)), peer.indexed())
    assert len(answers) == 41
