"""Whether the client's process is still there: a server that nobody needs should not outlive its editor."""

from __future__ import annotations

import asyncio
import os
import sys

LOOK_SECONDS = 10.0
"""How often it is looked where the system cannot tell."""


async def ended(pid: int) -> None:
    """Returns when the process has ended.

    Raises ProcessLookupError if there is none of this number now: the client may count its processes apart from ours,
    in a container say, and is then gone when the connection is.
    """
    if not _is_there(pid):
        raise ProcessLookupError(f"there is no process {pid} here")
    try:
        watched = os.pidfd_open(pid)  # type: ignore[attr-defined,unused-ignore]  # not on macOS
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # Not known to this system, or to the sandbox that we run in.
        while _is_there(pid):
            await asyncio.sleep(LOOK_SECONDS)
    else:
        try:
            await _readable(watched)
        finally:
            os.close(watched)


async def _readable(file: int) -> None:
    """A process's file can be read when the process has ended."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(file, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(file)


def _is_there(pid: int) -> bool:
    if pid <= 0 or sys.platform == "win32":  # Signal 0 is no question there: the connection's end has to do.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
