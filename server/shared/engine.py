"""What a shared cache's engine has to do, and the errors of one that does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from .address import Address

CONNECT_SECONDS = 0.3
"""Until a connection stands, where the library can tell that from a call."""
CALL_SECONDS = 1.0
"""For one call, connecting included. What takes longer is not waited for."""


class Missing(Exception):
    """The engine's library is not installed; the message says how to."""


class Unanswered(Exception):
    """A call was given up."""

    def __init__(self) -> None:
        super().__init__(f"no answer within {CALL_SECONDS:g} s")


class Engine(Protocol):
    """One connection to a cache. Used by one thread, but for `abort`; any exception means that a call failed."""

    def get(self, model: str, names: Sequence[bytes], /) -> dict[bytes, bytes]:
        """The values of those names that are there."""

    def put(self, model: str, values: Mapping[bytes, bytes], /) -> None:
        """Keep values by their names, in the place of what is there."""

    def abort(self) -> None:
        """From another thread: whatever call is running is to fail at once, and the next one to connect anew."""


def engine_of(address: Address) -> Engine:
    """An engine that connects when it is first used. Raises Missing."""
    try:
        if address.engine == "postgresql":
            from .in_postgres import InPostgres

            return InPostgres(address)
        from .in_redis import InRedis

        return InRedis(address)
    except ImportError as error:
        raise Missing(
            f"shared cache {address.shown}: {error.name or 'a library'} is not installed; "
            "run `pip install 'meaning-lsp[shared]'`"
        ) from None
