"""A shared cache in a table of PostgreSQL, made when the first vector is put into it.

`used` is the day on which a vector was last asked for, to within DAYS; what has not been for long may be deleted:
`DELETE FROM meaning_embeddings WHERE used < CURRENT_DATE - 90`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

import psycopg
from psycopg import errors

from .address import Address

DAYS = 7
"""How exact `used` is: to write it at each use would cost more than what is used."""

CONNECT_SECONDS = 2
"""The least that psycopg allows; who asks waits no longer than for any call."""

_TABLE = """
CREATE TABLE IF NOT EXISTS meaning_embeddings (
  model text NOT NULL,
  key bytea NOT NULL,
  vectors bytea NOT NULL,
  used date NOT NULL DEFAULT CURRENT_DATE,
  PRIMARY KEY (model, key)
)
"""
_GET = f"""
SELECT key, vectors, used < CURRENT_DATE - {DAYS} FROM meaning_embeddings WHERE model = %s AND key = ANY(%s)
"""
# In one order of keys, so that no two of these ever wait for each other in a circle.
_PUT = """
INSERT INTO meaning_embeddings (model, key, vectors)
SELECT %s, key, vectors FROM unnest(%s::bytea[], %s::bytea[]) AS given (key, vectors) ORDER BY key
ON CONFLICT (model, key) DO UPDATE SET vectors = excluded.vectors, used = excluded.used
"""
_USED = """
UPDATE meaning_embeddings SET used = CURRENT_DATE WHERE model = %s AND key IN
(SELECT key FROM meaning_embeddings WHERE model = %s AND key = ANY(%s) FOR UPDATE SKIP LOCKED)
"""
_READ_ONLY = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)


class InPostgres:
    """See `Engine`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: psycopg.Connection | None = None

    def get(self, model: str, names: Sequence[bytes], /) -> dict[bytes, bytes]:
        """By one query."""
        try:
            rows = self._connected().execute(_GET, (model, list(names)), binary=True).fetchall()
        except errors.UndefinedTable:
            return {}
        if forgotten := [bytes(key) for key, _, forgotten in rows if forgotten]:
            with suppress(*_READ_ONLY):
                self._connected().execute(_USED, (model, model, forgotten))
        return {bytes(key): bytes(value) for key, value, _ in rows}

    def put(self, model: str, values: Mapping[bytes, bytes], /) -> None:
        """By one statement."""
        given = (model, list(values.keys()), list(values.values()))
        try:
            self._connected().execute(_PUT, given)
        except errors.UndefinedTable:
            with suppress(errors.UniqueViolation):  # another one makes it at the same time
                self._connected().execute(_TABLE)
            self._connected().execute(_PUT, given)

    def abort(self) -> None:
        """Shuts the socket, so that who waits on it gets an error; PostgreSQL's library itself has no time-out."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as twin:
                twin.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> psycopg.Connection:
        connection = self._connection
        if connection is None or connection.closed:
            connection = self._connection = psycopg.connect(
                self._address.url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                prepare_threshold=None,  # a pooler between may hand each statement to another server
                application_name="meaning-lsp",
            )
        return connection
