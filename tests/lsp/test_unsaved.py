"""What an editor shows is what is found, saved or not; and nobody but this editor sees it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from server.embed.embedder import Embedder, Vectors
from server.lsp import session
from server.settings import Settings

from .conftest import UPLOADS
from .peer import Peer, story, working_peer

Json = Any


def opened(peer: Peer, file: Path, text: str | None = None) -> None:
    shown = file.read_text() if text is None else text
    document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": shown}
    peer.notify("textDocument/didOpen", {"textDocument": document})


def typed(peer: Peer, file: Path, text: str, start: tuple[int, int] = (0, 0), end: tuple[int, int] = (0, 0)) -> None:
    """`text` in place of what stood between two positions."""
    change = {
        "range": {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        },
        "text": text,
    }
    params = {"textDocument": {"uri": file.as_uri(), "version": 2}, "contentChanges": [change]}
    peer.notify("textDocument/didChange", params)


def saved(peer: Peer, file: Path, text: str) -> None:
    file.write_text(text)
    peer.notify("textDocument/didSave", {"textDocument": {"uri": file.as_uri()}})


def closed(peer: Peer, file: Path) -> None:
    peer.notify("textDocument/didClose", {"textDocument": {"uri": file.as_uri()}})


async def hit(peer: Peer, name: str) -> Json:
    """The one hit of this name, None if there is none."""
    result = await peer.request("meaning/search", {"query": name, "limit": 100})
    named = [item for item in result["items"] if item["name"] == name]
    assert len(named) <= 1
    return named[0] if named else None


async def lines(peer: Peer, name: str) -> tuple[int, int]:
    found = (await hit(peer, name))["location"]["range"]
    return found["start"]["line"], found["end"]["line"]


@story
async def test_hits_follow_the_buffer_and_a_close_without_a_save_returns_to_the_disk(
    settings: Settings, workspace: Path
) -> None:
    file = workspace / "uploads.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file)
        assert await lines(peer, "w1") == (0, 3)
        typed(peer, file, "\n\n")
        assert await lines(peer, "w1") == (2, 5)
        typed(peer, file, "w7", (2, 4), (2, 6))
        assert await hit(peer, "w1") is None
        assert await lines(peer, "w7") == (2, 5)
        assert await hit(peer, "w4")
        closed(peer, file)
        assert await hit(peer, "w7") is None
        assert await lines(peer, "w1") == (0, 3)
    assert "w7" not in file.read_text()


@story
async def test_a_save_makes_it_everybodys(settings: Settings, workspace: Path) -> None:
    file = workspace / "uploads.py"
    text = "def w7():\n    return 'w8 w9'\n"
    async with working_peer(settings, workspace) as peer, working_peer(settings, workspace) as other:
        opened(peer, file)
        typed(peer, file, text, (0, 0), (99, 0))
        assert await hit(peer, "w7")
        assert await hit(other, "w7") is None
        saved(peer, file, text)
        await other.indexed()
        assert await hit(other, "w7")
        assert await hit(peer, "w7")
        closed(peer, file)
        assert await hit(peer, "w7")
        assert await hit(peer, "w1") is None


@story
async def test_a_file_that_was_never_saved_is_found(settings: Settings, workspace: Path) -> None:
    file = workspace / "never.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file, "def w9(): ...\n")
        assert (await hit(peer, "w9"))["location"]["uri"] == file.as_uri()
        closed(peer, file)
        assert await hit(peer, "w9") is None


@pytest.mark.parametrize("name", ["left_out.py", "node_modules/a.py", "../elsewhere.py", "notes.bin"])
@story
async def test_what_would_not_be_indexed_is_not_found(settings: Settings, workspace: Path, name: str) -> None:
    (workspace / ".ignore").write_text("left_out.py\n")
    async with working_peer(settings, workspace) as peer:
        opened(peer, workspace / name, "def w9(): ...\n\0" if name.endswith(".bin") else "def w9(): ...\n")
        assert await hit(peer, "w9") is None


@story
async def test_nothing_outside_is_read_through_a_link(settings: Settings, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "link").symlink_to(outside)
    async with working_peer(settings, workspace) as peer:
        opened(peer, workspace / "link" / "a.py", "def w9(): ...\n")
        assert await hit(peer, "w9") is None


@pytest.mark.parametrize("by_link", ["folder", "document"])
@story
async def test_a_workspace_and_its_documents_may_be_named_by_a_link_and_without(
    settings: Settings, workspace: Path, tmp_path: Path, by_link: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace)
    root, documents = (link, workspace) if by_link == "folder" else (workspace, link)
    async with working_peer(settings, root) as peer:
        opened(peer, documents / "uploads.py", "\n\n" + UPLOADS)
        assert await lines(peer, "w1") == (2, 5)
        assert (await hit(peer, "w1"))["location"]["uri"] == (root / "uploads.py").as_uri()
        typed(peer, documents / "uploads.py", "\n")
        assert await lines(peer, "w1") == (3, 6)
        closed(peer, documents / "uploads.py")
        assert await lines(peer, "w1") == (0, 3)


@pytest.mark.parametrize(
    ("encoding", "after_comment", "column"), [("utf-8", 10, 20), ("utf-16", 8, 18), ("utf-32", 7, 17)]
)
@story
async def test_columns_of_a_buffer_are_the_clients(
    settings: Settings, workspace: Path, encoding: str, after_comment: int, column: int
) -> None:
    file = workspace / "a.js"
    async with working_peer(settings, workspace, capabilities={"general": {"positionEncodings": [encoding]}}) as peer:
        opened(peer, file, "\r\n/* 😀 */\r\n")
        typed(peer, file, " function w7() {}", (1, after_comment), (1, after_comment))
        found = (await hit(peer, "w7"))["selectionRange"]
        assert found["start"] == {"line": 1, "character": column}
        assert found["end"] == {"line": 1, "character": column + 2}


@story
async def test_what_is_typed_is_embedded_once(
    settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    original = Embedder._embed

    def counted(embedder: Embedder, texts: Sequence[tuple[str, Sequence[int]]]) -> list[Vectors]:
        embedded.extend(text for text, _ in texts)
        return original(embedder, texts)

    file = workspace / "uploads.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file)
        monkeypatch.setattr(Embedder, "_embed", counted)
        typed(peer, file, "# above\n\n")
        assert await lines(peer, "w1") == (2, 5)
        assert len(embedded) == 1  # the comment
        typed(peer, file, "w9", (2, 4), (2, 6))
        assert await hit(peer, "w9")
        assert await hit(peer, "w4")
        assert len(embedded) == 2
        saved(peer, file, "# above\n\n" + UPLOADS.replace("w1", "w9"))
        await peer.indexed()
        closed(peer, file)
        assert await hit(peer, "w9")
        assert len(embedded) == 2


@story
async def test_similar_code_is_found_from_the_buffer(settings: Settings, workspace: Path) -> None:
    file = workspace / "uploads.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file, "\n\n\ndef w9():\n    return w2\n")
        place = {"textDocument": {"uri": file.as_uri()}, "position": {"line": 4, "character": 0}}
        assert (await peer.request("meaning/similar", place))["items"] == []
        (workspace / "other.py").write_text("def w8():\n    return w2\n")
        await peer.indexed()
        assert [item["name"] for item in (await peer.request("meaning/similar", place))["items"]] == ["w8"]


@story
async def test_a_deleted_file_is_gone_though_it_is_open(settings: Settings, workspace: Path) -> None:
    file = workspace / "uploads.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file)
        assert await hit(peer, "w1")
        file.unlink()
        await peer.indexed()
        assert await hit(peer, "w1") is None
        typed(peer, file, "\n")  # There is something to lose now.
        assert await hit(peer, "w1")


@story
async def test_a_deleted_file_is_gone_though_nobody_searched_since_it_was_opened(
    settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SEARCH_THREADS", 1)  # What the server does for a message is done in its turn.
    one, other = workspace / "uploads.py", workspace / "other.py"
    async with working_peer(settings, workspace) as peer:
        opened(peer, one)
        opened(peer, other, "def w8():\n    pass\n")
        saved(peer, other, "def w8():\n    pass\n")
        await peer.request("meaning/status")
        one.unlink()
        other.rename(workspace / "third.py")
        await peer.indexed()
        assert await hit(peer, "w1") is None
        assert (await hit(peer, "w8"))["location"]["uri"].endswith("third.py")


@story
async def test_an_open_document_is_left_out_as_long_as_its_file_is(settings: Settings, workspace: Path) -> None:
    file, rules = workspace / "uploads.py", workspace / ".ignore"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file, "def w8():\n    pass\n")
        assert await hit(peer, "w8")
        rules.write_text("uploads.py\n")
        await peer.indexed()
        assert await hit(peer, "w8") is None
        rules.write_text("")
        await peer.indexed()
        assert await hit(peer, "w8")
        assert await hit(peer, "w1") is None


@story
async def test_a_deleted_file_stays_gone_whatever_the_ignore_files_say(settings: Settings, workspace: Path) -> None:
    file, rules = workspace / "uploads.py", workspace / ".ignore"
    async with working_peer(settings, workspace) as peer:
        opened(peer, file)
        assert await hit(peer, "w1")
        file.unlink()
        for rule in ("uploads.py\n", ""):
            rules.write_text(rule)
            await peer.indexed()
            assert await hit(peer, "w1") is None
