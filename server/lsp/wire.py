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
from collections.abc import Callable, Generator, Iterator
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
MOST_HELD = 64 << 20
"""Bytes that may wait for their turn, or are being worked on: when it is more, nothing is read until it is less."""
_MESSAGE_BYTES = 1 << 10
_WORK_BYTES = 16 << 10
"""What a message, and work that one began, cost beside their text, amply."""
_NAMING = {types.CANCEL_REQUEST: "id", types.WINDOW_WORK_DONE_PROGRESS_CANCEL: "token"}
"""Notifications that name something by a number or a string, which the protocol's own types let be anything."""
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
        self.held = Held()
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
        """The ids of our requests are not the client's: what nobody here asked for ends no request of its own."""
        msg_id = message.get("id")
        if not isinstance(msg_id, str) or msg_id not in self._result_types:
            log.info("a response to a request that was not sent, or is over")
            return
        future = self._request_futures.get(msg_id)
        try:
            self.handle_message(self.structure_message(message))
        except Exception as error:  # A client's broken answer is no more than a refusal.
            self._server.report_server_error(error, JsonRpcException)
            if future and not future.done():
                future.set_exception(JsonRpcException("the answer is broken"))
        finally:
            self._result_types.pop(msg_id, None)
            self._request_futures.pop(msg_id, None)

    def _execute_handler(
        self,
        msg_id: int | str,
        handler: Callable[..., Any],
        callback: Callable[[Any], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Work that begins is held until it ends; pygls would keep that of a notification for ever."""

        def forget(future: Any) -> None:
            if self._request_futures.get(msg_id) is future:
                del self._request_futures[msg_id]

        def done(future: Any) -> None:
            loop.call_soon(forget, future)  # Not now: this may be a cancellation, by a walk through all of them.
            self.held.release(_WORK_BYTES)
            callback(future)

        loop = asyncio.get_running_loop()

        self.held.add(_WORK_BYTES)
        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _structured(self, message: dict[str, Any]) -> Any:
        """The message as its type; JsonRpcInvalidParams names the field that is wrong."""
        method = message["method"]
        _overlook(method, message.get("params"))
        plain = PlainRequest if "id" in message else PlainNotification
        if method in _NAMING:
            _check_name(method, message.get("params"))
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


def _check_name(method: str, params: Any) -> None:
    name = params.get(_NAMING[method]) if isinstance(params, dict) else None
    if isinstance(name, bool) or not isinstance(name, (int, str)):
        raise JsonRpcInvalidParams(f"{method}: neither a string nor a whole number @ params.{_NAMING[method]}")


class Held:
    """How much memory the messages take that were read and are not done with: a bound for it, not a measure."""

    def __init__(self) -> None:
        self._less = threading.Condition()
        self._bytes = 0

    def add(self, size: int) -> None:
        """It is more, however much there is."""
        with self._less:
            self._bytes += size

    def add_slowly(self, size: int) -> None:
        """It is more, as soon as there is room; any size has room where nothing else is held."""
        with self._less:
            self._less.wait_for(lambda: not self._bytes or self._bytes + size <= MOST_HELD)
            self._bytes += size

    def release(self, size: int) -> None:
        """It is less."""
        with self._less:
            self._bytes -= size
            self._less.notify()


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

    def take(body: bytes) -> None:
        wire.receive(body)
        wire.held.release(len(body) + _MESSAGE_BYTES)

    def read() -> None:
        try:
            for body in messages(stream):
                wire.held.add_slowly(len(body) + _MESSAGE_BYTES)
                loop.call_soon_threadsafe(take, body)
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
