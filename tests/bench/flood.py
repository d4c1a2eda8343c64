"""A flood of random messages, good, bad and none at all, for a real server; what it did is printed as one JSON object.

    python -m tests.bench.flood [--messages N] [--seed N] [--model NAME|DIR]

messages_per_s      sent and answered, with at most WINDOW requests unanswered
resident_mb         of the server, after each tenth of the messages
failures            what should not have happened (a wrong message, a missing or second answer, a traceback, …): none
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import psutil

from server.lsp.wire import messages

from .flood_messages import Draft, Json, Messages, framed
from .made_up import write_tree

FUNCTIONS = 200
WINDOW = 100
"""Requests that may be unanswered at a time."""
PATIENCE = 60.0
"""Seconds after which an answer is missing."""
SHOWN_FAILURES = 20
INTERNAL_ERROR = -32603
NAME = "unpack_quaternion_ledger"
NEEDLE = f'''

def {NAME}(parcel):
    """Unpacks the quaternion ledger of a parcel."""
    return parcel
'''


def main() -> int:
    """Flood a server and print the figures; 1 if something failed."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        figures = flood(Path(scratch), options.messages, options.seed, options.model)
    print(json.dumps(figures, indent=2))
    return 1 if figures["failures"] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.flood", description="random messages, figures as JSON")
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same messages (default: %(default)s)")
    parser.add_argument("--model", default="default", help="default, or a bundle's folder")
    return parser.parse_args()


def flood(scratch: Path, number: int, seed: int, model: str = "default") -> dict[str, Any]:
    """Send so many messages to a server with a workspace in `scratch`, and see whether it is right after them."""
    root = scratch / "tree"
    write_tree(root, FUNCTIONS)
    environment = {**os.environ, "MEANING_CACHE_DIR": str(scratch / "cache"), "MEANING_MODEL": model}
    command = [sys.executable, "-m", "server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        try:
            return _flooded(Client(process), root, number, seed)
        finally:
            process.kill()


def _flooded(client: Client, root: Path, number: int, seed: int) -> dict[str, Any]:
    client.hello(root)
    stream = Messages(root, seed)
    resident = []
    start = time.perf_counter()
    for count, draft in zip(range(number), stream, strict=False):
        client.send(draft)
        if (count + 1) % (number // 10) == 0:
            client.settle()
            resident.append(client.resident_mb())
    seconds = time.perf_counter() - start
    _check_that_it_is_right(client, root, stream)
    client.goodbye()
    return {
        "messages": number,
        "seed": seed,
        "seconds": round(seconds, 1),
        "messages_per_s": round(number / seconds),
        "resident_mb": [round(each, 1) for each in resident],
        "received": dict(client.received),
        "failures": client.failures,
    }


def _check_that_it_is_right(client: Client, root: Path, stream: Messages) -> None:
    """Bring the client's side back to something plain, and ask for what is there, and for what is not any more."""
    for uri in stream.documents:
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    client.notify("workspace/didChangeConfiguration", {"settings": {"meaning": {"limit": 10, "workspaceSymbol": True}}})
    file = next(root.rglob("*.py"))
    before = file.read_text("utf-8")
    file.write_text(before + NEEDLE, "utf-8")
    reports = client.ask("meaning/reindex", {"workspaceFolder": root.as_uri()})
    client.expect(bool(reports) and reports["folders"][0]["pending"] == 0, f"not all is indexed: {reports}")
    client.expect(client.finds(NAME), "a search does not find what a file holds")
    named = {"uri": file.as_uri(), "version": 1}
    client.notify("textDocument/didOpen", {"textDocument": {**named, "languageId": "python", "text": before}})
    client.expect(not client.finds(NAME), "a search finds what an open document holds no more")
    client.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": before + NEEDLE}]})
    client.expect(client.finds(NAME), "a search does not find what an open document holds")
    file.write_text(before, "utf-8")
    client.notify("textDocument/didClose", {"textDocument": {"uri": file.as_uri()}})
    client.ask("meaning/reindex", {"workspaceFolder": root.as_uri()})
    client.expect(not client.finds(NAME), "a search finds what is nowhere")


class Client:
    """One end of the connection: sends what it is given, and checks whatever comes back."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.failures: list[str] = []
        self.received: Counter[str] = Counter()
        self._process, self._stdin = process, process.stdin
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._unanswered: Counter[int | str] = Counter()
        self._results: dict[int | str, Json] = {}
        self._ended = False
        self._answered = 0
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()
        threading.Thread(target=self._read_errors, args=(process.stderr,), daemon=True).start()

    # -- sending

    def send(self, draft: Draft) -> None:
        """Send it, as soon as few enough requests are unanswered."""
        with self._changed:
            self._wait(lambda: self._unanswered.total() < WINDOW)
            self._unanswered.update(draft.ids)
        self._write(draft.data)

    def notify(self, method: str, params: Json) -> None:
        self._write(framed({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(self, method: str, params: Json) -> Json:
        """A request whose result is waited for; None for an error."""
        msg_id = f"asked {len(self._results)}"
        self._results[msg_id] = None
        self.send(Draft(framed({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params}), [msg_id]))
        self.settle()
        self.expect(self._results[msg_id] is not None, f"{method}: no result")
        return self._results[msg_id]

    def finds(self, name: str) -> bool:
        """Whether a search for a name finds it."""
        result = self.ask("meaning/search", {"query": name})
        return bool(result) and name in [item["name"] for item in result["items"]]

    def settle(self) -> None:
        """Wait until every request has its answer."""
        with self._changed:
            self._wait(lambda: not self._unanswered.total())

    def hello(self, root: Path) -> None:
        window, workspace = {"workDoneProgress": True}, {"configuration": True}
        params = {
            "processId": os.getpid(),
            "capabilities": {"window": window, "workspace": workspace},
            "workspaceFolders": [{"uri": root.as_uri(), "name": "tree"}],
            "rootUri": None,
        }
        self.ask("initialize", params)
        self.notify("initialized", {})
        self.ask("meaning/reindex", None)

    def goodbye(self) -> None:
        self.send(Draft(framed({"jsonrpc": "2.0", "id": "bye", "method": "shutdown"}), ["bye"]))
        self.settle()
        self.notify("exit", None)
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.fail("it does not end")
        else:
            self.expect(code == 0, f"its exit code is {code}")

    def _write(self, data: bytes) -> None:
        try:
            with self._writing:
                self._stdin.write(data)
                self._stdin.flush()
        except OSError as error:
            raise SystemExit(f"the server is gone: {error}; {self.failures}") from error

    def _wait(self, reached: Callable[[], bool]) -> None:
        if not self._changed.wait_for(lambda: reached() or self._ended, PATIENCE):
            self.fail(f"no answer to {list(self._unanswered)[:5]}")
            self._unanswered.clear()

    # -- receiving

    def _read(self, stream: IO[bytes]) -> None:
        for body in messages(stream):  # type: ignore[arg-type]
            self._check(body)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _check(self, body: bytes) -> None:
        try:
            self._take(json.loads(body, parse_constant=_refuse))
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}: {body[:300]!r}")

    def _take(self, message: Json) -> None:
        assert message.pop("jsonrpc") == "2.0"
        if "method" in message:
            assert isinstance(message["method"], str)
            assert message.keys() <= {"id", "method", "params"}
            self.received["requests" if "id" in message else "notifications"] += 1
            if "id" in message:
                self._respond(message["id"], message["method"])
            return
        assert message.keys() in ({"id", "result"}, {"id", "error"})
        if "error" in message:
            code = message["error"]["code"]
            assert isinstance(message["error"]["message"], str)
            assert code != INTERNAL_ERROR, message["error"]["message"]
        self.received["errors" if "error" in message else "results"] += 1
        if message["id"] is not None:
            self._answer(message["id"], message.get("result"))

    def _answer(self, msg_id: int | str, result: Json) -> None:
        with self._changed:
            assert self._unanswered[msg_id] > 0, "nobody asked, or it was answered before"
            self._unanswered[msg_id] -= 1
            if not self._unanswered[msg_id]:
                del self._unanswered[msg_id]
            if msg_id in self._results:
                self._results[msg_id] = result
            self._changed.notify_all()

    def _respond(self, msg_id: int | str, method: str) -> None:
        """Answers of all sorts, the right one most of the time, from the thread that reads."""
        self._answered += 1
        right = [{"limit": 10}] if method == "workspace/configuration" else None
        every: list[Json] = [{"result": {"a": []}}, {"error": {"code": -1, "message": "no"}}, {"error": 1}]
        outcome = every[self._answered % 3] if self._answered % 10 == 0 else {"result": right}
        threading.Thread(target=self._write, args=(framed({"jsonrpc": "2.0", "id": msg_id, **outcome}),)).start()

    def _read_errors(self, stream: IO[bytes]) -> None:
        """A traceback is a failure, told with the line that it ends in."""
        trace = False
        for line in stream:
            if line.startswith(b"Traceback"):
                trace = True
            elif trace and not line.startswith((b" ", b"\n")):
                trace = False
                self.fail(f"a traceback: {line.decode(errors='replace').strip()}")

    # -- what should not have happened

    def expect(self, held: bool, otherwise: str) -> None:
        """What does not hold is a failure."""
        if not held:
            self.fail(otherwise)

    def fail(self, what: str) -> None:
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append(what)

    def resident_mb(self) -> float:
        return float(psutil.Process(self._process.pid).memory_info().rss) / 1e6


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


if __name__ == "__main__":
    sys.exit(main())
