"""A file's stamp: equal stamps, equal content, and nothing was read to know it."""

from __future__ import annotations

import os
import time

from ..workspace.discover import FoundFile

SETTLED_NS = 2_000_000_000
FINE_SETTLED_NS = 30_000_000
"""A file that was changed less than this before it was looked at may change again without a new time, so its stamp is
not trusted. File systems count in steps of up to 2 s; one that shows fractions of a millisecond counts in steps of the
kernel's clock, of 10 ms at most."""
_MILLISECOND_NS = 1_000_000

UNSETTLED = ""
"""The stamp of such a file: equal to none, so that the next update reads it again."""


def stamp_of(found: FoundFile) -> str:
    """The stamp to remember of a file that is about to be read: its size, and the times of its last changes.

    The change time is there for tools that put the old modification time back. A modification time far in the future,
    which archives bring, is as good as an old one: the next change would set another.
    """
    return seen_stamp(found) if is_settled(found.mtime_ns, found.ctime_ns) else UNSETTLED


def is_settled(mtime_ns: int, ctime_ns: int) -> bool:
    """Whether a file with these times would have others if it changed once more."""
    now = time.time_ns()
    return now - ctime_ns >= _step(ctime_ns) and abs(now - mtime_ns) >= _step(mtime_ns)


def _step(time_ns: int) -> int:
    return FINE_SETTLED_NS if time_ns % _MILLISECOND_NS else SETTLED_NS


def seen_stamp(found: FoundFile) -> str:
    """The stamp of a file as the walk saw it, to compare with a remembered one."""
    return f"{found.size} {found.mtime_ns} {found.ctime_ns}"


def stat_stamp(stat: os.stat_result) -> str:
    """The same of a file as the system tells it."""
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
