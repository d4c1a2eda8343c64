"""Messages in, messages out: JSON-RPC as the specification wants it, for clients that are not perfect.

pygls does the language server protocol; what is here makes it outlive a broken header, text that is not JSON and
parameters of the wrong shape, and answers each of them. One thread reads, the event loop handles.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO

import attrs
import cattrs
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from . import client_process

_LENGTH = re.compile(rb"content-length:[ \t]*(\d+)[ \t]*\r?\n", re.IGNORECASE)
"""Found anywhere in a line: after a message whose header was broken, its body stands before the next header."""
LONGEST_MESSAGE = 256 << 20
"""Bytes. A length beyond it is a broken header."""
_LONGEST_LINE = 1 << 20
_LARGEST_INTEGER = 2**31 - 1
_PYGLS_DOCUMENTS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)
"""What pygls would keep the documents by. documents.py does, which cuts lines and ranges as the protocol says."""

log = logging.getLogger(__name__)


@attrs.define
class PlainRequest:
    """A request that the protocol's own types do not know: its params stay as JSON has them."""

    method: str
    id: int | str
    params: Any = None
    jsonrpc: str = "2.0"


@attrs.define
class PlainNotification:
    """A notification that the protocol's own types do not know."""

    method: str
    params: Any = None
    jsonrpc: str = "2.0"


class Wire(LanguageServerProtocol):
    """The protocol of one connection."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        for method in _PYGLS_DOCUMENTS:
            del self.fm.builtin_features[method]
        self.stopped = asyncio.Event()
        """Set by the notification `exit`, by the end of the stream, and by the end of the client's process."""
        self._watch: asyncio.Task[None] | None = None

    @property
    def shut_down(self) -> bool:
        """Whether the client asked for an orderly end."""
        return bool(self._shutdown)

    def receive(self, body: bytes) -> None:
        """Handle one message's body. Whatever it is, this returns."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, JsonRpcParseError("the message is not JSON in UTF-8"))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(None, JsonRpcInvalidRequest("a message is an object with `jsonrpc`: `2.0`"))
        elif "method" not in message:
            self._receive_response(message)
        elif not isinstance(message["method"], str):
            self._refuse(message.get("id"), JsonRpcInvalidRequest("`method` is not a string"))
        elif message["method"] == types.EXIT:
            self.stopped.set()
        elif "id" in message and (isinstance(message["id"], bool) or not isinstance(message["id"], (int, str))):
            self._refuse(None, JsonRpcInvalidRequest("`id` is neither a string nor a whole number"))
        elif "id" in message:
            self._receive_request(message)
        elif self._workspace is not None and not self._shutdown:
            self._receive_notification(message)

    def _receive_request(self, message: dict[str, Any]) -> None:
        try:
            self._check_state(message["method"])
            request = self._structured(message)
            if not hasattr(request, "id"):
                raise JsonRpcInvalidRequest(f"{message['method']}: a notification, which has no `id` and no answer")
        except JsonRpcException as error:
            self._refuse(message["id"], error)
        else:
            self.handle_message(request)

    def _check_state(self, method: str) -> None:
        if self._shutdown:
            raise JsonRpcInvalidRequest(f"{method}: the server was shut down")
        if self._workspace is None and method != types.INITIALIZE:
            raise JsonRpcServerNotInitialized(f"{method}: the server waits for `initialize`")
        if self._workspace is not None and method == types.INITIALIZE:
            raise JsonRpcInvalidRequest("the server is initialized already")

    def _receive_notification(self, message: dict[str, Any]) -> None:
        try:
            notification = self._structured(message)
        except JsonRpcException as error:
            self._server.report_server_error(error, type(error))
        else:
            self.handle_message(notification)

    def _receive_response(self, message: dict[str, Any]) -> None:
        try:
            self.handle_message(self.structure_message(message))
        except Exception as error:  # A client's broken answer is no more than a missing one.
            self._server.report_server_error(error, JsonRpcException)

    def _structured(self, message: dict[str, Any]) -> Any:
        """The message as its type; JsonRpcInvalidParams names the field that is wrong."""
        method = message["method"]
        _overlook(method, message.get("params"))
        plain = PlainRequest if "id" in message else PlainNotification
        try:
            return self._converter.structure(message, self.get_message_type(method) or plain)
        except Exception as error:
            reasons = "; ".join(cattrs.transform_error(error))
            raise JsonRpcInvalidParams(f"{method}: {reasons.replace('$.params', 'params')}") from None

    def _refuse(self, msg_id: Any, error: JsonRpcException) -> None:
        # Written by hand: the specification wants `"id": null` where pygls would leave the id out.
        known = msg_id if isinstance(msg_id, (int, str)) else None
        self._send_data({"jsonrpc": self.VERSION, "id": known, "error": {"code": error.code, "message": error.message}})

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """What pygls makes of us, and what it cannot know: clients may send these requests with a progress token."""
        result = yield from super().lsp_initialize(params)
        if params.process_id is not None:
            self._watch = asyncio.ensure_future(self._stop_with(params.process_id))
        able = result.capabilities
        for provider in (able.workspace_symbol_provider, able.execute_command_provider):
            if isinstance(provider, (types.WorkspaceSymbolOptions, types.ExecuteCommandOptions)):
                provider.work_done_progress = True
        return result

    async def _stop_with(self, client: int) -> None:
        try:
            await client_process.ended(client)
        except ProcessLookupError as error:
            log.info("the client's process is not watched: %s", error)
        else:
            log.info("the client's process has ended")
            self.stopped.set()

    async def run(self) -> None:
        """Until the connection is over."""
        try:
            await self.stopped.wait()
        finally:
            if self._watch:
                self._watch.cancel()

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # pygls takes a coroutine as well
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Run a command. pygls' own way can neither be cancelled nor hands on the progress token."""
        if (command := self.fm.commands.get(params.command)) is None:
            raise JsonRpcInvalidParams(f"{types.WORKSPACE_EXECUTE_COMMAND}: no command {params.command!r}")
        return await command(params)


def _overlook(method: str, params: Any) -> None:
    """Mend slips of clients that would cost the user a whole session, or a document."""
    if not isinstance(params, dict):
        return
    if method == types.INITIALIZE:
        client = params.get("processId")
        if isinstance(client, bool) or not isinstance(client, int) or not 0 < client <= _LARGEST_INTEGER:
            params["processId"] = None
    elif method == types.TEXT_DOCUMENT_DID_OPEN and isinstance(params.get("textDocument"), dict):
        params["textDocument"].update(languageId="", version=0)  # Nobody asks for them.
    elif method == types.TEXT_DOCUMENT_DID_CHANGE and isinstance(params.get("textDocument"), dict):
        params["textDocument"]["version"] = 0  # It was optional once.
        changes = params.get("contentChanges")
        for change in changes if isinstance(changes, list) else ():
            if isinstance(change, dict) and change.get("range", change) is None:
                del change["range"]


async def pump(wire: Wire, stream: BinaryIO) -> None:
    """Handle the messages of `stream` until `exit`, or its end."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            for body in messages(stream):
                loop.call_soon_threadsafe(wire.receive, body)
            loop.call_soon_threadsafe(wire.stopped.set)
        except (OSError, ValueError, RuntimeError):  # The stream or the loop was closed: the connection is over.
            pass

    # A daemon, since nothing can wake it from a read when the process wants to end.
    threading.Thread(target=read, name="meaning-read", daemon=True).start()
    await wire.run()


def messages(stream: BinaryIO) -> Iterator[bytes]:
    """The bodies of the messages in `stream`. What is not a message is skipped up to the next header."""
    length: int | None = None
    while line := stream.readline(_LONGEST_LINE):
        if match := _LENGTH.search(line):
            length = int(match.group(1)[:20])
        elif length is not None and not line.strip():
            if length <= LONGEST_MESSAGE:
                body = stream.read(length)
                if len(body) < length:
                    return
                yield body
            length = None
