"""The whole product as an editor runs it: the real server over stdio, the shipped model, real code."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from pathlib import Path

from lsprotocol import types

from server.lsp.wire import messages
from tests.lsp.peer import story

from .editor import COMMAND, HOUSE, PATIENCE, editor, environment


@story
async def test_questions_find_code(workspace: Path, tmp_path: Path) -> None:
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        [report] = (await client.ask("meaning/reindex")).folders
        assert (report.pending, report.files > 10, report.units > 200) == (0, True, True)
        assert "parse.py:quote" in await client.places("escape characters in a url")
        assert "robotparser.py:can_fetch" in await client.places("may this user agent fetch the page?")
        assert "decoder.py:raw_decode" in await client.places("raw_decode")
        assert all(place.startswith("cookies.py") for place in await client.places("cookie path:http/cookies.py"))

        symbols = await client.workspace_symbol_async(types.WorkspaceSymbolParams("parse cookies of a request"))
        assert symbols
        assert "cookie" in symbols[0].location.uri

        [hit] = (await client.ask("meaning/search", {"query": "urlopen", "limit": 1})).items
        place = {"textDocument": {"uri": hit.location.uri}, "position": hit.selectionRange.start._asdict()}
        similar = (await client.ask("meaning/similar", place)).items
        assert similar
        assert hit.name not in [item.name for item in similar]

        [folder] = (await client.ask("meaning/status")).folders
        assert (folder.uri, folder.state, folder.pending) == (workspace.as_uri(), "ready", 0)
    assert client.exit_code == 0


@story
async def test_a_second_start_embeds_nothing_and_answers_at_once(workspace: Path, tmp_path: Path) -> None:
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        await client.ask("meaning/reindex")
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        assert "parse.py:quote" in await client.places("escape characters in a url")
        [report] = (await client.ask("meaning/reindex")).folders
        assert (report.embedded, report.pending) == (0, 0)


@story
async def test_a_server_that_is_killed_while_it_indexes_loses_nothing(workspace: Path, tmp_path: Path) -> None:
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        assert client._server
        await asyncio.sleep(0.5)
        client._server.kill()
        await client._server.wait()
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        [report] = (await client.ask("meaning/reindex")).folders
        assert report.pending == 0
        assert "parse.py:quote" in await client.places("escape characters in a url")


@story
async def test_documents_may_be_opened_changed_and_closed(workspace: Path, tmp_path: Path) -> None:
    file = workspace / "json" / "new.py"
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        await client.ask("meaning/reindex")
        document = types.TextDocumentItem(file.as_uri(), types.LanguageKind.Python, 1, "x = 1\n")
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        start, far = types.Position(0, 0), types.Position(99, 99)
        edit = types.TextDocumentContentChangePartial(types.Range(start, far), "def reverse_words(😀): ...\n")
        version = types.VersionedTextDocumentIdentifier(2, file.as_uri())
        client.text_document_did_change(types.DidChangeTextDocumentParams(version, [edit]))
        file.write_text("def reverse_words(text): ...\n")
        client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(file.as_uri())))
        client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(file.as_uri())))
        await client.ask("meaning/reindex")
        assert "new.py:reverse_words" in await client.places("reverse_words")


def run(data: bytes, cache: Path) -> subprocess.CompletedProcess[bytes]:
    """A server that is sent these bytes, and then the end of its input."""
    return subprocess.run(
        COMMAND, input=data, cwd=HOUSE, env=environment(cache), capture_output=True, timeout=PATIENCE, check=False
    )


def frame(message: object) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(msg_id: int, method: str, params: object = None) -> bytes:
    return frame({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})


HELLO = request(1, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
EXIT = frame({"jsonrpc": "2.0", "method": "exit"})


def test_the_exit_code_says_whether_the_end_was_announced(tmp_path: Path) -> None:
    assert run(HELLO + request(2, "shutdown") + EXIT, tmp_path).returncode == 0
    assert run(HELLO + EXIT, tmp_path).returncode == 1
    assert run(HELLO, tmp_path).returncode == 1
    assert run(b"", tmp_path).returncode == 1


def test_stdout_carries_the_protocol_alone(tmp_path: Path) -> None:
    ended = run(b"noise\r\n" + frame(3) + HELLO + request(2, "no/method") + request(3, "shutdown") + EXIT, tmp_path)
    answers = [json.loads(body) for body in messages(io.BytesIO(ended.stdout))]
    assert [answer["id"] for answer in answers if "method" not in answer] == [None, 1, 2, 3]
    assert sum(len(body) for body in messages(io.BytesIO(ended.stdout))) > 0
    assert ended.stdout.startswith(b"Content-Length: ")
    assert ended.stdout.count(b"Content-Length: ") == len(answers)
    assert b"Traceback" not in ended.stderr
