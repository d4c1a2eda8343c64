"""A workspace folder that goes and comes back, or whose name leads elsewhere: what is there is what is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from server.settings import Settings

from .peer import Peer, story, working_peer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="what is open cannot be moved there")


def states(peer: Peer) -> list[str]:
    return [told["state"] for told in peer.told("meaning/indexChanged")]


@story
async def test_a_folder_that_is_moved_away_is_told_once_and_found_again(settings: Settings, workspace: Path) -> None:
    away = workspace.parent / "away"
    async with working_peer(settings, workspace) as peer:
        workspace.rename(away)
        await peer.until(lambda: states(peer)[-1] == "failed")
        assert await peer.names("w1") == []
        (away / "uploads.py").write_text("def w9():\n    pass\n")
        peer.notifications.clear()
        away.rename(workspace)
        await peer.until(lambda: "ready" in states(peer))
        assert await peer.names("w9") == ["w9"]
        workspace.rename(away)
        await peer.until(lambda: states(peer)[-1] == "failed")
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert folder["problem"] == f"{workspace}: no such folder"
        assert peer.told("window/showMessage") == []


@story
async def test_a_link_that_is_turned_leads_to_another_folder(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    other, current = tmp_path / "other", tmp_path / "current"
    other.mkdir()
    (other / "a.py").write_text("def w9():\n    pass\n")
    current.symlink_to(workspace)
    async with working_peer(settings, current) as peer:
        assert "w1" in await peer.names("w1")
        current.unlink()
        current.symlink_to(other)
        await peer.indexed()
        result = await peer.request("meaning/search", {"query": "w9"})
        assert [item["location"]["uri"] for item in result["items"]] == [f"{current.as_uri()}/a.py"]


@story
async def test_a_folder_may_be_moved_and_leave_a_link_in_its_place(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    async with working_peer(settings, workspace) as peer:
        workspace.rename(elsewhere)
        workspace.symlink_to(elsewhere)
        await peer.indexed()
        (elsewhere / "more.py").write_text("def w9():\n    pass\n")
        peer.notify("textDocument/didSave", {"textDocument": {"uri": (workspace / "more.py").as_uri()}})
        await peer.indexed()
        assert "w9" in await peer.names("w9")
        workspace.unlink()
        elsewhere.rename(workspace)
        (workspace / "more.py").unlink()
        await peer.indexed()
        assert set(await peer.names("w9")) == {"w1", "w4", "Uploader"}
