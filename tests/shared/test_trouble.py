"""A cache that is down, slow, wrong or hostile costs a moment, and changes nothing in the index."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.index.index import Index
from server.shared import breaker, cache, link
from server.shared.engine import CALL_SECONDS
from server.shared.in_redis import PREFIX
from server.shared.link import Link
from server.shared.seal import Seal, Vectors
from tests.embed.tiny import write_bundle
from tests.index.content import content
from tests.services import proxy, redis
from tests.services.missing import free_port
from tests.services.postgres import Postgres
from tests.services.proxy import Proxy
from tests.services.redis import Redis

from .conftest import FILES, UNITS_EACH, CountingEmbedder, Links, Team

UNITS = FILES * UNITS_EACH


def as_alone(team: Team, index: Index) -> bool:
    """Whether the index is what it would be without a shared cache."""
    alone = team.member("")
    alone.update()
    return content(alone) == content(index)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "postgresql"])
def test_a_cache_that_is_not_there(team: Team, scheme: str) -> None:
    index = team.member(f"{scheme}://me:secret@127.0.0.1:{free_port()}/0")
    assert index.update().embedded == UNITS
    [problem] = index.problems
    assert f"{scheme}://me@127.0.0.1" in problem
    assert "embedded here" in problem
    assert "secret" not in problem
    assert as_alone(team, index)


def test_a_host_that_there_is_not(team: Team) -> None:
    index = team.member("redis://nobody.invalid")
    assert index.update().embedded == UNITS
    assert len(index.problems) == 1


def killing(index: Index, kill: Callable[[], object], at: int) -> None:
    """Have a server killed before a model's run."""
    assert isinstance(index.embedder, CountingEmbedder)
    runs = count(1)
    index.embedder.before = lambda: kill() if next(runs) == at else None


@pytest.mark.parametrize("at", [1, 2])
def test_redis_killed_in_the_middle(team: Team, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "FIRST_BREAK", 0.1)
    with redis.running() as server:
        index = team.member(server.url)
        killing(index, server.kill, at)
        assert index.update().embedded == UNITS
        assert len(index.problems) == 1
        assert as_alone(team, index)
        server.start()
        time.sleep(0.2)
        assert _eventually_shared(team, index, server.url)


@pytest.mark.parametrize("at", [1, 2])
def test_postgresql_killed_in_the_middle(
    team: Team, at: int, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_BREAK", 0.1)
    url = postgres.emptied()
    try:
        index = team.member(url)
        killing(index, postgres.kill, at)
        assert index.update().embedded == UNITS
        assert len(index.problems) == 1
        assert as_alone(team, index)
    finally:
        postgres.start()
    time.sleep(0.2)
    assert _eventually_shared(team, index, url)


@pytest.mark.usefixtures("patient")
def test_what_came_before_a_kill_is_used(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    with redis.running() as server:
        _filled(team, server.url)
        second = team.member(server.url)
        monkeypatch.setattr(cache, "ASKED_AT_ONCE", 100)
        calls, asked = count(1), Link.get

        def get(*arguments: Any) -> dict[bytes, bytes]:
            if next(calls) == 3:
                server.kill()
            return asked(*arguments)

        monkeypatch.setattr(Link, "get", get)
        report = second.update()
    assert (report.fetched, report.embedded) == (200, UNITS - 200)
    assert as_alone(team, second)


def _eventually_shared(team: Team, index: Index, url: str) -> bool:
    """Whether the cache is used again by itself, in the same process, and the trouble forgotten."""
    new = index.root / "new.py"
    new.write_text("\n\n".join(f"def g{i}(): return w{i} + w1 + w2\n" for i in range(30)))
    index.update()
    other = team.member(url)
    (other.root / "new.py").write_text(new.read_text())
    return other.update().fetched >= 30 and index.problems == other.problems == []


def _filled(team: Team, url: str) -> None:
    assert team.member(url).update().embedded == UNITS


def _through(url: str, door: Proxy, port: int) -> str:
    return url.replace(f":{port}", f":{door.port}")


def _stall(door: Proxy) -> None:
    door.flows.clear()


def _drip(door: Proxy) -> None:
    door.portion, door.delay = 16, 0.05


@pytest.mark.parametrize("jam", [_stall, _drip])
@pytest.mark.parametrize("engine", ["redis", "postgresql"])
def test_who_does_not_answer_is_waited_for_once(
    team: Team, engine: str, jam: Callable[[Proxy], None], request: pytest.FixtureRequest
) -> None:
    url, port = _server(engine, request)
    _filled(team, url)
    with proxy.before(port) as door:
        index = team.member(_through(url, door, port))
        jam(door)
        begun = time.monotonic()
        assert index.update().embedded == UNITS
        # Once for reading; and at the end for what was to be written.
        assert time.monotonic() - begun < 2 * CALL_SECONDS + 3
        assert "no answer within 1 s" in index.problems[0]
        assert as_alone(team, index)


@pytest.mark.parametrize("engine", ["redis", "postgresql"])
def test_who_stalls_in_the_middle_is_asked_again_when_he_is_well(
    team: Team, engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_BREAK", 0.1)
    url, port = _server(engine, request)
    with proxy.before(port) as door:
        url = _through(url, door, port)
        index = team.member(url)
        killing(index, lambda: _stall(door), 1)
        assert index.update().embedded == UNITS
        assert len(index.problems) == 1
        door.flows.set()
        time.sleep(CALL_SECONDS)
        assert _eventually_shared(team, index, url)


def _server(engine: str, request: pytest.FixtureRequest) -> tuple[str, int]:
    if engine == "redis":
        server: Redis = request.getfixturevalue("empty_redis")
        return server.url, server.port
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.emptied(), postgres.port


def test_who_is_slower_than_the_model_is_left_alone(team: Team, empty_redis: Redis) -> None:
    _filled(team, empty_redis.url)
    with proxy.before(empty_redis.port) as door:
        door.delay = 0.15
        index = team.member(_through(empty_redis.url, door, empty_redis.port))
        for number in range(8):
            for path in index.root.rglob("*.py"):
                path.write_text(path.read_text().replace("w1", f"w1 * {number}"))
            index.update()
        assert "longer than to embed" in index.problems[0]


def test_a_write_that_does_not_keep_up_is_dropped(
    team: Team, empty_redis: Redis, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "WAITING_PUTS", 1)
    with proxy.before(empty_redis.port) as door:
        index = team.member(_through(empty_redis.url, door, empty_redis.port))
        killing(index, lambda: _stall(door), 1)
        begun = time.monotonic()
        assert index.update().embedded == UNITS
        assert time.monotonic() - begun < 2 * CALL_SECONDS + 3
        assert as_alone(team, index)


def _unit(seed: int, dim: int) -> Vectors:
    vector = np.random.default_rng(seed).normal(size=(1, dim))
    unit: Vectors = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


SPOILED: dict[str, Callable[[Seal, bytes, bytes], bytes]] = {
    "nothing": lambda seal, name, value: b"",
    "noise": lambda seal, name, value: np.random.default_rng(0).bytes(len(value)),
    "a part": lambda seal, name, value: value[:-1],
    "more": lambda seal, name, value: value + value,
    "one bit": lambda seal, name, value: value[:20] + bytes([value[20] ^ 1]) + value[21:],
    "a million bytes": lambda seal, name, value: bytes(1_000_000),
    "another's": lambda seal, name, value: seal.pack(bytes(32), _unit(1, 8)),
    "not a number": lambda seal, name, value: seal.pack(name, np.full((1, 8), np.nan, np.float32)),
    "infinite": lambda seal, name, value: seal.pack(name, np.full((1, 8), np.inf, np.float32)),
    "too long": lambda seal, name, value: seal.pack(name, _unit(1, 8) * np.float32(1.02)),
    "zero": lambda seal, name, value: seal.pack(name, _unit(1, 8) * 0),
    "no vectors": lambda seal, name, value: seal.pack(name, np.empty((0, 8), np.float32)),
    "one bad of two": lambda seal, name, value: seal.pack(name, np.concatenate([_unit(1, 8), _unit(2, 8) * 2])),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_a_wrong_value_is_left_out_and_mended(
    team: Team, empty_redis: Redis, spoil: Callable[[Seal, bytes, bytes], bytes]
) -> None:
    _filled(team, empty_redis.url)
    client, seal = empty_redis.client(), Seal(team.bundle)
    spoiled = sorted(client.keys())[::10]
    for key in spoiled:
        client.set(key, spoil(seal, key.removeprefix(PREFIX), client.get(key)))
    second = team.member(empty_redis.url)
    second.update()
    assert isinstance(second.embedder, CountingEmbedder)
    assert second.embedder.texts == len(spoiled)
    assert "left out" in second.problems[0]
    assert as_alone(team, second)
    third = team.member(empty_redis.url)
    assert third.update().fetched == UNITS
    assert third.problems == []


def test_a_value_of_another_width_is_left_out(team: Team, empty_redis: Redis, tmp_path: Path) -> None:
    _filled(team, empty_redis.url)
    client = empty_redis.client()
    wide = Bundle.load(write_bundle(tmp_path / "wide", changed={"dim": 16}))
    for key in client.scan_iter():
        client.set(key, Seal(wide).pack(key.removeprefix(PREFIX), _unit(1, 16)))
    second = team.member(empty_redis.url)
    assert second.update().embedded == UNITS
    assert "of another width" in second.problems[0]
    assert as_alone(team, second)


def test_keys_that_hold_other_things(team: Team, empty_redis: Redis) -> None:
    _filled(team, empty_redis.url)
    client = empty_redis.client()
    for key in client.scan_iter():
        client.delete(key)
        client.hset(key, "a", "b")
    second = team.member(empty_redis.url)
    assert second.update().embedded == UNITS
    assert as_alone(team, second)


def test_rows_that_hold_other_things(team: Team, postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres.emptied()
    _filled(team, url)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE meaning_embeddings SET vectors = key")
    second = team.member(url)
    assert second.update().embedded == UNITS
    assert as_alone(team, second)
    assert team.member(url).update().fetched == UNITS


def test_a_table_of_another_shape(team: Team, postgres: Postgres) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres.emptied()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE meaning_embeddings (a int)")
    index = team.member(url)
    assert index.update().embedded == UNITS
    assert len(index.problems) == 1


def test_a_server_that_speaks_something_else(team: Team, postgres: Postgres, empty_redis: Redis) -> None:
    for url in (f"redis://127.0.0.1:{postgres.port}", f"postgresql://127.0.0.1:{empty_redis.port}/x"):
        index = team.member(url)
        assert index.update().embedded == UNITS
        assert len(index.problems) == 1
        assert as_alone(team, index)
