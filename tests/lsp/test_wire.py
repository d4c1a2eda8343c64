"""No message, however wrong, ends the server; each request is answered, by the error that the specification names."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import io
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.lsp import client_process, wire
from server.lsp.server import serve
from server.lsp.session import CLIENT_SECONDS
from server.lsp.wire import LONGEST_MESSAGE, MOST_HELD, Held, messages
from server.settings import Settings

from .peer import PATIENCE, Peer, Refused, peer_of, story


def bodies(data: bytes) -> list[bytes]:
    return list(messages(io.BytesIO(data)))


GOOD = b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "data",
    [
        GOOD,
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}",
        b"Content-Type: a\r\ncontent-length:2\r\n\r\n{}",
        b"Content-Length: 2\n\n{}",
    ],
)
def test_every_spelling_of_a_header_is_read(data: bytes) -> None:
    assert bodies(data + data) == [b"{}", b"{}"]


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: %d\r\n\r\n{}" % (LONGEST_MESSAGE + 1),
        b"Content-Length: 99999999999999999999999999\r\n\r\n{}",
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff\xfe\x00",
        b"{}",
    ],
)
def test_what_is_no_message_is_skipped_up_to_the_next_one(broken: bytes) -> None:
    assert bodies(GOOD + broken + GOOD + GOOD) == [b"{}", b"{}", b"{}"]


def test_a_stream_that_ends_within_a_message_ends() -> None:
    assert bodies(GOOD + b"Content-Length: 10\r\n\r\n{") == [b"{}"]
    assert bodies(b"Content-Len") == []


async def refusal(peer: Peer, method: str, params: object = None) -> Refused:
    with pytest.raises(Refused) as caught:
        await peer.request(method, params)
    return caught.value


@story
async def test_a_request_before_initialize_is_refused(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        assert (await refusal(peer, "meaning/search", {"query": "x"})).code == -32002
        assert (await refusal(peer, "shutdown")).code == -32002
        peer.notify("textDocument/didSave", {"textDocument": {"uri": "file:///x"}})
        await peer.hello()


@story
async def test_a_second_initialize_is_refused(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        assert (
            await refusal(peer, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        ).code == -32600


@story
async def test_a_request_after_shutdown_is_refused(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        await peer.request("shutdown")
        assert (await refusal(peer, "meaning/search", {"query": "x"})).code == -32600
        assert (await refusal(peer, "shutdown")).code == -32600
        peer.notify("textDocument/didSave", {"textDocument": {"uri": "file:///x"}})


@story
async def test_an_unknown_method_is_refused_by_name(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        error = await refusal(peer, "meaning/guess", {"a": [1]})
        assert (error.code, error.message) == (-32601, "Method Not Found: meaning/guess")
        peer.send({"jsonrpc": "2.0", "id": "no params", "method": "meaning/guess"})
        with pytest.raises(Refused, match="-32601"):
            await peer.response("no params")
        peer.notify("meaning/nothing", {"a": 1})
        peer.notify("$/nothing")
        await peer.request("meaning/status")


@story
async def test_text_that_is_not_json_is_answered_and_forgotten(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        for body in (b"{", b"\xff\xff", b"[" * 100_000, b"not json"):
            answered = peer.response(None)
            peer.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            with pytest.raises(Refused, match="-32700"):
                await answered
        await peer.request("meaning/status")


NO_IDS: list[object] = [None, 1.5, True, [], {}]
NO_MESSAGES: list[object] = [
    *([], 1, "x", None, {}, {"jsonrpc": "1.0", "id": 1, "method": "x"}),
    *({"jsonrpc": "2.0", "id": each, "method": "meaning/status"} for each in NO_IDS),
]


@pytest.mark.parametrize("message", NO_MESSAGES)
@story
async def test_json_that_is_no_message_is_answered_and_forgotten(settings: Settings, message: object) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        answered = peer.response(None)
        peer.send(message)
        with pytest.raises(Refused, match="-32600"):
            await answered
        await peer.request("meaning/status")


@story
async def test_a_method_that_is_no_string_is_answered(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        answered = peer.response(7)
        peer.send({"jsonrpc": "2.0", "id": 7, "method": 3})
        with pytest.raises(Refused, match="-32600"):
            await answered


@story
async def test_a_broken_header_costs_no_later_message(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        peer.raw(b'Content-Length: many\r\n\r\n{"jsonrpc": "2.0", "method": "exit"}')
        assert (await peer.request("meaning/status"))["folders"] == []


@story
async def test_wrong_params_of_a_request_of_the_protocol_name_the_field(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        every: list[object] = [{}, None, 3, []]
        for params in every:
            error = await refusal(peer, "workspace/symbol", params)
            assert error.code == -32602
            assert "params" in error.message
        assert "params.query" in (await refusal(peer, "workspace/symbol", {})).message


@story
async def test_broken_notifications_and_responses_are_survived(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        peer.notify("textDocument/didOpen", {"textDocument": 3})
        peer.notify("textDocument/didChange", {"textDocument": {"uri": "file:///never/opened", "version": 1}})
        peer.notify("workspace/didChangeWorkspaceFolders", None)
        peer.notify("$/cancelRequest", {})
        peer.notify("$/cancelRequest", {"id": 999})
        peer.notify("window/workDoneProgress/cancel", {"token": "unknown"})
        peer.send({"jsonrpc": "2.0", "id": "nobody asked", "result": 1})
        peer.send({"jsonrpc": "2.0", "id": "nobody asked", "error": "x"})
        peer.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}})
        await peer.indexed()
        assert "w1" in await peer.names("w1")


@story
async def test_a_notification_that_is_sent_as_a_request_is_answered(settings: Settings, workspace: Path) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(workspace)
        params = {"textDocument": {"uri": (workspace / "a.py").as_uri()}}
        error = await refusal(peer, "textDocument/didSave", params)
        assert error.code == -32600
        assert "notification" in error.message


@pytest.mark.parametrize("token", ["workDoneToken", "partialResultToken"])
@story
async def test_a_token_that_is_none_is_refused(settings: Settings, token: str) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        error = await refusal(peer, "workspace/symbol", {"query": "x", token: []})
        assert error.code == -32602
        assert token in error.message


# -- whose an id is


def unanswered(_params: object) -> object:
    raise NotImplementedError


ASKED = {"workspace": {"configuration": True}}
"""The capability of a client that is asked for its settings, which requests wait for."""


@story
async def test_a_response_ends_no_request_of_the_client_s_own(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        peer.answers["workspace/configuration"] = unanswered
        await peer.hello(capabilities=ASKED)
        msg_id, waiting = peer.begin("meaning/status")
        peer.send({"jsonrpc": "2.0", "id": msg_id, "result": "mine"})
        peer.send({"jsonrpc": "2.0", "id": msg_id, "error": {"code": 1, "message": "mine"}})
        peer.notify("$/cancelRequest", {"id": msg_id})
        with pytest.raises(Refused, match="-32800"):
            await asyncio.wait_for(waiting, PATIENCE)


@pytest.mark.parametrize("broken", [{}, {"error": 3}, {"error": {}}, {"result": 1, "error": []}])
@story
async def test_a_broken_answer_is_as_good_as_none(settings: Settings, broken: dict[str, object]) -> None:
    async with peer_of(settings) as peer:
        peer.answers["workspace/configuration"] = unanswered
        asked: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        original = peer._take

        def take(message: dict[str, object]) -> None:
            if message.get("method") == "workspace/configuration":
                asked.set_result(message["id"])
            original(message)

        peer._take = take  # type: ignore[method-assign]
        await peer.hello(capabilities=ASKED)
        peer.send({"jsonrpc": "2.0", "id": await asked, **broken})
        await asyncio.wait_for(peer.begin("meaning/status")[1], CLIENT_SECONDS / 2)


ODD_NAMES: list[object] = [None, 1.5, True, [], [[]], {}, {"a": 1}]


@pytest.mark.parametrize("name", ODD_NAMES)
@story
async def test_a_cancellation_of_what_is_no_name_is_ignored(
    settings: Settings, caplog: pytest.LogCaptureFixture, name: object
) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        peer.notify("$/cancelRequest", {"id": name})
        peer.notify("window/workDoneProgress/cancel", {"token": name})
        await peer.request("meaning/status")
        assert [each["message"].rpartition("@ ")[2] for each in peer.told("window/logMessage")] == [
            "params.id",
            "params.token",
        ]
    assert not [record for record in caplog.records if record.name == "asyncio"]


# -- what is kept


def tasks() -> int:
    gc.collect()
    return sum(isinstance(each, (asyncio.Task, concurrent.futures.Future)) for each in gc.get_objects())


@story
async def test_a_notification_leaves_nothing_behind(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        await peer.request("meaning/status")
        before = tasks()
        for number in range(50):
            peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"limit": 1 + number}}})
            peer.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}})
            peer.notify("window/workDoneProgress/cancel", {"token": number})
            peer.notify("$/setTrace", {"value": "off"})
        await peer.request("meaning/status")
        assert tasks() < before + 10


def test_what_is_held_is_bounded_and_anything_fits_alone() -> None:
    held = Held()
    held.add_slowly(2 * MOST_HELD)
    waits = threading.Thread(target=held.add_slowly, args=(1,))
    waits.start()
    waits.join(0.05)
    assert waits.is_alive()
    held.release(2 * MOST_HELD)
    waits.join(PATIENCE)
    assert not waits.is_alive()


@story
async def test_a_client_that_sends_more_than_is_held_is_answered_in_the_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_HELD", 10_000)
    async with peer_of(settings) as peer:
        await peer.hello()
        answers = [peer.begin("meaning/status", {"padding": "x" * 5_000})[1] for _ in range(200)]
        await asyncio.wait_for(asyncio.gather(*answers), PATIENCE)


# -- the client's process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the client's."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(params=["the system tells", "it is looked for"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to know of a process's end."""
    if request.param == "it is looked for":
        monkeypatch.delattr("os.pidfd_open", raising=False)
        monkeypatch.setattr(client_process, "LOOK_SECONDS", 0.01)
    elif not hasattr(os, "pidfd_open"):
        pytest.skip("this system does not tell")


@pytest.mark.usefixtures("way")
@story
async def test_the_server_ends_with_the_process_of_its_client(
    settings: Settings, sleeper: subprocess.Popen[bytes]
) -> None:
    ours, its = socket.socketpair()
    with its, its.makefile("rb") as reader, its.makefile("wb") as writer:
        server = asyncio.create_task(serve(reader, writer, settings))
        peer = Peer(*await asyncio.open_connection(sock=ours))
        await peer.hello(processId=sleeper.pid)
        await peer.request("meaning/status")
        sleeper.kill()
        sleeper.wait()
        assert await asyncio.wait_for(server, PATIENCE) == 1
        its.shutdown(socket.SHUT_RDWR)
        await peer.close()


GONE = 2**31 - 1
"""More than any system gives to a process."""


@pytest.mark.parametrize("client", [None, 0, -1, 1, GONE, 2**64, 1.5, True, "12", [], {}])
@story
async def test_a_process_that_cannot_be_watched_is_not(settings: Settings, client: object) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(processId=client)
        await peer.request("meaning/status")
