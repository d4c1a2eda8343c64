"""Where changes are not seen as they happen: the user is told once, and what the client tells counts."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from server.settings import Settings

from .peer import peer_of, story, working_peer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture
def _no_instance_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise OSError(errno.EMFILE, "no inotify instance is left")

    monkeypatch.setattr("server.workspace.inotify.Inotify.__init__", refuse)


@pytest.mark.usefixtures("_no_instance_left")
@story
async def test_the_clients_word_counts_where_nothing_is_watched(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await peer.until(lambda: "ready" in [told["state"] for told in peer.told("meaning/indexChanged")])
        new = workspace / "new.py"
        new.write_text("def w6(): ...\n")
        peer.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": new.as_uri(), "type": 1}]})
        await peer.until(lambda: peer.told("meaning/indexChanged")[-1]["files"] == 2)
        assert "w6" in await peer.names("w6")
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert folder["watch"] == "rescanning"
        await peer.indexed()
        warned = [shown["message"] for shown in peer.told("window/showMessage")]
        assert warned == [f"{workspace}: some changes are seen late: no inotify instance is left"]


@pytest.mark.usefixtures("_no_instance_left")
@story
async def test_a_limit_that_many_folders_meet_is_told_once(settings: Settings, workspace: Path) -> None:
    others = [workspace / name for name in ("one", "two", "three")]
    for folder in others:
        folder.mkdir()
    async with working_peer(settings, workspace, *others) as peer:
        told = {status["uri"] for status in peer.told("meaning/indexChanged") if status["watch"] == "rescanning"}
        assert len(told) == 4
        assert len(peer.told("window/showMessage")) == 1


@story
async def test_what_is_watched_needs_nobodys_word(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        await peer.until(lambda: peer.told("meaning/indexChanged"))
        (workspace / "new.py").write_text("def w6(): ...\n")
        await peer.until(lambda: peer.told("meaning/indexChanged")[-1]["files"] == 2)
        assert peer.told("meaning/indexChanged")[-1]["watch"] == "watching"
        assert peer.told("window/showMessage") == []


@story
async def test_a_change_that_the_system_does_not_tell_is_taken_up_when_an_answer_meets_it(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    file = workspace / "uploads.py"
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.hardlink_to(file)
    async with working_peer(settings, workspace) as peer:
        elsewhere.write_text(file.read_text().replace("w1", "w6"))  # an event of the other name, which is not watched
        assert "w1" not in await peer.names("w1")
        while "w6" not in await peer.names("w6"):
            await peer.indexed()
