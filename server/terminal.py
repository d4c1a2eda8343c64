"""How the command line meets its surroundings: what it prints, and how it bears Ctrl-C and closed streams."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .search.answer import Answer, Hit

PROGRAM = "meaning-lsp"


class Failure(Exception):
    """The command could not do what it should: exit status 1."""


class UsageError(Exception):
    """The command was called wrongly: exit status 2."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python remembers its own KeyboardInterrupt when one leaves code that a library of C runs (while it is
    imported, say), and ends itself by the signal at the end, whatever was done about it; another class it does not."""


class Interrupt:
    """Ctrl-C, which counts once: a second one could only disturb the tidying up, which is short."""

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None

    def listen(self) -> None:
        """From now on; does nothing in another than the main thread, which alone has signals."""
        with suppress(ValueError):
            self._before = signal.signal(signal.SIGINT, self._hear)

    def _hear(self, *_: object) -> None:
        self.came = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Interrupted

    def forget(self) -> None:
        """As it was before, unless one came: the process is about to end."""
        if self._before is not None and not self.came:
            signal.signal(signal.SIGINT, self._before)


def hold_standard_streams() -> None:
    """Open what a caller closed (`<&-`, `>&-`, `2>&-`).

    The next file to be opened would take over its number, and with it what a library prints. Input is empty then,
    errors go nowhere, and output fails: who asked for it should learn that there is none.
    """
    for number, (name, access) in enumerate((("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, access)  # the least free number, which is this one
            os.set_inheritable(opened, True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def close_output() -> None:
    """Nothing more is written, not even what is buffered, by the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str, status: int) -> int:
    """Tell one line on stderr; returns the status."""
    with suppress(OSError):  # Nobody can be told that nobody can be told.
        print(f"{PROGRAM}: {shown(' '.join(message.split()))}", file=sys.stderr)  # noqa: T201
    return status


def note(message: str) -> None:
    """Tell one line on stderr, and go on."""
    complain(message, 0)


def close_complaints() -> None:
    """What cannot be told is not tried again by the interpreter's end, which would have a status of its own."""
    try:
        if sys.stderr:
            sys.stderr.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


BAR = 30
"""Characters of a progress bar, where there is room."""


class ProgressBar:
    """Progress on stderr while it is a terminal; gone when it is done."""

    def __init__(self, doing: str = "indexing", what: str = "files") -> None:
        self._doing, self._what = doing, what
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """So many of so many are done."""
        if self._shown and total:
            told = f" {done}/{total} {self._what}"
            # A line that the terminal breaks could not be written over.
            length = min(BAR, os.get_terminal_size(sys.stderr.fileno()).columns - len(self._doing) - len(told) - 2)
            filled = max(length, 0) * done // total
            line = f"\r{self._doing} {'█' * filled}{'░' * (length - filled)}{told}"
            sys.stderr.write("\r\x1b[K" if done == total else line)
            sys.stderr.flush()


def print_line(text: str) -> None:
    """One line of an answer on stdout. Raises Failure where it cannot be written."""
    # A path or a name may hold what the terminal's encoding has not.
    try:
        sys.stdout.buffer.write((text + "\n").encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        close_output()
        raise Failure(f"cannot write the answer ({error.strerror})") from None


def as_json(query: str, answer: Answer) -> dict[str, Any]:
    """An answer for scripts: lines count from 1."""
    return {
        "query": query,
        "model": answer.model,
        "took_ms": answer.took_ms,
        "indexed": answer.indexed,
        "pending": answer.pending,
        "hits": [_hit_as_json(hit) for hit in answer.hits],
    }


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    return {
        **({"repository": hit.repository} if hit.repository else {}),
        "path": hit.path,
        "start_line": hit.start_line + 1,
        "end_line": hit.end_line + 1,
        "name": hit.name,
        "container": hit.container,
        "kind": hit.kind,
        "language": hit.language,
        "score": hit.score,
        "preview": hit.preview,
    }


def as_text(answer: Answer) -> str:
    """An answer for people: two lines a hit."""
    if not answer.hits:
        return "nothing found" + ("" if answer.indexed else ": the index is empty")
    return "\n".join(
        f"{shown(_place(hit))}:{hit.start_line + 1}-{hit.end_line + 1}  {hit.kind} "
        f"{shown(f'{hit.container}.' if hit.container else '')}{shown(hit.name)}\n    {shown(hit.preview[:120])}"
        for hit in answer.hits
    )


def _place(hit: Hit) -> str:
    return f"{hit.repository}:{hit.path}" if hit.repository else hit.path


def shown(text: str) -> str:
    """Text of others for a terminal, which would obey a control character, or break the line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
