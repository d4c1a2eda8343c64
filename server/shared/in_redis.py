"""A shared cache in Redis or Valkey, one server or a cluster. What has no room any more goes by the server's policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.retry import Retry

from .address import Address
from .engine import CALL_SECONDS, CONNECT_SECONDS

PREFIX = b"meaning:"
"""So that other things may live in the same database."""


class InRedis:
    """See `Engine`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: Any = None

    def get(self, _: str, names: Sequence[bytes], /) -> dict[bytes, bytes]:
        """In one exchange with each server."""
        keys = [PREFIX + name for name in names]
        if self._is_cluster:  # whose keys lie here and there, so that one MGET may not name them all
            with self._connected().pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.get(key)
                found = pipeline.execute()
        else:
            found = self._connected().mget(keys)
        return {name: value for name, value in zip(names, found, strict=True) if isinstance(value, bytes)}

    def put(self, _: str, values: Mapping[bytes, bytes], /) -> None:
        """In one exchange with each server."""
        with self._connected().pipeline(transaction=False) as pipeline:
            for name, value in values.items():
                pipeline.set(PREFIX + name, value, ex=self._address.seconds)
            pipeline.execute()

    def abort(self) -> None:
        """Shuts the sockets, so that who waits on one gets an error."""
        client = self._client
        self._client = None
        if client is not None:
            with suppress(Exception):  # it may be connecting just now
                if self._is_cluster:
                    client.disconnect_connection_pools()
                else:
                    client.connection_pool.disconnect()

    @property
    def _is_cluster(self) -> bool:
        return self._address.engine == "redis cluster"

    def _connected(self) -> Any:
        client = self._client
        if client is None:
            make = RedisCluster.from_url if self._is_cluster else Redis.from_url
            client = self._client = make(
                self._address.url,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=CALL_SECONDS,
                retry=Retry(NoBackoff(), 0),
                protocol=2,  # what is asked needs no more, and it connects in fewer exchanges
            )
        return client
