"""Messages that a client might send, should send and should not: the same ones for the same seed.

Those of one kind come from one function; `PLAN` says how often. Whatever is broken ends where the next header begins.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .made_up import NOUNS, questions

Json = Any

DOCUMENTS = 24
"""Documents that are opened, edited and closed. No more, so that what they hold says nothing of leaks."""
LONGEST_TEXT = 3_000
REMEMBERED_IDS = 30

HUGE = [2**31 - 1, 2**31, 2**53, 2**63, 10**30, -1, -(2**31), 1e400, float("nan"), 0.5]
ODD_TEXTS = ["", " ", "\0", "\ud83d", "😀", "\u2028", "a" * 5_000, "../../etc/passwd", "%00", "file://", "lang:", "$"]
ODD: list[Json] = [None, True, False, [], {}, [[]], {"a": 1}, *HUGE, *ODD_TEXTS]
ODD_URIS = [
    *("", "untitled:Untitled-1", "file:", "file://", "file:///", "file:///%00", "file:///%ff", "file://host/share/a"),
    *("http://[", "vscode-notebook-cell:/a#1", "file:///no/such/folder", "file:///" + "a/" * 2_000, "file:///\ud800"),
]
PIECES = [
    "def f():\n",
    "    return 1\n",
    "\r\n",
    "\r",
    "\f",
    "\u2028",
    "😀",
    "é",
    "語",
    "\ud83d",
    "\ude00",
    "x",
    " ",
    "w1",
]
ENCODED = [
    b"[" * 50_000,
    b'{"a":' * 50_000,
    b"\xff\xfe",
    b'"\xc3\x28"',
    b"",
    b"NaN",
    b"1" * 5_000,
    b"{",
    b"[1,]",
    b"\0",
]
NOISE = [
    *(b"Content-Length: abc\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"\r\n\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
    *(b"Content-Length: 99999999999999999999\r\n\r\n", b"Content-Length:\r\n", b"Content-Type: x\r\n", b"\xff\0\n"),
    *(b"Content-Length: 12\r\n" + b"Content-Length: 2\r\n\r\n{}", b"{}\n", b"\n" * 100, b"x" * 100_000 + b"\n"),
]


@dataclass
class Draft:
    """What goes over the wire, and which responses it should bring."""

    data: bytes
    ids: list[int | str] = field(default_factory=list)
    """The ids of requests in it, each of which gets one response."""


class Messages:
    """An endless stream of them, for a server that has `workspace` open."""

    def __init__(self, workspace: Path, seed: int) -> None:
        self._draw = random.Random(seed)
        self._workspace = workspace
        self._sent: list[int | str] = []
        self._last_id = 0
        self._questions = questions(500)
        self.documents = [(workspace / f"{NOUNS[n]}_{n % 5}" / f"buffer_{n}.py").as_uri() for n in range(DOCUMENTS)]

    def __iter__(self) -> Iterator[Draft]:
        kinds = [kind for kind, _ in PLAN]
        weights = [weight for _, weight in PLAN]
        while True:
            yield self._draw.choices(kinds, weights)[0](self)

    # -- requests

    def search(self) -> Draft:
        return self._request("meaning/search", self._search_params())

    def symbol(self) -> Draft:
        return self._request("workspace/symbol", {"query": self._query()})

    def similar(self) -> Draft:
        place = {"line": self._draw.randrange(100), "character": 0}
        return self._request("meaning/similar", {"textDocument": {"uri": self._uri()}, "position": place})

    def status(self) -> Draft:
        return self._request("meaning/status", self._one(None, {}))

    def reindex(self) -> Draft:
        return self._request("meaning/reindex", self._one(None, {}, {"workDoneToken": self._token()}))

    def command(self) -> Draft:
        arguments = self._one([self._query()], [self._search_params()], None, [], [1], [1, 2])
        name = self._one("meaning.search", "meaning.search", "meaning.none")
        return self._request("workspace/executeCommand", {"command": name, "arguments": arguments})

    def unknown_request(self) -> Draft:
        method = self._one("textDocument/hover", "initialize", "meaning/none", "$/none", "textDocument/didSave", "")
        return self._request(method, self._odd_params())

    def broken_request(self) -> Draft:
        """A request of ours with something wrong in its params."""
        methods = ("meaning/search", "meaning/similar", "workspace/symbol", "workspace/executeCommand")
        params = self._one(self._search_params(), {"textDocument": {"uri": self._uri()}, "position": {"line": 1}})
        return self._request(self._one(*methods), self._spoiled(params))

    def deep_request(self) -> Draft:
        depth = self._one(5, 100, 300, 900, 3_000)
        nested = "[" * depth + "]" * depth
        msg_id = self._new_id()
        text = (
            '{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"query":%s,"arguments":[%s],"command":"meaning.search"}}'
        )
        method = self._one("meaning/search", "workspace/executeCommand", "workspace/symbol")
        body = (text % (json.dumps(msg_id), method, nested, nested)).encode()
        try:
            json.loads(body)
        except RecursionError:  # Then the server cannot read the id either.
            return Draft(frame(body))
        return Draft(frame(body), [msg_id])

    def twins(self) -> Draft:
        """Two requests with one id."""
        one = self._request("meaning/status", None)
        message = {"jsonrpc": "2.0", "id": one.ids[0], "method": "meaning/search", "params": self._search_params()}
        return Draft(one.data + framed(message), [*one.ids, *one.ids])

    def cancelled_search(self) -> Draft:
        one = self.search()
        return Draft(one.data + self._note("$/cancelRequest", {"id": one.ids[0]}).data, one.ids)

    # -- notifications

    def cancel(self) -> Draft:
        msg_id = self._draw.choice(self._sent) if self._sent and self._chance(0.7) else self._odd()
        return self._note("$/cancelRequest", {"id": msg_id})

    def progress_cancel(self) -> Draft:
        return self._note("window/workDoneProgress/cancel", {"token": self._one(self._token(), self._odd())})

    def open(self) -> Draft:
        document = {"uri": self._uri(), "languageId": "python", "version": 1, "text": self._text()}
        return self._note("textDocument/didOpen", {"textDocument": document})

    def change(self) -> Draft:
        document = {"uri": self._uri(), "version": self._draw.randrange(-5, 1_000)}
        changes = [self._edit() for _ in range(self._one(1, 1, 1, 2, 5, 0))]
        return self._note("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def save(self) -> Draft:
        params = {"textDocument": {"uri": self._uri()}}
        return self._note("textDocument/didSave", params | self._one({}, {}, {"text": self._text()}, {"text": None}))

    def close(self) -> Draft:
        return self._note("textDocument/didClose", {"textDocument": {"uri": self._uri()}})

    def files(self) -> Draft:
        changes = [{"uri": self._uri(), "type": self._draw.randrange(1, 4)} for _ in range(self._draw.randrange(4))]
        return self._note("workspace/didChangeWatchedFiles", {"changes": changes})

    def folders(self) -> Draft:
        """Folders in it, and others, come and go; it stays."""
        names = [*(f"{NOUNS[n]}_{n}" for n in range(3)), "none"]
        some = [{"uri": (self._workspace / name).as_uri(), "name": name} for name in self._draw.sample(names, 2)]
        some.append({"uri": self._draw.choice(ODD_URIS), "name": ""})
        event = self._one({"added": some[:1], "removed": some[1:]}, {"added": [], "removed": some}, self._odd())
        return self._note("workspace/didChangeWorkspaceFolders", {"event": event})

    def configuration(self) -> Draft:
        good = {"limit": self._draw.randrange(1, 30), "workspaceSymbol": self._chance(0.9)}
        section = self._one(good, good, {"limit": self._odd()}, {"model": "/no/such/model"}, {self._word(): 1})
        return self._note("workspace/didChangeConfiguration", {"settings": self._one({"meaning": section}, {}, None)})

    def unknown_note(self) -> Draft:
        methods = ("$/setTrace", "$/none", "initialized", "meaning/none", "notebookDocument/didOpen", "meaning/search")
        return self._note(self._one(*methods), self._odd_params())

    def broken_note(self) -> Draft:
        kinds = (Messages.open, Messages.change, Messages.save, Messages.files, Messages.configuration, Messages.cancel)
        message = json.loads(self._one(*kinds)(self).data.partition(b"\r\n\r\n")[2])
        return Draft(framed({**message, "params": self._spoiled(message["params"])}))

    # -- responses, and what is no message

    def response(self) -> Draft:
        msg_id = self._draw.choice(self._sent) if self._sent and self._chance(0.3) else self._odd()
        outcome = self._one({"result": self._odd()}, {"error": {"code": 1, "message": "x"}}, {"error": self._odd()}, {})
        return Draft(framed({"jsonrpc": "2.0", "id": msg_id, **outcome}))

    def no_message(self) -> Draft:
        shapes = (self._odd(), {"jsonrpc": self._odd()}, {"jsonrpc": "2.0", "method": self._one(1, None, [], {})})
        odd_id = {"jsonrpc": "2.0", "id": self._one(None, True, 1.5, [], {}), "method": "meaning/status"}
        return Draft(framed(self._one(*shapes, odd_id)))

    def no_json(self) -> Draft:
        return Draft(frame(self._one(*ENCODED, self._draw.randbytes(self._draw.randrange(300)))))

    def noise(self) -> Draft:
        return Draft(self._one(*NOISE, self._draw.randbytes(self._draw.randrange(300)) + b"\n"))

    def wrong_length(self) -> Draft:
        """A length that cuts a message off, or that takes of what comes next (a victim, which is lost)."""
        body = self._note("meaning/none", self._odd_params()).data.partition(b"\r\n\r\n")[2]
        if self._chance(0.5):
            return Draft(b"Content-Length: %d\r\n\r\n%s" % (self._draw.randrange(len(body)), body))
        victim = framed({"jsonrpc": "2.0", "method": "meaning/victim"})
        return Draft(b"Content-Length: %d\r\n\r\n%s" % (len(body) + self._draw.randrange(1, 20), body + victim))

    # -- parts

    def _request(self, method: str, params: Json) -> Draft:
        msg_id = self._new_id()
        message = {"jsonrpc": "2.0", "id": msg_id, "method": method}
        return Draft(framed(message if self._chance(0.01) else {**message, "params": params}), [msg_id])

    def _note(self, method: str, params: Json) -> Draft:
        return Draft(framed({"jsonrpc": "2.0", "method": method, "params": params}))

    def _new_id(self) -> int | str:
        self._last_id += 1
        msg_id = self._one(self._last_id, self._last_id, f"request {self._last_id}", f"\ud83d{self._last_id}")
        self._sent = [*self._sent[-REMEMBERED_IDS:], msg_id]
        return msg_id  # type: ignore[no-any-return]

    def _search_params(self) -> Json:
        more: dict[str, Json] = {
            "limit": self._draw.randrange(1, 50),
            "languages": ["python"],
            "paths": ["*.py"],
            "workspaceFolder": self._workspace.as_uri(),
            "workDoneToken": self._token(),
            "partialResultToken": self._token(),
        }
        return {"query": self._query()} | {name: value for name, value in more.items() if self._chance(0.15)}

    def _query(self) -> str:
        return self._draw.choice(ODD_TEXTS) if self._chance(0.1) else self._draw.choice(self._questions)

    def _uri(self) -> str:
        return self._draw.choice(ODD_URIS) if self._chance(0.05) else self._draw.choice(self.documents)

    def _edit(self) -> Json:
        if self._chance(0.1):
            return {"text": self._text()}
        column = self._one(0, 1, 5, 80, 2**31 - 1)
        start = {"line": self._draw.randrange(12), "character": column}
        end = {"line": self._draw.randrange(12), "character": self._draw.randrange(10)}
        return {"range": {"start": start, "end": self._one(start, end)}, "text": self._text(4)}

    def _text(self, pieces: int = 40) -> str:
        return "".join(self._draw.choices(PIECES, k=self._draw.randrange(pieces)))[:LONGEST_TEXT]

    def _token(self) -> Json:
        return self._one(self._draw.randrange(100), f"token {self._draw.randrange(100)}")

    def _word(self) -> str:
        return f"word{self._draw.randrange(10**9)}"

    def _spoiled(self, params: Json) -> Json:
        """The params with one value wrong, anywhere in them, or missing."""
        if not isinstance(params, dict) or not params or self._chance(0.2):
            return self._odd()
        name = self._draw.choice(list(params))
        if self._chance(0.2):
            return {key: value for key, value in params.items() if key != name}
        value = params[name]
        if isinstance(value, list) and value:
            return {**params, name: [self._spoiled(value[0]), *value[1:]]}
        return {**params, name: self._spoiled(value) if isinstance(value, dict) else self._odd()}

    def _odd(self) -> Json:
        return self._draw.choice(ODD)

    def _odd_params(self) -> Json:
        return self._one(self._odd(), {self._word(): self._odd()}, {"textDocument": {"uri": self._uri()}})

    def _one(self, *choices: Any) -> Any:
        return self._draw.choice(choices)

    def _chance(self, of: float) -> bool:
        return self._draw.random() < of


PLAN: list[tuple[Callable[[Messages], Draft], float]] = [
    *((Messages.change, 22), (Messages.open, 5), (Messages.close, 3), (Messages.save, 2), (Messages.files, 1)),
    *((Messages.search, 6), (Messages.cancelled_search, 4), (Messages.symbol, 3), (Messages.similar, 3)),
    *((Messages.status, 2), (Messages.command, 3), (Messages.twins, 1), (Messages.reindex, 0.05)),
    *((Messages.folders, 0.03), (Messages.configuration, 0.1)),
    *((Messages.cancel, 5), (Messages.progress_cancel, 2), (Messages.unknown_note, 4), (Messages.broken_note, 8)),
    *((Messages.unknown_request, 4), (Messages.broken_request, 7), (Messages.deep_request, 0.5)),
    *((Messages.response, 4), (Messages.no_message, 4), (Messages.no_json, 3), (Messages.noise, 3)),
    (Messages.wrong_length, 2),
]
"""Each kind, and its share."""


def frame(body: bytes) -> bytes:
    """A body with its header."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def framed(message: Json) -> bytes:
    """JSON with its header, as JavaScript would write it, or (half surrogates, NaN) as it would not."""
    return frame(json.dumps(message).encode())
