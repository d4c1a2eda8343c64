"""A process's link to one shared cache: bounded in time and memory, whatever the cache does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as Expired
from weakref import finalize

from .address import Address
from .breaker import Breaker
from .engine import CALL_SECONDS, Engine, Unanswered, engine_of
from .line import Line

WAITING_PUTS = 16
"""Batches that may wait to be written; the next one waits for room, up to CALL_SECONDS."""


class Link:
    """Reads and writes, on a connection each: who reads waits for no write, and may read what he may not write.

    Hangs up when nobody has it any more and all is written. Thread safe.
    """

    def __init__(self, address: Address) -> None:
        """Raises Missing."""
        self.address = address
        self.reads, self.writes = Breaker(), Breaker()
        self._reading = Line(engine_of(address), "meaning-shared-read")
        self._writing = Line(engine_of(address), "meaning-shared-write")
        for line in (self._reading, self._writing):
            finalize(self, line.close).atexit = False
        self._turn = threading.Lock()
        self._room = threading.BoundedSemaphore(WAITING_PUTS)
        self._waiting: set[Future[None]] = set()

    @property
    def problem(self) -> str | None:
        """What is wrong with the cache; None for nothing."""
        if reason := self.reads.reason:
            return f"{reason}; what it may hold is embedded here, and it is asked again by itself"
        if reason := self.writes.reason:
            return f"not written to, but tried again by itself ({reason})"
        return None

    def get(self, model: str, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those names that the cache has, as it gave them. Empty if it does not answer in time."""
        with self._turn:  # the time that others take is not its fault
            if not self.reads.closed:
                return {}
            call = self._reading.submit(lambda engine: engine.get(model, names))
            try:
                found = call.result(CALL_SECONDS)
            except Expired:
                call.cancel()
                self.reads.failed(str(Unanswered()))
            except Exception as error:
                self.reads.failed(self._told(error))
            else:
                self.reads.worked()
                return found
        return {}

    def put(self, model: str, values: Callable[[], Mapping[bytes, bytes]]) -> None:
        """Have values written, which are made by the thread that writes."""
        if not self.writes.closed:
            return
        if not self._room.acquire(timeout=CALL_SECONDS):
            self.writes.failed("it does not keep up")
            return

        def write(engine: Engine) -> None:
            if self.writes.closed:  # what waited behind a failure would fail, too
                engine.put(model, values())

        call = self._writing.submit(write)
        self._waiting.add(call)
        call.add_done_callback(self._written)

    def flush(self, seconds: float) -> None:
        """Wait until all is written, but no longer than so."""
        wait(self._waiting.copy(), seconds)

    def _written(self, call: Future[None]) -> None:
        self._room.release()
        if error := call.exception():
            self.writes.failed(self._told(error))
        else:
            self.writes.worked()
        self._waiting.discard(call)

    def _told(self, error: BaseException) -> str:
        return self.address.hush(str(error) or type(error).__name__)
