"""A client that can also be wrong: it sends what it is told to, and keeps all that comes back."""

from __future__ import annotations

import asyncio
import functools
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec

from server.lsp.server import serve
from server.settings import Settings

from .shapes import SHAPES, misfit

PATIENCE = 20.0
"""Seconds after which a test that waits has failed."""

Parameters = ParamSpec("Parameters")
Json = Any


class Refused(Exception):
    """An error response."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]


def story(test: Callable[Parameters, Awaitable[None]]) -> Callable[Parameters, None]:
    """An asynchronous test."""

    @functools.wraps(test)
    def run(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> None:
        async def told() -> None:
            await asyncio.wait_for(test(*arguments, **keywords), 2 * PATIENCE)

        asyncio.run(told())

    return run


def _null(_params: Json) -> Json:
    return None


class Peer:
    """One end of a connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._next_id = 0
        self._waiting: dict[int | str | None, asyncio.Future[Json]] = {}
        self._asked: dict[int | str | None, str] = {}
        """The method of each request."""
        self._arrived = asyncio.Condition()
        self.notifications: list[tuple[str, Json]] = []
        self.requests: list[tuple[str, Json]] = []
        self.misfits: list[str] = []
        """What came and is not of the type that the protocol's description gives it."""
        self.answers: dict[str, Callable[[Json], Json]] = {}
        """How the server's own requests are answered; null if nothing is said. An exception leaves one unanswered."""
        self._listener = asyncio.create_task(self._listen())

    async def close(self) -> None:
        self._writer.close()
        self._listener.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener

    # -- sending

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def send(self, message: Json) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Json = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Json = None) -> tuple[int, asyncio.Future[Json]]:
        """Send a request: its id, and what will be its result."""
        self._next_id += 1
        self._asked[self._next_id] = method
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return self._next_id, self.response(self._next_id)

    def response(self, msg_id: int | str | None) -> asyncio.Future[Json]:
        self._waiting[msg_id] = asyncio.get_running_loop().create_future()
        return self._waiting[msg_id]

    async def request(self, method: str, params: Json = None) -> Json:
        return await asyncio.wait_for(self.begin(method, params)[1], PATIENCE)

    # -- receiving

    def told(self, method: str) -> list[Json]:
        """The params of all notifications of a method until now."""
        return [params for name, params in self.notifications if name == method]

    async def until(self, reached: Callable[[], object]) -> None:
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(reached), PATIENCE)

    async def _listen(self) -> None:
        while header := await self._reader.readline():
            length = int(header.removeprefix(b"Content-Length: "))
            while (await self._reader.readline()).strip():
                pass
            self._take(json.loads(await self._reader.readexactly(length)))
            async with self._arrived:
                self._arrived.notify_all()

    def _take(self, message: Json) -> None:
        if "method" not in message:
            waiting = self._waiting.pop(message["id"])
            if "error" in message:
                waiting.set_exception(Refused(message["error"]))
            else:
                self._check(self._asked.get(message["id"]), message["result"])
                waiting.set_result(message["result"])
        elif "id" in message:
            self.requests.append((message["method"], message.get("params")))
            with suppress(NotImplementedError):
                answer = self.answers.get(message["method"], _null)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer(message.get("params"))})
        else:
            self._check(message["method"], message.get("params"))
            self.notifications.append((message["method"], message.get("params")))

    def _check(self, method: str | None, value: Json) -> None:
        if (shape := SHAPES.get(method or "")) and (wrong := misfit(value, shape, f"{method}")):
            self.misfits.append(wrong)

    # -- what every client does

    async def hello(self, *folders: Path, capabilities: Json = None, **more: Json) -> Json:
        """`initialize` and `initialized`; returns the server's capabilities."""
        result = await self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "capabilities": capabilities or {},
                "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
                **more,
            },
        )
        self.notify("initialized", {})
        return result["capabilities"]

    async def indexed(self) -> None:
        """Every folder's index equals its files."""
        await self.request("meaning/reindex")

    async def names(self, query: str, **more: Json) -> list[str]:
        """The names that a search finds."""
        result = await self.request("meaning/search", {"query": query, **more})
        return [item["name"] for item in result["items"]]


@asynccontextmanager
async def peer_of(settings: Settings) -> AsyncIterator[Peer]:
    """A client of a server in this process; at the end its exit code is 0, and all it said was of the right shape."""
    ours, its = socket.socketpair()
    with its, its.makefile("rb") as its_reader, its.makefile("wb") as its_writer:
        server = asyncio.create_task(serve(its_reader, its_writer, settings))
        peer = Peer(*await asyncio.open_connection(sock=ours))
        try:
            yield peer
            await asyncio.wait_for(goodbye(peer), PATIENCE)
            assert await asyncio.wait_for(server, PATIENCE) == 0
            assert not peer.misfits, peer.misfits
        finally:
            server.cancel()
            its.shutdown(socket.SHUT_RDWR)
            await peer.close()


@asynccontextmanager
async def working_peer(settings: Settings, *folders: Path, **hello: Json) -> AsyncIterator[Peer]:
    """The same, with the folders indexed; `hello` is what else the client says to begin with."""
    async with peer_of(settings) as peer:
        await peer.hello(*folders, **hello)
        await peer.indexed()
        yield peer


async def goodbye(peer: Peer) -> None:
    """`shutdown` and `exit`, unless the test did that."""
    with suppress(Refused):
        await peer.request("shutdown")
    peer.notify("exit")
