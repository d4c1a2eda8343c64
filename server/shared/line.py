"""One connection to a shared cache, and the thread that alone uses it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from .engine import CALL_SECONDS, Engine, Unanswered

Result = TypeVar("Result")


class Line:
    """Calls, one after the other. None runs longer than CALL_SECONDS, but for the system's own look-up of a host's
    name, which nothing can interrupt: so the thread is a daemon, and nobody should wait for it without a bound."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self._name = engine, name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[[Engine], Result]) -> Future[Result]:
        """Have a call made. Its future may be cancelled until it begins, and raises as the engine or Unanswered."""
        future: Future[Result] = Future()
        self._calls.put(lambda: self._run(call, future))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        return future

    def close(self) -> None:
        """Hang up, when all that was submitted is done; returns at once."""
        self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            call()
            del call  # what it holds may go
        self._engine.abort()

    def _run(self, call: Callable[[Engine], Result], future: Future[Result]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            self._engine.abort()

        stop = threading.Timer(CALL_SECONDS, give_up)
        stop.daemon = True
        stop.start()
        try:
            future.set_result(call(self._engine))
        except BaseException as error:  # whatever a library raises, this thread goes on
            future.set_exception(Unanswered() if overdue.is_set() else error)
        finally:
            stop.cancel()
