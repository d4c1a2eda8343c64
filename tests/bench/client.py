"""A real server process on stdio and its client: blocking, shared between threads, and used to servers that die."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from server.lsp.wire import messages

HOUSE = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds after which whoever waits for an answer has found a fault."""
LOWERED = "tests.bench.lowered"
"""The server with its limits lowered."""


class Gone(Exception):
    """The server's end of the stream is closed."""


class Refused(Exception):
    """The server answered with an error."""


@dataclass(frozen=True)
class Found:
    """A hit as a client sees it; lines count from 0, the last one belongs to it."""

    path: str
    start: int
    end: int
    name: str
    preview: str
    score: float


def environment(cache: Path) -> Mapping[str, str]:
    """What every process of a server gets, workers too: who they are is told by it."""
    return {**os.environ, "MEANING_CACHE_DIR": str(cache), "PYTHONFAULTHANDLER": "1"}


class Server:
    """One server on one folder."""

    def __init__(
        self, root: Path, cache: Path, log: Path, module: str = "server", options: Mapping[str, Any] | None = None
    ) -> None:
        """Starts it and says hello. `log` takes what it writes to stderr, after what is there."""
        self.root, self.log, self.started = root, log, time.monotonic()
        self.told: list[tuple[str, Any]] = []
        """Notifications, oldest first."""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=HOUSE,
                env=environment(cache),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        folder = {"uri": root.as_uri(), "name": root.name}
        hello: dict[str, Any] = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "workspaceFolders": [folder],
        }
        self._hello = self.send("initialize", {**hello, "initializationOptions": options})
        self.notify("initialized", {})

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.process.poll() is None:
            self.close()
        self.kill()

    # -- messages

    def ask(self, method: str, params: object = None, patience: float = PATIENCE) -> Any:
        """A request's result. Raises Refused, Gone, TimeoutError."""
        try:
            return self.send(method, params).result(patience)
        except FutureTimeoutError:
            raise TimeoutError(f"{method}: no answer within {patience} s") from None

    def send(self, method: str, params: object = None) -> Future[Any]:
        """A request whose result nobody waits for yet."""
        number, future = next(self._numbers), Future[Any]()
        with self._lock:
            if self._closed:
                future.set_exception(Gone(method))
                return future
            self._waiting[number] = future
        self._write({"id": number, "method": method, "params": params})
        return future

    def notify(self, method: str, params: object = None) -> None:
        """A notification."""
        self._write({"method": method, "params": params})

    def _write(self, message: Mapping[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin
        try:
            with self._lock:
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                self.process.stdin.flush()
        except (OSError, ValueError):
            return  # the reader sees the end, and tells those who wait

    def _read(self) -> None:
        assert self.process.stdout
        for body in messages(cast(BinaryIO, self.process.stdout)):
            message = json.loads(body)
            if "method" not in message:
                future = self._waiting.pop(message["id"])
                if "error" in message:
                    future.set_exception(Refused(message["error"].get("message")))
                else:
                    future.set_result(message["result"])
            elif "id" in message:
                self._write({"id": message["id"], "result": None})
            else:
                self.told.append((message["method"], message.get("params")))
        with self._lock:
            self._closed = True
        for future in self._waiting.values():
            future.set_exception(Gone("the server is gone"))

    # -- what is asked

    def search(self, query: str, limit: int = 10, patience: float = PATIENCE) -> list[Found]:
        """`meaning/search`."""
        result = self.ask("meaning/search", {"query": query, "limit": limit}, patience)
        return [self._found(item) for item in result["items"]]

    def search_all(self, queries: Sequence[str]) -> list[list[Found]]:
        """The same of many, one after the other."""
        return [self.search(query) for query in queries]

    def _found(self, item: Mapping[str, Any]) -> Found:
        location = item["location"]
        path = unquote(location["uri"]).removeprefix(f"{unquote(self.root.as_uri())}/")
        lines = location["range"]["start"]["line"], location["range"]["end"]["line"] - 1
        return Found(path, *lines, item["name"], item["preview"], item["score"])

    def status(self) -> dict[str, Any]:
        """What `meaning/status` says of the folder."""
        folders: Sequence[dict[str, Any]] = self.ask("meaning/status")["folders"]
        return folders[0] if folders else {"state": "none", "pending": 1, "problem": None}

    def shown(self) -> list[str]:
        """The messages that a user has seen."""
        return [params["message"] for method, params in self.told if method == "window/showMessage"]

    # -- the end

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            with suppress(OSError):  # what was still to be written to it
                stream.close()

    def close(self) -> int:
        """In good order; returns the exit code."""
        self.ask("shutdown")
        self.notify("exit")
        return self.process.wait(PATIENCE)


def run_command(*arguments: str, module: str = "server") -> str:
    """A run of the command line that has to succeed: what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=HOUSE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments[:2])} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def processes_of(cache: Path) -> list[int]:
    """Every process that lives with this cache: servers and their workers, orphans too."""
    mark = f"MEANING_CACHE_DIR={cache}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                alive = mark in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if alive:
                found.append(int(entry.name))
    return found
