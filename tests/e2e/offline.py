"""Runs the program where asking for a network socket ends the process: `python -m tests.e2e.offline serve …`.

Whoever asks, Python or a library in C, in a thread or in a child process: the system itself holds it (seccomp).
"""

from __future__ import annotations

import ctypes
import platform
import signal
import socket
import struct
import sys

AUDIT_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The kernel's name of each, and its number of the system call `socket` (linux/audit.h, asm/unistd.h)."""
ENDS_WITH = -signal.SIGSYS if hasattr(signal, "SIGSYS") else None
"""How subprocess tells of a process that asked."""

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data."""


def supported() -> bool:
    return sys.platform == "linux" and platform.machine() in AUDIT_ARCHITECTURES


def forbid_network() -> None:
    """From here on this process, and every one that it starts, ends when it asks for an internet socket."""
    architecture, number = AUDIT_ARCHITECTURES[platform.machine()]
    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_EQUAL, 0, 5, architecture),
            (_LOAD, 0, 0, _NUMBER),
            (_EQUAL, 0, 3, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_EQUAL, 2, 0, socket.AF_INET),
            (_EQUAL, 1, 0, socket.AF_INET6),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _KILL_PROCESS),
        )
    )
    code = ctypes.create_string_buffer(program)
    filter_program = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER, filter_program, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid_network()
    if sys.argv[1:] == ["ask"]:
        socket.socket(socket.AF_INET)
    from server.__main__ import main

    sys.exit(main(sys.argv[1:]))
