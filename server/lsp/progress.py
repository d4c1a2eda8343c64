"""$/progress: how far a piece of work is, shown by the editor."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from .protocol import Token

WORTH_SHOWING = 20
"""Files from which work is shown that nobody asked for: less is done before anybody has looked."""
REPORT_SECONDS = 0.1
"""Reports that come faster are left out: an editor draws each."""


def on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., Any], *arguments: Any) -> None:
    """Call in the event loop, from any thread; nothing happens when the loop is gone."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)


class WorkProgress:
    """The progress of one piece of work. Called from any thread; every message goes out from the event loop.

    Without a token of the client's, nothing is shown until there are many files to tell of, and nothing at all to a
    client that cannot create a progress: a save does not flicker.
    """

    def __init__(
        self, server: LanguageServer, loop: asyncio.AbstractEventLoop, title: str, token: Token | None = None
    ) -> None:
        self._server, self._loop, self._title = server, loop, title
        self._tokens = server.work_done_progress.tokens
        self._created: Future[Any] | None = None
        self._begun = False
        self._last = 0.0
        self._token: Token = str(uuid.uuid4())
        if token is not None:
            self._token = token
            self._begin()

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` files."""
        if not self._begun and (total < WORTH_SHOWING or not self._client_is_ready()):
            return
        if not self._begun:
            self._begin()
        now = time.monotonic()
        if now - self._last >= REPORT_SECONDS or done == total:
            self._last = now
            message, percentage = f"{done} of {total} files", 100 * done // max(total, 1)
            self._show(types.WorkDoneProgressReport(cancellable=True, message=message, percentage=percentage))

    @property
    def cancelled(self) -> bool:
        """Whether the user clicked it away."""
        known = self._tokens.get(self._token)
        return known is not None and known.cancelled()

    def end(self, message: str) -> None:
        """The work is over."""
        if self._begun:
            self._show(types.WorkDoneProgressEnd(message=message))
            self._forget()
        elif self._created:  # The client may still be about to create what nobody needs now.
            self._created.add_done_callback(self._forget)

    def _forget(self, _created: object = None) -> None:
        on_loop(self._loop, self._tokens.pop, self._token, None)

    def _client_is_ready(self) -> bool:
        """Whether the client has created the token; asks it to, the first time."""
        window = self._server.client_capabilities.window
        if self._created is None and window and window.work_done_progress:
            create = self._server.work_done_progress.create_async(self._token)
            self._created = asyncio.run_coroutine_threadsafe(create, self._loop)
        created = self._created
        return created is not None and created.done() and not created.cancelled() and created.exception() is None

    def _begin(self) -> None:
        self._begun = True
        self._tokens.setdefault(self._token, Future())
        self._show(types.WorkDoneProgressBegin(self._title, cancellable=True, percentage=0))

    def _show(self, value: Any) -> None:
        on_loop(self._loop, self._server.protocol.notify, types.PROGRESS, types.ProgressParams(self._token, value))
