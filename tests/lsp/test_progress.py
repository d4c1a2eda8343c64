"""A progress that nobody needs any more leaves nothing behind, however late the client is."""

from __future__ import annotations

import asyncio
import json

from lsprotocol import types

from server.lsp.progress import WORTH_SHOWING
from server.lsp.session import Session
from server.settings import Settings

from .peer import PATIENCE, story


class Sent:
    """A client's end, as the server sees it: something to write to."""

    def __init__(self) -> None:
        self.messages: list[dict[str, object]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None: ...


@story
async def test_a_token_that_is_created_when_the_work_is_over_is_forgotten(settings: Settings) -> None:
    session, sent = Session(settings, asyncio.get_running_loop()), Sent()
    session.protocol.set_writer(sent)
    session.protocol.client_capabilities = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True)
    )
    progress = session.work_progress("Indexing")
    progress(0, WORTH_SHOWING)
    await asyncio.sleep(0.01)
    progress.end("done")
    [request] = sent.messages
    assert request["method"] == "window/workDoneProgress/create"
    session.protocol.receive(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": None}).encode())
    await asyncio.sleep(0.05)
    assert session.work_done_progress.tokens == {}
    session.end(PATIENCE)
