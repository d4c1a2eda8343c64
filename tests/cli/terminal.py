"""Runs the program in a terminal of its own, as somebody who sits in front of it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).parents[2]
PATIENCE = 60.0


@dataclass(frozen=True)
class Seen:
    status: int
    text: str
    """All that was shown, line ends as the program wrote them."""


def in_terminal(
    *arguments: object, cwd: Path, environment: Mapping[str, str], typed: str = "", width: int = 80
) -> Seen:
    """What `meaning-lsp` shows in a terminal in which somebody types; `typed` is typed when it asks something."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "server", *map(str, arguments)],
        cwd=cwd,
        # COLUMNS would outdo the terminal's own width.
        env={**os.environ, "COLUMNS": "", "PYTHONPATH": str(HOUSE), "TERM": "xterm", **environment},
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    seen = b""
    end = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                read = os.read(ours, 65536)
            except OSError:  # the last one to hold the terminal is gone
                break
            if not read:
                break
            seen += read
            if typed and b"Open which?" in seen:
                os.write(ours, typed.encode())
                typed = ""
        return Seen(process.wait(PATIENCE), seen.decode().replace("\r\n", "\n"))
    finally:
        os.close(ours)
        process.kill()
