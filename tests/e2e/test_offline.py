"""Nothing is sent anywhere: with all there is to do done, nobody has even asked for a socket."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.peer import story

from . import offline
from .editor import HOUSE, editor, environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not offline.supported(), reason="the system cannot forbid it here"),
]
OFFLINE = (sys.executable, "-m", "tests.e2e.offline")


def test_who_asks_for_a_socket_is_caught() -> None:
    asked = subprocess.run([*OFFLINE, "ask"], cwd=HOUSE, capture_output=True)
    assert asked.returncode == offline.ENDS_WITH


def test_the_command_line_asks_nobody(workspace: Path, tmp_path: Path) -> None:
    for command in (["index", str(workspace)], ["search", "open a url", str(workspace)], ["status", str(workspace)]):
        done = subprocess.run([*OFFLINE, *command], cwd=HOUSE, env=environment(tmp_path / "cache"), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


@story
async def test_the_server_asks_nobody(workspace: Path, tmp_path: Path) -> None:
    async with editor(tmp_path / "cache", command=OFFLINE) as client:
        await client.open(workspace)
        await client.ask("meaning/reindex")
        assert "decoder.py:raw_decode" in await client.places("raw_decode")
        (workspace / "json/fresh.py").write_text("def turn_pancake(pan): ...\n")
        await client.ask("meaning/reindex")
        assert "fresh.py:turn_pancake" in await client.places("turn_pancake")
        assert (await client.ask("meaning/status")).folders[0].state == "ready"
    assert client.exit_code == 0
