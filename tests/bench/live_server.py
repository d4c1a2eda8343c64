"""A server process on stdio, and the leanest client of it: each answer is stamped the moment that it arrives."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[2]
PATIENCE = 600.0
"""Seconds after which an answer is not waited for any longer."""
FOUND_POLL, READY_POLL = 0.01, 0.1
"""Seconds from an answer to the next question while something is waited for."""


@dataclass(frozen=True)
class Answer:
    """The result of a request."""

    result: Any
    at: float
    """When it arrived, as `time.perf_counter` has it."""


class RequestError(Exception):
    """The server answered by an error, or ended."""


class LiveServer:
    """A server of its own for one workspace folder, from `with` to the block's end."""

    def __init__(self, root: Path, cache: Path, model: str, tracer: Sequence[str] = ()) -> None:
        """`tracer` is a command that starts the server's command."""
        self.root, self.cache = root, cache
        self._command = [*tracer, sys.executable, "-m", "server"]
        self._environment = {**os.environ, "MEANING_CACHE_DIR": str(cache), "MEANING_MODEL": model}
        self._log = cache.with_suffix(".log")
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Answer]] = {}
        self._writing = threading.Lock()

    def __enter__(self) -> LiveServer:
        self.started = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=HOUSE,
                env=self._environment,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.ask("shutdown", None)
            self.notify("exit", None)
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()

    @property
    def pid(self) -> int:
        return self._process.pid

    # -- messages

    def request(self, method: str, params: Any) -> Future[Answer]:
        """Send a request; its answer comes by itself."""
        number = next(self._ids)
        future = self._waiting[number] = Future()
        self._send({"id": number, "method": method, "params": params})
        return future

    def ask(self, method: str, params: Any) -> Answer:
        """Send a request and wait for its answer. Raises RequestError."""
        return self.request(method, params).result(PATIENCE)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        with self._writing:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream
        while header := stream.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            body = stream.read(length)
            self._take(json.loads(body), time.perf_counter())
        last_words = self._log.read_text(errors="replace")[-500:]
        for future in self._waiting.values():
            future.set_exception(RequestError(f"the server has ended: {last_words}"))

    def _take(self, message: dict[str, Any], at: float) -> None:
        if "method" in message:
            if "id" in message:  # Whatever the server wishes of its client is granted.
                self._send({"id": message["id"], "result": None})
            return
        future = self._waiting.pop(message["id"])
        if "error" in message:
            future.set_exception(RequestError(message["error"]["message"]))
        else:
            future.set_result(Answer(message["result"], at))

    # -- what an editor does

    def greet(self) -> Answer:
        """`initialize` and `initialized`."""
        folders = [{"uri": self.root.as_uri(), "name": self.root.name}]
        params: dict[str, Any] = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "workspaceFolders": folders,
        }
        answer = self.ask("initialize", params)
        self.notify("initialized", {})
        return answer

    def search(self, query: str) -> Answer:
        """One search."""
        return self.ask("meaning/search", {"query": query})

    def saved(self, file: Path) -> None:
        """Tell that a file was saved."""
        self.notify("textDocument/didSave", {"textDocument": {"uri": file.as_uri()}})

    @contextmanager
    def opened(self, file: Path, text: str) -> Iterator[Callable[[str], None]]:
        """A file that is open inside of the block; gives what changes its unsaved text."""
        uri, versions = file.as_uri(), itertools.count(1)
        document = {"uri": uri, "languageId": file.suffix[1:], "version": 0, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

        def change(new: str) -> None:
            changed = {"textDocument": {"uri": uri, "version": next(versions)}, "contentChanges": [{"text": new}]}
            self.notify("textDocument/didChange", changed)

        yield change
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    # -- waiting

    def status(self) -> dict[str, Any]:
        """The folder's status."""
        (folder,) = self.ask("meaning/status", None).result["folders"]
        assert folder["state"] != "failed", folder["problem"]
        return dict(folder)

    @property
    def ready(self) -> bool:
        """Whether the index equals the files, as far as the server knows."""
        folder = self.status()
        return bool(folder["state"] == "ready" and not folder["pending"])

    def until_ready(self, patience: float = 900) -> None:
        """Wait for the end of indexing."""
        deadline = time.perf_counter() + patience
        while not self.ready:
            assert time.perf_counter() < deadline, f"not ready after {patience} s: {self.status()}"
            time.sleep(READY_POLL)

    def until_found(self, name: str, patience: float = PATIENCE, every: float = FOUND_POLL) -> float:
        """Wait until the function of this name is found; returns when the answer that has it arrived."""
        deadline = time.perf_counter() + patience
        while True:
            answer = self.search(name)
            if any(item["name"] == name for item in answer.result["items"]):
                return answer.at
            assert time.perf_counter() < deadline, f"{name} not found after {patience} s"
            time.sleep(every)


class SteadyQuestions:
    """Searches at an even rate, however slow the answers are, from `with` to the block's end.

    An answer's time counts from when its question was due, so that a server that stands still is not flattered.
    """

    def __init__(self, server: LiveServer, questions: Sequence[str], every: float) -> None:
        """`every` in seconds."""
        self._server, self._questions, self._every = server, questions, every
        self._asked: list[tuple[float, Future[Answer]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.took: list[float] = []
        """Milliseconds of each answer; after the block."""
        self.refused = 0
        """Searches that were answered by an error, or never."""

    def __enter__(self) -> SteadyQuestions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        wait([future for _, future in self._asked], PATIENCE)
        answered = [(due, future) for due, future in self._asked if future.done() and not future.exception()]
        self.took = [(future.result().at - due) * 1000 for due, future in answered]
        self.refused = len(self._asked) - len(answered)

    def _run(self) -> None:
        start = time.perf_counter()
        for number, question in enumerate(itertools.cycle(self._questions)):
            due = start + number * self._every
            if self._over.wait(max(0.0, due - time.perf_counter())):
                return
            self._asked.append((due, self._server.request("meaning/search", {"query": question})))
