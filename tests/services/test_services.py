"""The servers of the tests are what they are taken for."""

from __future__ import annotations

import pytest

from . import redis
from .postgres import Postgres


def test_a_postgresql_with_vectors_that_comes_back_after_a_kill(postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE kept (v vector(2))")
        connection.execute("INSERT INTO kept VALUES ('[3,4]')")
        postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    postgres.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT v <-> '[0,0]' FROM kept").fetchall() == [(5.0,)]


def test_a_redis_that_comes_back_empty_after_a_kill() -> None:
    with redis.running(password="a secret") as server:
        assert server.client().set("a", "b")
        server.kill()
        server.start()
        assert server.client().get("a") is None


def test_a_cluster_of_three() -> None:
    with redis.cluster() as nodes:
        shards = nodes[0].client().execute_command("CLUSTER SLOTS")
        assert len(nodes) == len(shards) == 3
