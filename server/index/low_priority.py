"""Work that gives way to all else in this process, and on this machine."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

NICENESS = 10


def low_priority_thread() -> ThreadPoolExecutor:
    """A thread for calls that do not hold Python's interpreter lock (one that does would keep searches from it while it
    waits for its turn). The threads that they start are of the same priority."""
    return ThreadPoolExecutor(1, "meaning-background", _give_way)


def _give_way() -> None:
    if sys.platform == "linux":  # elsewhere the priority is the whole process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
