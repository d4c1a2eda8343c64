"""Workspaces with a tiny real model, and a database to publish them to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder
from server.index.index import Index
from server.org.publish import Published, publish
from server.org.searcher import OrgSearcher
from server.settings import Settings
from tests.embed.tiny import write_bundle
from tests.services.postgres import Postgres

psycopg = pytest.importorskip("psycopg")

Write = Callable[[str, dict[str, str]], Path]
Send = Callable[..., Published]


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.load(write_bundle(tmp_path_factory.mktemp("models") / "bundle"))


@pytest.fixture(scope="session")
def embedder(bundle: Bundle) -> Embedder:
    return Embedder(bundle, 1)


@pytest.fixture
def url(postgres: Postgres) -> str:
    postgres.start()
    return postgres.database()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", threads=1)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Make a workspace's files be these and no others."""

    def make(name: str, files: dict[str, str]) -> Path:
        root = tmp_path / "workspaces" / name
        root.mkdir(parents=True, exist_ok=True)
        for old in sorted(root.rglob("*"), reverse=True):
            if old.is_file() and old.relative_to(root).as_posix() not in files:
                old.unlink()
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return make


@pytest.fixture
def send(url: str, embedder: Embedder, settings: Settings) -> Send:
    """Index a workspace and publish it."""

    def go(root: Path, name: str | None = None, to: str = url, using: Embedder = embedder) -> Published:
        with closing(Index.open(root, using.bundle, settings, using)) as index:
            index.update()
            return publish(index, to, name or root.name)

    return go


@pytest.fixture
def searcher(url: str, embedder: Embedder) -> Iterator[OrgSearcher]:
    with closing(OrgSearcher(url, embedder)) as opened:
        yield opened


def contents(url: str) -> dict[str, Any]:
    """All that is published, without ids and times: equal for equal publications."""
    from server.org.schema import models

    everything: dict[str, Any] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for schema in models(connection):
            connection.execute(f"SET search_path = {schema}, public".encode())
            everything[schema] = {name: connection.execute(sql).fetchall() for name, sql in _CONTENTS.items()}
    return everything


_CONTENTS: dict[str, Any] = {
    "workspaces": "SELECT name, pending, units, words, published IS NOT NULL FROM workspaces ORDER BY 1",
    "files": "SELECT w.name, f.path_key, f.path, f.language, f.mark, f.digest, f.units, f.path_vector::text"
    " FROM files f JOIN workspaces w ON w.id = f.workspace ORDER BY 1, 3",
    "units": "SELECT w.name, f.path, u.language, u.kind, u.key, u.name, u.container, u.start_line, u.end_line,"
    " u.name_line, u.name_start, u.name_end, u.head, u.preview, u.terms, u.length, u.lexemes::text"
    " FROM units u JOIN files f ON f.id = u.file JOIN workspaces w ON w.id = u.workspace AND w.id = f.workspace"
    " ORDER BY 1, 2, 8, 9, 6",
    "parts": "SELECT w.name, f.path, u.start_line, u.name, p.language, p.kind, p.combined::text"
    " FROM parts p JOIN units u ON u.id = p.unit JOIN files f ON f.id = p.file AND f.id = u.file"
    " JOIN workspaces w ON w.id = p.workspace ORDER BY 1, 2, 3, 4, 7",
    "terms": "SELECT w.name, term, n.units FROM terms n JOIN workspaces w ON w.id = n.workspace ORDER BY 1, 2",
    "counts": "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM units), (SELECT count(*) FROM parts)",
}
