"""What is done where a test's server cannot be had."""

from __future__ import annotations

import os
import socket
from typing import NoReturn

import pytest


def missing(message: str) -> NoReturn:
    """A machine of one's own may lack what a test needs, CI may not."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
