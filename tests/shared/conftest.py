"""A team: clones of one workspace, each with an index of its own, and one cache that all of them name."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder
from server.index.index import Index
from server.settings import Settings
from server.shared import breaker, cache, line, link
from server.shared.link import Link
from tests.embed.tiny import write_bundle
from tests.services import redis
from tests.services.postgres import Postgres
from tests.services.redis import Redis

FILES, UNITS_EACH = 40, 10

Links: TypeAlias = "WeakValueDictionary[Any, Link]"


class CountingEmbedder(Embedder):
    """Tells how many texts it embedded, and does something before some."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle, 1)
        self.texts = 0
        self.before: Callable[[], object] = lambda: None

    def embed_code(self, texts: Sequence[tuple[str, Sequence[int]]]) -> list[Any]:
        self.before()
        self.texts += len(texts)
        return super().embed_code(texts)


class Team:
    """Makes members' indexes of the same code."""

    def __init__(self, folder: Path) -> None:
        self.bundle = Bundle.load(write_bundle(folder / "bundle"))
        self._folder = folder
        self._code = folder / "code"
        for number in range(FILES):
            code = (f"def f{number}_{i}():\n    return w{number % 40} + w{i}\n" for i in range(UNITS_EACH))
            path = self._code / f"w{number % 7}" / f"w{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n\n".join(code))
        self._members = 0

    def member(self, url: str, bundle: Bundle | None = None) -> Index:
        """The index, still empty, of a new member's clone."""
        self._members += 1
        clone = self._folder / f"clone-{self._members}" / "work"
        shutil.copytree(self._code, clone)
        settings = Settings(cache_dir=clone.parent / "cache", threads=1, shared_cache=url)
        bundle = bundle or self.bundle
        return Index.open(clone, bundle, settings, CountingEmbedder(bundle))


def embedded(index: Index) -> int:
    """Texts that a member's model was given, paths included."""
    assert isinstance(index.embedder, CountingEmbedder)
    return index.embedder.texts


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


@pytest.fixture(autouse=True)
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    """A process's links to caches, none from another test; and nothing from the environment."""
    gc.collect()
    links: Links = WeakValueDictionary()
    monkeypatch.setattr(cache, "_links", links)
    for name in ("", "_USER", "_PASSWORD", "_KEY"):
        monkeypatch.delenv(f"MEANING_SHARED_CACHE{name}", raising=False)
    return links


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of other things than time: a machine that is busy with other things is no slow cache."""
    for module in (line, link):
        monkeypatch.setattr(module, "CALL_SECONDS", 30.0)
    monkeypatch.setattr(breaker, "PATIENCE", 30.0)


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Sequence[Redis]]:
    with redis.cluster() as nodes:
        yield nodes


@pytest.fixture
def empty_redis(redis_server: Redis) -> Redis:
    redis_server.client().flushall()
    return redis_server


@pytest.fixture(params=["redis", "redis cluster", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Of an empty cache, of each kind."""
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        return postgres.emptied()
    if request.param == "redis":
        server: Redis = request.getfixturevalue("empty_redis")
        return server.url
    nodes: Sequence[Redis] = request.getfixturevalue("redis_cluster")
    for node in nodes:
        node.client().flushall()
    return nodes[0].url.replace("redis", "redis+cluster", 1)
