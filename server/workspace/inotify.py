"""Linux's inotify, as far as watching folders needs it."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
"""Told without being asked for: the file system went, events were lost, the watch is over."""
IS_DIR = 0x4000_0000
"""Set in an event whose entry is a folder."""

_ONLY_DIR, _DONT_FOLLOW, _EXCLUDE_UNLINKED = 0x100_0000, 0x200_0000, 0x400_0000
_EVENT = struct.Struct("iIII")
"""The watch, the mask, a number that pairs moves, the length of the name that follows."""
_READ_BYTES = 64 * 1024
"""About two thousand events: what is looked at between two questions whether a change set is due."""
_LIMITS = Path("/proc/sys/fs/inotify")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


class Inotify:
    """One instance: its watches, and the events they tell. Only `wake` may be called in other threads."""

    def __init__(self) -> None:
        """Raises OSError if the user has no instance left."""
        self._fd = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise _error("fs.inotify.max_user_instances")
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def add(self, folder: str, mask: int) -> int:
        """Watch a folder's entries; the number of the watch, which a folder keeps when it is moved or added again.

        Raises OSError: with ENOSPC if the user has no watch left, with ENOTDIR for a link.
        """
        flags = mask | _ONLY_DIR | _DONT_FOLLOW | _EXCLUDE_UNLINKED
        wd: int = _libc.inotify_add_watch(self._fd, os.fsencode(folder), flags)
        if wd < 0:
            raise _error("fs.inotify.max_user_watches", folder)
        return wd

    def remove(self, wd: int) -> None:
        """End a watch; what it told before may still be read. Nothing happens if the kernel ended it."""
        _libc.inotify_rm_watch(self._fd, wd)

    def read(self, timeout: float | None) -> Iterator[tuple[int, int, str]]:
        """Waits up to `timeout` seconds for events: the watch, the mask, the entry's name ("": the folder itself)."""
        self._poll.poll(None if timeout is None else math.ceil(timeout * 1000))
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            wd, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            yield wd, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))

    def wake(self) -> None:
        """End the wait of `read`, and every later one, at once."""
        os.write(self._waker, b"\0")

    def close(self) -> None:
        """Give back everything."""
        for fd in (self._fd, self._woken, self._waker):
            os.close(fd)


def user_watches() -> int:
    """How many watches all programs of a user may have together."""
    return int((_LIMITS / "max_user_watches").read_text())


def limit_reached(setting: str) -> str:
    """What to tell of a limit of the kernel's."""
    return f"the system allows no more file watches ({setting}); raise that limit to see all changes at once"


def _error(limit: str, folder: str | None = None) -> OSError:
    number = ctypes.get_errno()
    text = limit_reached(limit) if number in (errno.ENOSPC, errno.EMFILE) else os.strerror(number)
    return OSError(number, text, folder)
