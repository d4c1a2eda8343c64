"""Who may use a cache, how it is spoken to, and what it shows to those who look into it."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import pytest

from server.shared.in_redis import PREFIX
from server.shared.seal import Seal
from tests.services import redis
from tests.services.postgres import PASSWORD, USER, Postgres
from tests.services.redis import Redis

from .conftest import FILES, UNITS_EACH, Links, Team

pytestmark = pytest.mark.usefixtures("patient")

UNITS = FILES * UNITS_EACH
KEY = "0123456789abcdef0123456789abcdef"
SECRET = "p@ss word/with:marks"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """Encrypted, by an authority of our own, and with a password."""
    with redis.running(tls=redis.certificates(tmp_path_factory.mktemp("tls")), password=SECRET) as server:
        yield server


def shares(team: Team, url: str) -> bool:
    """Whether two members have use of each other."""
    first, second = team.member(url), team.member(url)
    first.update()
    fetched = second.update().fetched
    assert (fetched == 0) == bool(first.problems), first.problems
    return fetched > 0


def test_encrypted_and_with_a_password(team: Team, closed: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_PASSWORD", SECRET)
    closed.client().flushall()
    assert shares(team, f"{closed.url}?ssl_ca_certs={closed.options['ssl_ca_certs']}")


def test_whose_certificate_is_not_known_is_not_spoken_to(
    team: Team, closed: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_PASSWORD", SECRET)
    closed.client().flushall()
    index = team.member(closed.url)
    assert index.update().embedded == UNITS
    assert "CERTIFICATE" in index.problems[0].upper()
    assert closed.client().dbsize() == 0


def test_a_wrong_password_is_told_and_not_shown(team: Team, closed: Redis) -> None:
    index = team.member(
        f"rediss://me:wrong-password@127.0.0.1:{closed.port}?ssl_ca_certs={closed.options['ssl_ca_certs']}"
    )
    assert index.update().embedded == UNITS
    [problem] = index.problems
    assert "password" in problem
    assert "wrong-password" not in problem


def test_postgresql_takes_credentials_from_the_environment(
    team: Team, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = postgres.emptied().replace(f"{USER}:{PASSWORD}@", "")
    monkeypatch.setenv("MEANING_SHARED_CACHE_USER", USER)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert shares(team, bare)


def test_postgresql_with_a_wrong_password(team: Team, postgres: Postgres) -> None:
    index = team.member(postgres.emptied().replace(PASSWORD, "wrong-secret"))
    assert index.update().embedded == UNITS
    assert "authentication" in index.problems[0]
    assert "wrong-secret" not in index.problems[0]


def test_postgresql_where_encryption_is_asked_for_and_not_given(team: Team, postgres: Postgres) -> None:
    index = team.member(postgres.emptied() + "?sslmode=require")
    assert index.update().embedded == UNITS
    assert "SSL" in index.problems[0]


def test_redis_that_may_only_be_read(team: Team, empty_redis: Redis) -> None:
    team.member(empty_redis.url).update()
    empty_redis.client().acl_setuser(
        "reader",
        enabled=True,
        reset=True,
        passwords=["+let me in"],
        keys=["meaning:*"],
        categories=["+@read", "+@connection"],
    )
    url = empty_redis.url.replace("//", "//reader:let%20me%20in@")
    (reader := team.member(url)).root.joinpath("own.py").write_text("def own(): return w1 + w2 + w3 + w4\n")
    report = reader.update()
    assert (report.embedded, report.fetched) == (1, UNITS)
    assert "not written to" in reader.problems[0]
    assert team.member(url).update().fetched == UNITS


def test_postgresql_that_may_only_be_read(team: Team, postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres.emptied()
    team.member(url).update()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE cache_reader LOGIN PASSWORD 'let me in'")
        connection.execute("GRANT USAGE ON SCHEMA public TO cache_reader")
        connection.execute("GRANT SELECT ON meaning_embeddings TO cache_reader")
        connection.execute("UPDATE meaning_embeddings SET used = CURRENT_DATE - 30")
    reader = team.member(url.replace(f"{USER}:{PASSWORD}", "cache_reader:let%20me%20in"))
    reader.root.joinpath("own.py").write_text("def own(): return w1 + w2 + w3 + w4\n")
    report = reader.update()
    assert (report.embedded, report.fetched) == (1, UNITS)
    assert "permission denied" in reader.problems[0]


def test_redis_keeps_for_as_many_days_as_it_is_told(team: Team, empty_redis: Redis) -> None:
    team.member(empty_redis.url + "?ttl=2").update()
    client = empty_redis.client()
    assert all(0 < client.ttl(key) <= 2 * 86400 for key in client.scan_iter())
    client.flushall()
    team.member(empty_redis.url).update()
    assert all(client.ttl(key) == -1 for key in client.scan_iter())


def test_redis_that_is_full(team: Team) -> None:
    with redis.running("--maxmemory", "1mb") as server:
        index = team.member(server.url)
        assert index.update().embedded == UNITS
        assert "not written to" in index.problems[0]


def test_postgresql_knows_when_a_vector_was_used_last(team: Team, postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres.emptied()
    team.member(url).update()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meaning_embeddings SET used = CURRENT_DATE - 100")
        connection.execute("INSERT INTO meaning_embeddings VALUES ('old', 'a', 'b', CURRENT_DATE - 100)")
        team.member(url).update()
        gone = connection.execute("DELETE FROM meaning_embeddings WHERE used < CURRENT_DATE - 90")
        assert gone.rowcount == 1
        models = connection.execute("SELECT DISTINCT model FROM meaning_embeddings").fetchall()
        assert models == [(team.bundle.fingerprint,)]


# -- with a private key


def test_members_with_one_private_key_share(team: Team, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", KEY)
    team.member(url).update()
    assert team.member(url).update().fetched == UNITS


@pytest.mark.parametrize("other", ["", KEY[::-1]])
def test_who_has_not_the_key_finds_nothing(
    team: Team, empty_redis: Redis, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", KEY)
    team.member(empty_redis.url).update()
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", other)
    index = team.member(empty_redis.url)
    report = index.update()
    assert (report.fetched, index.problems) == (0, [])


def test_who_has_not_the_key_sees_neither_texts_nor_vectors(
    team: Team, empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", KEY)
    index = team.member(empty_redis.url)
    index.update()
    stored = index.store.rows("SELECT key, vectors FROM embeddings")
    client, seal = empty_redis.client(), Seal(team.bundle)
    seen = b"".join(key + client.get(key) for key in client.scan_iter())
    assert len(seen) > 100 * len(stored) > 0
    assert not any(part in seen for key, vectors in stored for part in (key, seal.name(key), vectors, vectors[:8]))


def test_who_has_not_the_key_cannot_slip_in_a_vector(
    team: Team, empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", KEY)
    team.member(empty_redis.url).update()
    client = empty_redis.client()
    keys = sorted(client.scan_iter())
    values = client.mget(keys)
    forger = Seal(team.bundle, b"a key that he made up himself")
    bare = Seal(team.bundle)
    vectors = bare.unpack(b"", bare.pack(b"", team.member("").embedder.embed_code([("w1", ())])[0]))
    third = len(keys) // 3
    for key in keys[:third]:
        client.set(key, forger.pack(key.removeprefix(PREFIX), vectors))
    for key in keys[third : 2 * third]:
        client.set(key, bare.pack(key.removeprefix(PREFIX), vectors))
    for key, value in zip(keys[2 * third :], values, strict=False):  # true ones, of other texts
        client.set(key, value)
    index = team.member(empty_redis.url)
    assert index.update().fetched == 0
    assert "wrong sum" in index.problems[0]


def test_a_key_that_could_be_guessed_is_refused(
    team: Team, empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_KEY", "our team")
    index = team.member(empty_redis.url)
    assert index.update().embedded == UNITS
    assert "openssl rand" in index.problems[0]
    assert empty_redis.client().dbsize() == 0


# -- not there at all


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_a_library_that_is_missing_is_told(team: Team, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in ("in_redis", "in_postgres"):
        monkeypatch.delitem(sys.modules, f"server.shared.{module}", raising=False)
    index = team.member(f"{scheme}://127.0.0.1")
    assert index.update().embedded == UNITS
    [problem] = index.problems
    assert "pip install 'meaning-lsp[shared]'" in problem


def test_without_a_url_nothing_is_looked_for(team: Team, links: Links) -> None:
    team.member("").update()
    assert not links


def test_an_index_that_is_only_read_connects_to_nothing(team: Team, empty_redis: Redis, links: Links) -> None:
    index = team.member(empty_redis.url)
    index.status()
    assert not links
    index.update()
    assert len(links) == 1


def test_all_indexes_of_a_process_share_one_link(team: Team, empty_redis: Redis, links: Links) -> None:
    client = empty_redis.client()
    before = len(client.client_list())
    members = [team.member(empty_redis.url) for _ in range(3)]
    for member in members:
        member.update()
    assert len(links) == 1
    assert len(client.client_list()) == before + 2  # one to read, one to write


def test_who_is_not_needed_any_more_hangs_up(team: Team, empty_redis: Redis, links: Links) -> None:
    client = empty_redis.client()
    before = len(client.client_list())
    team.member(empty_redis.url).update()
    gc.collect()
    assert not links
    end = time.monotonic() + 10
    while len(client.client_list()) > before:
        assert time.monotonic() < end
        time.sleep(0.01)
