"""What an agent finds in the organisation's index, and what it is told where there is none."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from mcp import Client

from server.agents.server import server
from server.agents.workspace import Workspace
from server.embed.bundle import Bundle
from server.index.index import Index
from server.settings import Settings
from tests.embed.tiny import write_bundle
from tests.services.postgres import Postgres

from .test_mcp import Agent

pytest.importorskip("psycopg")


def test_what_is_here_comes_with_its_code_and_what_is_not_with_its_signature(
    postgres: Postgres, tmp_path: Path
) -> None:
    from server.org.publish import publish

    postgres.start()
    model = write_bundle(tmp_path / "bundle")
    settings = Settings(model=str(model), cache_dir=tmp_path / "cache", threads=1, org_index=postgres.database())
    roots = [tmp_path / "here", tmp_path / "there"]
    for root in roots:
        root.mkdir()
        (root / "a.py").write_text(f"def w1():\n    return '{root.name}'\n")
        with closing(Index.open(root, Bundle.load(model), settings)) as index:
            index.update()
            publish(index, settings.org_index, root.name)

    async def ask(settings: Settings) -> tuple[str, str, str]:
        workspace = Workspace(roots[:1], settings)
        try:
            async with Client(server(workspace)) as client:
                agent = Agent(client)
                everywhere = await agent.text("search_code", query="w1", scope="org")
                there = await agent.text("search_code", query="w1", scope="org", repositories="there")
                return everywhere, there, await agent.refused("search_code", query="w1 repo:nowhere", scope="org")
        finally:
            workspace.close()

    everywhere, there, refused = asyncio.run(ask(settings))
    assert "a.py:1-2  function w1\n```python\ndef w1():\n    return 'here'\n```" in everywhere
    assert there == "there:a.py:1-2  function w1\n    def w1()"
    assert "no repository is called nowhere" in refused
