"""The scope `org`, as an editor sees it: one more place to search, whose troubles are its own."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from server.embed.bundle import Bundle
from server.index.index import Index
from server.settings import Settings
from tests.services.postgres import Postgres
from tests.services.proxy import before

from .peer import Refused, peer_of, story, working_peer

pytest.importorskip("psycopg")
from server.org.publish import publish

DEAD = "postgresql://me:secret-1@127.0.0.1:1/code"


@pytest.fixture
def org(postgres: Postgres, settings: Settings, workspace: Path, tmp_path: Path) -> Settings:
    """Settings with an index that the workspace was published to as `acme/here`, and another as `acme/there`."""
    postgres.start()
    url = postgres.database()
    there = tmp_path / "there"
    there.mkdir()
    (there / "far away.go").write_text("package far\n\nfunc w1() {\n\tw6()\n}\n")
    for root, name in ((workspace, "acme/here"), (there, "acme/there")):
        with closing(Index.open(root, Bundle.load(Path(settings.model)), settings)) as index:
            index.update()
            publish(index, url, name)
    return replace(settings, org_index=url)


@story
async def test_hits_are_in_the_clients_files_where_there_are_some(org: Settings, workspace: Path) -> None:
    async with working_peer(org, workspace) as peer:
        result = await peer.request("meaning/search", {"query": "w1", "scope": "org", "limit": 2})
    items = {item["repository"]: item for item in result["items"]}
    assert items["acme/here"]["location"]["uri"] == (workspace / "uploads.py").as_uri()
    far = items["acme/there"]
    assert far["location"] == {
        "uri": "meaning-org://acme%2Fthere/far%20away.go",
        "range": {"start": {"line": 2, "character": 0}, "end": {"line": 5, "character": 0}},
    }
    assert far["name"] == "w1"
    assert far["preview"] == "func w1()"
    assert (result["indexed"], result["pending"], result["model"]) == (5, 0, "tiny-1")


@story
async def test_repositories_are_chosen_in_the_query_or_beside_it(org: Settings) -> None:
    async with peer_of(org) as peer:
        await peer.hello()
        for asked in ({"query": "w1 repo:there"}, {"query": "w1", "repositories": ["acme/the*"]}):
            result = await peer.request("meaning/search", {**asked, "scope": "org"})
            assert {item["repository"] for item in result["items"]} == {"acme/there"}
        with pytest.raises(Refused, match="no repository is called nowhere"):
            await peer.request("meaning/search", {"query": "w1 repo:nowhere", "scope": "org"})


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [({"query": "w1", "scope": "world"}, "'workspace' or 'org'"), ({"query": "repo:x", "scope": "org"}, "empty")],
)
@story
async def test_wrong_parameters_are_told_by_name(org: Settings, asked: dict[str, str], wrong: str) -> None:
    async with peer_of(org) as peer:
        await peer.hello()
        with pytest.raises(Refused, match=wrong) as caught:
            await peer.request("meaning/search", asked)
    assert caught.value.code == -32602


@story
async def test_a_dead_server_costs_the_request_and_nothing_else(settings: Settings, workspace: Path) -> None:
    async with working_peer(replace(settings, org_index=DEAD), workspace) as peer:
        with pytest.raises(Refused, match=r"me@127\.0\.0\.1:1/code") as caught:
            await peer.request("meaning/search", {"query": "w1", "scope": "org"})
        assert "secret-1" not in caught.value.message
        assert await peer.names("w1", limit=1) == ["w1"]


@story
async def test_a_silent_server_does_not_hold_up_the_workspace(
    org: Settings, workspace: Path, postgres: Postgres
) -> None:
    with before(postgres.port) as proxy:
        proxy.flows.clear()
        url = org.org_index.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with working_peer(replace(org, org_index=url), workspace) as peer:
            stuck = [peer.begin("meaning/search", {"query": "w1", "scope": "org"})[1] for _ in range(3)]
            assert await asyncio.wait_for(peer.names("w1", limit=1), 2) == ["w1"]
            assert not any(each.done() for each in stuck)
            proxy.close()
            await asyncio.wait(stuck)
            for each in stuck:
                each.exception()


@story
async def test_without_an_index_it_says_how_to_name_one(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello()
        with pytest.raises(Refused, match=r"meaning\.orgIndex"):
            await peer.request("meaning/search", {"query": "w1", "scope": "org"})


@story
async def test_a_wrong_url_is_told_without_its_password(settings: Settings) -> None:
    async with peer_of(settings) as peer:
        await peer.hello(initializationOptions={"orgIndex": "mysql://me:secret-1@db/code"})
        await peer.until(lambda: peer.told("window/showMessage"))
        [told] = peer.told("window/showMessage")
    assert "meaning.orgIndex" in told["message"]
    assert "secret-1" not in told["message"]
