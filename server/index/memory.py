"""Memory that an update needed and the server does not."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Return freed memory to the system. glibc keeps it, half of the process after a first index; other C libraries
    do not have the call, and need none."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
