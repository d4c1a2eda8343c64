"""Settings come from the client in three ways, hold at once, and a bad one costs nothing but a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.lsp import session
from server.settings import Settings

from .peer import Json, Peer, peer_of, story, working_peer

ASKS = {"workspace": {"configuration": True}}


def shown(peer: Peer) -> list[str]:
    return [message["message"] for message in peer.told("window/showMessage")]


async def limit(peer: Peer) -> int:
    return len(await peer.names("w1"))


@story
async def test_initialization_options_hold(settings: Settings, workspace: Path) -> None:
    for options in ({"limit": 2}, {"meaning": {"limit": 2}}):
        async with working_peer(settings, workspace, initializationOptions=options) as peer:
            assert await limit(peer) == 2
            assert shown(peer) == []


@story
async def test_the_clients_configuration_is_asked_for(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        peer.answers["workspace/configuration"] = lambda params: [
            {"limit": 1, "trace": {"server": "off"}, "model": None}
        ]
        await peer.hello(workspace, capabilities=ASKS, initializationOptions={"limit": 2})
        await peer.indexed()
        assert await limit(peer) == 1
        assert peer.requests == [("workspace/configuration", {"items": [{"section": "meaning"}]})]
        assert shown(peer) == []


@story
async def test_a_client_that_does_not_answer_is_served_all_the_same(
    settings: Settings, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silence(_params: Json) -> Json:
        raise NotImplementedError

    monkeypatch.setattr(session, "CLIENT_SECONDS", 0.1)
    async with peer_of(settings) as peer:
        peer.answers["workspace/configuration"] = silence
        await peer.hello(workspace, capabilities=ASKS)
        await peer.indexed()
        assert "w1" in await peer.names("w1")


@story
async def test_changed_settings_hold_at_once(settings: Settings, workspace: Path) -> None:
    async with working_peer(settings, workspace) as peer:
        assert await limit(peer) == 3
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"limit": 1}}})
        assert await limit(peer) == 1
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"limit": 2}}})
        assert await limit(peer) == 2


@story
async def test_changed_settings_are_asked_for_when_they_are_not_sent(settings: Settings, workspace: Path) -> None:
    answers = [[{"limit": 1}], [{}], [None], []]
    async with peer_of(settings) as peer:
        peer.answers["workspace/configuration"] = lambda params: answers.pop(0)
        await peer.hello(workspace, capabilities=ASKS)
        await peer.indexed()
        assert await limit(peer) == 1
        every: list[Json] = [None, {}, {"other": {}}]
        for pushed in every:
            peer.notify("workspace/didChangeConfiguration", {"settings": pushed})
            await peer.request("meaning/status")
        await peer.until(lambda: not answers)
        assert await limit(peer) == 3


@story
async def test_a_setting_that_the_index_depends_on_is_taken_up(settings: Settings, workspace: Path) -> None:
    (workspace / "generated").mkdir()
    (workspace / "generated" / "a.py").write_text("def w9():\n    pass\n")
    async with working_peer(settings, workspace) as peer:
        assert "w9" in await peer.names("w9")
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"exclude": ["generated/"]}}})
        await peer.indexed()
        assert "w9" not in await peer.names("w9")
        assert "w1" in await peer.names("w1")


@story
async def test_bad_values_are_shown_once_by_name_and_the_defaults_hold(settings: Settings, workspace: Path) -> None:
    bad = {"limit": "many", "threads": 0, "exclude": "x", "modle": "y", "model": "/no/such/model", "workspaceSymbol": 1}
    async with working_peer(settings, workspace, initializationOptions=bad) as peer:
        assert await limit(peer) == 3
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {**bad, "maxFileBytes": 2000}}})
        await peer.indexed()
        names = sorted(message.split(":")[0] for message in shown(peer))
    assert names == sorted(f"meaning.{name}" for name in bad)


@story
async def test_settings_that_are_no_object_are_shown_and_ignored(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace, initializationOptions=["limit", 2])
        peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": "x"}})
        peer.notify("workspace/didChangeConfiguration", {"settings": 3})
        await peer.indexed()
        assert await limit(peer) == 3
        assert [message.split(":")[0] for message in shown(peer)] == ["initializationOptions", "settings"]


@story
async def test_the_client_is_asked_to_tell_of_changes_where_it_can(settings: Settings, workspace: Path) -> None:
    dynamic = {"dynamicRegistration": True}
    able = {"workspace": {"didChangeWatchedFiles": dynamic, "didChangeConfiguration": dynamic}}
    async with peer_of(settings) as peer:
        await peer.hello(workspace, capabilities=able)
        await peer.until(lambda: peer.requests)
        [(method, params)] = peer.requests
        assert method == "client/registerCapability"
        assert [registration["method"] for registration in params["registrations"]] == [
            "workspace/didChangeWatchedFiles",
            "workspace/didChangeConfiguration",
        ]
