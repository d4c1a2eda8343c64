"""The command line: `meaning-lsp`, or `python -m server` in a clone.

Exit status: 0 fine; 1 a failure, told in one line on stderr; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from .cli.arguments import parsed
from .settings import SettingError
from .terminal import (
    PROGRAM,
    Failure,
    Interrupt,
    UsageError,
    close_complaints,
    close_output,
    complain,
    hold_standard_streams,
)

INTERRUPTED = "interrupted; what was indexed until now is kept"


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    hold_standard_streams()
    interrupt = Interrupt()
    try:
        options = parsed(arguments)
        if options.command != "serve":  # which has its own ways to end
            interrupt.listen()
        # Each command brings in what it needs, and no other's.
        status: int = import_module(f".cli.{options.command}", __package__).run(options)
        return status
    except KeyboardInterrupt:
        return complain(INTERRUPTED, 130)
    except Exception as error:
        if interrupt.came:  # an import that Ctrl-C breaks off makes another error of it
            return complain(INTERRUPTED, 130)
        return _explain(error)
    finally:
        interrupt.forget()
        close_complaints()


def _explain(error: Exception) -> int:
    """Tell what the user can do something about; anything else is a fault of ours, and raised again."""
    if isinstance(error, BrokenPipeError):
        close_output()  # the reader (`| head`) has seen enough
        return 0
    if isinstance(error, (UsageError, SettingError)):
        return complain(str(error), 2)
    if isinstance(error, Failure):
        return complain(str(error), 1)
    if isinstance(error, ImportError):
        return complain(f"{error}: the installation is not whole; `{PROGRAM} doctor` says what to do", 1)
    if isinstance(error, OSError):  # what nothing below had a better word for
        return complain(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    raise error


def run() -> NoReturn:
    """Run the command of this process, and end it.

    At once, where all is written and no thread is left that has to be waited for: to take down what was imported
    takes a tenth of a second, a third of a search.
    """
    status = main()
    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        with suppress(OSError, ValueError):  # told by the slower way
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
