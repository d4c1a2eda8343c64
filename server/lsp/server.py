"""The language server, over stdio or TCP."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from typing import BinaryIO

from ..settings import Settings
from .features import COMMANDS, REQUESTS
from .session import Session
from .wire import pump

LOCALHOST = "127.0.0.1"
SWITCH_SECONDS = 0.0005
"""How long one of Python's threads may keep the others waiting. A search changes threads some dozen times, and with the
default of 5 ms would wait for the indexing thread most of its time."""
END_SECONDS = 3.0
"""How long the indexing thread may take to stop: what it has committed is safe in any case."""

log = logging.getLogger(__name__)


def serve_stdio(settings: Settings) -> int:
    """Serve one client on stdin and stdout until it says `exit` or is gone; returns the process's exit code."""
    _log_to_stderr()
    reader, writer = _own_streams()
    try:
        return asyncio.run(serve(reader, writer, settings))
    except KeyboardInterrupt:
        return 130


def serve_tcp(port: int, settings: Settings) -> int:
    """Serve clients of this machine on a port (0: any that is free), each on its own, until Ctrl-C."""
    _log_to_stderr()
    try:
        listener = socket.create_server((LOCALHOST, port))
    except OSError as error:
        log.error("%s:%d: cannot listen (%s); choose another port", LOCALHOST, port, error.strerror)
        return 1
    try:
        with listener:
            log.info("listening on %s:%d", *listener.getsockname()[:2])
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=_serve_connection, args=(connection, settings), daemon=True).start()
    except KeyboardInterrupt:
        return 130


def _serve_connection(connection: socket.socket, settings: Settings) -> None:
    with connection, connection.makefile("rb") as reader, connection.makefile("wb") as writer:
        asyncio.run(serve(reader, writer, settings))


async def serve(reader: BinaryIO, writer: BinaryIO, settings: Settings) -> int:
    """Serve one client until it says `exit` or the stream ends: 0 after a `shutdown`, as the protocol wants, else 1."""
    sys.setswitchinterval(SWITCH_SECONDS)
    session = Session(settings, asyncio.get_running_loop())
    for method, handler in REQUESTS.items():
        session.feature(method)(handler)
    for name, handler in COMMANDS.items():
        session.command(name)(handler)
    session.protocol.set_writer(_Writer(writer))
    try:
        await pump(session.protocol, reader)
    finally:
        session.end(END_SECONDS)
    return 0 if session.protocol.shut_down else 1


class _Writer:
    """Writes whole messages; a client that is gone is no error, its end of the stream ends the session."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError):
            log.info("the client is gone")

    def close(self) -> None:
        self._stream.close()


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for the protocol alone: what a library prints goes to stderr, and a child process reads nothing.

    The reading thread holds its stream's lock when the process ends, which sys.stdin would not survive.
    """
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, writer


def _log_to_stderr() -> None:
    """Our own log; pygls' would hold whole messages, and with them the user's code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
