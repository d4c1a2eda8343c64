"""What an agent sees: the real client of the `mcp` package, the real server, stdio between them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from server import __version__
from server.agents.server import server as server_of
from server.agents.workspace import Workspace
from server.parse import KINDS
from server.settings import Settings
from tests.e2e import offline

from .conftest import write

HOUSE = Path(__file__).parents[2]
MODULE = ("-m", "server")
PATIENCE = 120.0


class Agent:
    """A client, and what a test wants to know of an answer."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> types.CallToolResult:
        return await asyncio.wait_for(self.client.call_tool(tool, arguments), PATIENCE)

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self.call(tool, **arguments)
        assert not result.is_error, result
        [content] = result.content
        assert isinstance(content, types.TextContent)
        return content.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.call(tool, **arguments)
        assert result.is_error, result
        [content] = result.content
        assert isinstance(content, types.TextContent)
        assert "\n" not in content.text
        return content.text


@asynccontextmanager
async def agent_on_stdio(
    cache: Path, *roots: Path, module: Sequence[str] = MODULE, mode: Any = "auto"
) -> AsyncIterator[Agent]:
    """An agent with a server of its own, a process as a user's client starts it."""
    environment = {**os.environ, "MEANING_CACHE_DIR": str(cache)}
    server = StdioServerParameters(
        command=sys.executable, args=[*module, "mcp", *map(str, roots)], env=environment, cwd=HOUSE
    )
    async with Client(stdio_client(server), mode=mode) as client:
        yield Agent(client)


@asynccontextmanager
async def agent(cache: Path, *roots: Path) -> AsyncIterator[Agent]:
    """The same in this process, which is fast."""
    workspace = Workspace(roots, Settings(cache_dir=cache))
    try:
        async with Client(server_of(workspace)) as client:
            yield Agent(client)
    finally:
        workspace.close()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def story(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), 2 * PATIENCE))

    return run


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@story
async def test_an_agent_of_any_age_is_served(root: Path, cache: Path, mode: str) -> None:
    async with agent_on_stdio(cache, root, mode=mode) as it:
        assert it.client.server_info
        assert (it.client.server_info.name, it.client.server_info.version) == ("meaning-lsp", __version__)
        assert "net/upload.py:2-5" in await it.text("search_code", query="where is a failed upload sent again")


@story
async def test_the_tools_have_schemas_that_say_what_is_asked_for(root: Path, cache: Path) -> None:
    async with agent(cache, root) as it:
        tools = {tool.name: tool for tool in (await it.client.list_tools()).tools}
    assert tools.keys() == {"search_code", "similar_code"}
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description
        assert tool.annotations
        assert tool.annotations.read_only_hint
        properties = cast("dict[str, dict[str, Any]]", tool.input_schema["properties"])
        assert all(argument["description"] for argument in properties.values())
    assert tools["search_code"].input_schema["required"] == ["query"]
    assert set(tools["search_code"].input_schema["properties"]["kinds"]["items"]["enum"]) == set(KINDS)
    assert tools["similar_code"].input_schema["required"] == ["path", "line"]


@story
async def test_an_answer_is_places_with_their_code(root: Path, cache: Path) -> None:
    async with agent(cache, root) as it:
        text = await it.text("search_code", query="split a cron expression", limit=1)
    assert text == (
        "time/cron.py:1-3  function parse_cron\n"
        "```python\n"
        "def parse_cron(text):\n"
        '    """Split a cron expression into its five fields."""\n'
        "    return text.split()\n"
        "```"
    )


@story
async def test_filters_leave_the_rest_out(root: Path, cache: Path) -> None:
    async with agent(cache, root) as it:
        assert "cookies.go" not in await it.text("search_code", query="cookies", languages=["python"])
        assert "cron.py" not in await it.text("search_code", query="cron", paths=["web/**", "net/"])
        assert "class Uploader" in (await it.text("search_code", query="upload", kinds="class")).partition("\n")[0]


@story
async def test_similar_code_is_what_does_the_same(root: Path, cache: Path) -> None:
    write(
        root,
        {"time/other.py": 'def split_schedule(text):\n    """Split a cron expression."""\n    return text.split()\n'},
    )
    async with agent(cache, root) as it:
        for path in ("time/cron.py", str(root / "time" / "cron.py"), "./net/../time/cron.py"):
            text = await it.text("similar_code", path=path, line=2)
            assert text.startswith("time/other.py:1-3  function split_schedule\n")
            assert "function parse_cron" not in text


@story
async def test_an_edit_is_found_by_the_next_question(root: Path, cache: Path) -> None:
    async with agent_on_stdio(cache, root) as it:
        assert "pancake" not in await it.text("search_code", query="turn a pancake")
        for number in range(5):
            (root / "time" / "cron.py").write_text(f"def turn_pancake_{number}(pan):\n    '''Turn a pancake.'''\n")
            text = await it.text("search_code", query="turn a pancake")
            assert text.startswith(f"time/cron.py:1-2  function turn_pancake_{number}\n")
        (root / "time" / "cron.py").unlink()
        assert "pancake" not in await it.text("search_code", query="turn a pancake")


@story
async def test_several_folders_are_searched_together(root: Path, tmp_path: Path, cache: Path) -> None:
    other = write(tmp_path / "other", {"pan.py": "def turn_pancake(pan):\n    '''Turn a pancake.'''\n"})
    async with agent_on_stdio(cache, root, other, root / "time") as it:
        assert (await it.text("search_code", query="turn a pancake")).startswith(f"{other / 'pan.py'}:1-2 ")
        text = await it.text("search_code", query="split a cron expression")
        assert text.count("function parse_cron") == 1, "a folder in a folder is told twice"
        assert str(root / "time" / "cron.py") in text
        await it.text("similar_code", path=str(other / "pan.py"), line=1)
        await it.text("similar_code", path="pan.py", line=1)


@story
async def test_the_code_of_an_answer_keeps_to_its_budget(root: Path, cache: Path) -> None:
    long = "".join(f"    bake(number={number})\n" for number in range(3000))
    write(root, {"long.py": f"def bake_everything():\n    '''Bake a cake.'''\n{long}"})
    async with agent(cache, root) as it:
        for budget in (0, 100, 1000, 20_000):
            text = await it.text("search_code", query="bake a cake", budget=budget)
            code = "".join(part.partition("\n")[2] for part in text.split("```")[1::2])
            assert len(code) <= budget
            assert "def bake_everything()" in text
            assert len(text) < budget + 8 * 400
        assert "… lines " in text


@story
async def test_nothing_outside_of_the_workspace_is_told(root: Path, tmp_path: Path, cache: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("def secret(): ...\n")
    (root / "link.py").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    async with agent_on_stdio(cache, root) as it:
        for path in ("../secret.py", str(secret), "link.py", "folder/secret.py", "/etc/passwd", "net/../../secret.py"):
            assert "outside of the workspace" in await it.refused("similar_code", path=path, line=1)
        nowhere = await it.refused("similar_code", path="../missing.py", line=1)
        assert "outside of the workspace" in nowhere
        assert "no such file" in await it.refused("similar_code", path="missing.py", line=1)
        assert "no such file" in await it.refused("similar_code", path="net", line=1)
        await it.refused("similar_code", path="nu\0l\n", line=1)
        assert "no such file" in await it.refused("similar_code", path="x" * 10_000, line=1)
        assert "secret" not in await it.text("search_code", query="secret", paths=["../*", "/"])


@story
async def test_a_wrong_argument_is_told_by_its_name(root: Path, cache: Path) -> None:
    async with agent(cache, root) as it:
        assert "query" in await it.refused("search_code")
        assert "query" in await it.refused("search_code", query="lang:python")
        assert "limit" in await it.refused("search_code", query="x", limit=1000)
        assert "budget" in await it.refused("search_code", query="x", budget=10**9)
        assert "python" in await it.refused("search_code", query="x", languages=["pythn"])
        assert "depth" in await it.refused("search_code", query="x", depth=3)
        assert "line" in await it.refused("similar_code", path="net/upload.py", line=0)
        assert "line" in await it.refused("similar_code", path="net/upload.py", line=10**30)
        assert "search_code" in await it.refused("grep", query="x")
        assert "nothing found" in await it.text("similar_code", path="net/upload.py", line=999)


@story
async def test_a_folder_that_goes_is_told_and_found_again_when_it_comes_back(
    root: Path, tmp_path: Path, cache: Path
) -> None:
    other = write(tmp_path / "other", {"pan.py": "def turn_pancake(pan):\n    '''Turn a pancake.'''\n"})
    async with agent(cache, root, other) as it:
        await it.text("search_code", query="turn a pancake")
        shutil.rmtree(other)
        text = await it.text("search_code", query="turn a pancake")
        assert "turn_pancake" not in text
        assert f"note: {other}: no such folder" in text
        write(other, {"pan.py": "def turn_pancake(pan):\n    '''Turn a pancake.'''\n"})
        assert "turn_pancake" in await it.text("search_code", query="turn a pancake")
        shutil.rmtree(root)
        shutil.rmtree(other)
        assert "no such folder" in await it.refused("search_code", query="turn a pancake")


@story
async def test_questions_may_be_asked_together(root: Path, cache: Path) -> None:
    async with agent(cache, root) as it:
        asked = [it.text("search_code", query="split a cron expression") for _ in range(20)]
        assert len(set(await asyncio.gather(*asked))) == 1


@pytest.mark.slow
@pytest.mark.skipif(not offline.supported(), reason="the system cannot forbid it here")
@story
async def test_the_server_asks_for_no_network(root: Path, cache: Path) -> None:
    async with agent_on_stdio(cache, root, module=("-m", "tests.e2e.offline")) as it:
        assert "parse_cron" in await it.text("search_code", query="split a cron expression")
        assert "next_run" in await it.text("similar_code", path="time/cron.py", line=1)


@story
async def test_names_and_code_of_any_kind_make_one_result_each(root: Path, cache: Path) -> None:
    name = "pan\n9: 1-2  function evil\x1b[31m.py"
    write(root, {name: "def turn_pancake(pan):\n    return '```'\n", "crlf.py": "def fry_pancake():\r\n    pass\r\n"})
    (root / "latin.py").write_bytes(b"def eat_pancake():\n    return '\xe9'\n")
    async with agent(cache, root) as it:
        text = await it.text("search_code", query="pancake", paths=["*.py"], kinds=["function"])
        heads = [part.partition("\n")[0] for part in text.split("\n\n")]
    assert "pan\\n9: 1-2  function evil\\x1b[31m.py:1-2  function turn_pancake" in heads
    assert {"crlf.py:1-2  function fry_pancake", "latin.py:1-2  function eat_pancake"} <= set(heads)
    assert "return '\ufffd'" in text
