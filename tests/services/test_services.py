"""The servers of the tests are what they are taken for."""

from __future__ import annotations

import pytest

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
