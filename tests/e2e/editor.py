"""A real client of a real server process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

HOUSE = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "server")
PATIENCE = 60.0
"""Seconds after which a test that waits has failed."""


class Editor(LanguageClient):
    """pygls' client, with what every editor does."""

    def __init__(self) -> None:
        super().__init__("editor", "1", converter_factory=default_converter)
        self.told: list[tuple[str, Any]] = []
        self.exit_code: int | None = None
        for method in ("meaning/indexChanged", types.WINDOW_SHOW_MESSAGE, types.WINDOW_LOG_MESSAGE, types.PROGRESS):
            self.feature(method)(lambda params, method=method: self.told.append((method, params)))

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        self.exit_code = server.returncode

    async def open(self, *folders: Path, **capabilities: Any) -> types.InitializeResult:
        named = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
        params = types.InitializeParams(
            types.ClientCapabilities(**capabilities), process_id=os.getpid(), workspace_folders=named
        )
        result = await self.initialize_async(params)
        self.initialized(types.InitializedParams())
        return result

    async def ask(self, method: str, params: object = None) -> Any:
        """One of our own requests."""
        return await asyncio.wait_for(self.protocol.send_request_async(method, params), PATIENCE)

    async def places(self, query: str, **more: object) -> list[str]:
        """What a search finds, as `file:name`."""
        result = await self.ask("meaning/search", {"query": query, **more})
        return [f"{item.location.uri.rpartition('/')[2]}:{item.name}" for item in result.items]

    async def close(self) -> None:
        await asyncio.wait_for(self.shutdown_async(None), PATIENCE)
        self.exit(None)


def environment(cache: Path) -> Mapping[str, str]:
    return {**os.environ, "MEANING_CACHE_DIR": str(cache)}


@asynccontextmanager
async def editor(cache: Path, command: Sequence[str] = COMMAND) -> AsyncIterator[Editor]:
    """An editor with a server of its own on stdio, ended in good order."""
    client = Editor()
    await client.start_io(*command, cwd=HOUSE, env=environment(cache))
    assert client._server and client._server.stderr
    drain = asyncio.create_task(client._server.stderr.read())
    try:
        yield client
        if client._server.returncode is None:
            await client.close()
        await asyncio.wait_for(client.stop(), PATIENCE)  # type: ignore[no-untyped-call]
    finally:
        if client._server.returncode is None:
            client._server.kill()
        await drain
