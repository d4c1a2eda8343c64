"""What the command lines of export share: one line for what a user can mend, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from server.embed.bundle import ModelError

from .errors import ExportError, one_line

_TO_INSTALL = "run `pip install -e '.[export]'` in the clone"
_NO_MEMORY = ("not enough memory", "can't allocate memory", "out of memory")


def told(
    program: str, work: Callable[[], int], less_memory: str = "use a machine with more", to_install: str = _TO_INSTALL
) -> int:
    """Runs `work` and returns its exit code, or 1 after one line on stderr.

    `less_memory`: what to do where there is too little of it; `to_install`: where something is not installed.
    """
    try:
        return work()
    except (ExportError, ModelError) as error:
        problem = one_line(error)
    except ModuleNotFoundError as error:
        if (error.name or "export").partition(".")[0] in ("export", "server"):
            raise
        problem = f"{error.name} is not installed; {to_install}"
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error).lower() for text in _NO_MEMORY):
            raise
        problem = f"too little memory; {less_memory}"
    print(f"{program}: {problem}", file=sys.stderr)  # noqa: T201
    return 1
