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

ENDS = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED
"""The folder itself went."""

WALK, RULES = 1, 2
"""Who watches: for the files that the walk finds, for the files elsewhere that say which ones it does."""

_ONLY_DIR, _DONT_FOLLOW, _EXCLUDE_UNLINKED, _MASK_ADD = 0x100_0000, 0x200_0000, 0x400_0000, 0x2000_0000
_EVENT = struct.Struct("iIII")
"""The watch, the mask, a number that pairs moves, the length of the name that follows."""
_READ_BYTES = 64 * 1024
"""About two thousand events: what is looked at between two questions whether a change set is due."""
_LIMITS = Path("/proc/sys/fs/inotify")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


class Inotify:
    """One instance: its watches, and the events they tell. Only `wake` may be called in other threads.

    A folder has one watch, which its users share (see `WALK`): it tells each what any of them asked for.
    """

    def __init__(self) -> None:
        """Raises OSError if the user has no instance left."""
        self._fd = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise _error("fs.inotify.max_user_instances")
        self._users: dict[int, int] = {}
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def add(self, folder: str, mask: int, user: int) -> int:
        """Watch a folder's entries; the number of the watch, which a folder keeps when it is moved or added again.

        Raises OSError: with ENOSPC if there is no watch left, with ENOTDIR for a link.
        """
        wd = self._add(folder, mask | _MASK_ADD)
        self._users[wd] = self._users.get(wd, 0) | user
        return wd

    def reduce(self, wd: int, folder: str, mask: int, user: int) -> None:
        """Watch a folder for less than before, unless another user wants more. Raises OSError if it is gone."""
        if self._users.get(wd) == user:
            self._add(folder, mask)

    def remove(self, wd: int, user: int) -> None:
        """End a watch for one user; what it told before may still be read. Nothing happens if it has ended."""
        if users := self._users.pop(wd, 0) & ~user:
            self._users[wd] = users
        else:
            _libc.inotify_rm_watch(self._fd, wd)

    def _add(self, folder: str, mask: int) -> int:
        flags = mask | _ONLY_DIR | _DONT_FOLLOW | _EXCLUDE_UNLINKED
        wd: int = _libc.inotify_add_watch(self._fd, os.fsencode(folder), flags)
        if wd < 0:
            raise _error("fs.inotify.max_user_watches", folder)
        return wd

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
            if mask & IGNORED:
                self._users.pop(wd, None)
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
