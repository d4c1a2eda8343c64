"""A door before a server, that a test may jam."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes on what comes to a port of 127.0.0.1, and what is answered as the test says."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.flows = threading.Event()
        """While clear, nothing is answered, though whoever connects is let in."""
        self.flows.set()
        self.delay = 0.0
        """Seconds that each portion of an answer takes."""
        self.portion = 65536
        """Bytes that are answered at once."""
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """No more connections."""
        self.flows.set()
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(self.portion if answers else 65536):
                if answers:
                    self.flows.wait()
                    time.sleep(self.delay)
                sink.sendall(data)
        for side in (source, sink):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


@contextmanager
def before(port: int) -> Iterator[Proxy]:
    """A proxy before the server on this port."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
