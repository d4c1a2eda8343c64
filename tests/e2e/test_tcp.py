"""`--tcp PORT`: editors of this machine, and of no other, one after the other or at once."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.lsp.peer import story

from .editor import COMMAND, HOUSE, PATIENCE, Editor, environment


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a server that listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    command = (*COMMAND, "--tcp", str(number))
    with subprocess.Popen(command, cwd=HOUSE, env=environment(tmp_path / "cache"), stderr=subprocess.PIPE) as server:
        assert server.stderr
        assert b"listening on 127.0.0.1:%d" % number in server.stderr.readline()
        yield number
        listening = {c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == "LISTEN"}
        assert listening == {"127.0.0.1"}
        server.terminate()


async def connected(port: int, folder: Path) -> Editor:
    client = Editor()
    await client.start_tcp("127.0.0.1", port)
    await asyncio.wait_for(client.open(folder), PATIENCE)
    return client


@story
async def test_clients_come_and_go(port: int, workspace: Path) -> None:
    first = await connected(port, workspace)
    second = await connected(port, workspace)
    for client in (first, second):
        await client.ask("meaning/reindex")
        assert "parse.py:quote" in await client.places("escape characters in a url")
    await first.close()
    assert await second.places("urlopen")
    await second.close()
    third = await connected(port, workspace)
    assert await third.places("urlopen")
    await third.close()


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = subprocess.run(
            (*COMMAND, "--tcp", str(taken.getsockname()[1])),
            cwd=HOUSE,
            env=environment(tmp_path),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1
    assert b"choose another port" in ended.stderr
