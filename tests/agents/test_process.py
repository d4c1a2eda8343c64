"""The process of `meaning-lsp mcp`: how it begins, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "server")
PATIENCE = 60.0


def started(cache: Path, *arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, "mcp", *map(str, arguments)],
        cwd=HOUSE,
        env={**os.environ, "MEANING_CACHE_DIR": str(cache), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def refused(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """What a process says that does not begin at all."""
    out, err = process.communicate(timeout=PATIENCE)
    assert out == b""
    assert err.count(b"\n") == 1, err
    return process.returncode, err.decode()


def wait_until_it_serves(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert process.stdout.readline()


def test_it_ends_when_its_client_closes_its_input(root: Path, tmp_path: Path) -> None:
    process = started(tmp_path / "cache", root)
    wait_until_it_serves(process)
    start = time.monotonic()
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, b"", b"")
    assert time.monotonic() - start < 10


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once(root: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path / "cache", root)
    wait_until_it_serves(process)
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE) == -number
    assert process.stderr
    assert process.stderr.read() == b""


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    status, err = refused(started(tmp_path / "cache", tmp_path / "missing"))
    assert status == 1
    assert "no such folder" in err


def test_a_model_that_is_not_there_is_told(root: Path, tmp_path: Path) -> None:
    status, err = refused(started(tmp_path / "cache", root, "--model", tmp_path / "missing"))
    assert status == 2
    assert "missing" in err


def test_nobody_means_all_of_their_home_folder(tmp_path: Path) -> None:
    status, err = refused(started(tmp_path / "cache", tmp_path, HOME=str(tmp_path)))
    assert status == 2
    assert "name the workspace's folder" in err


def test_without_the_package_it_says_what_to_install(root: Path, tmp_path: Path) -> None:
    (tmp_path / "broken" / "mcp").mkdir(parents=True)
    (tmp_path / "broken" / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('mcp', name='mcp')\n")
    status, err = refused(started(tmp_path / "cache", root, PYTHONPATH=str(tmp_path / "broken")))
    assert status == 1
    assert "pip install 'meaning-lsp[mcp]'" in err


def test_searching_does_not_pay_for_it() -> None:
    program = "import sys, server.__main__, server.lsp.server; print(*{'mcp', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=HOUSE, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
