"""The MCP server: unpack a tool's arguments, ask the workspace, give back text."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from .. import __version__
from ..lsp.folder import EXPECTED
from ..org.connect import OrgError
from ..search.query import QueryError, parse_query
from ..settings import Settings
from .text import LONGEST_ERROR, as_text, plain
from .tools import INSTRUCTIONS, TOOLS, SearchCode, SimilarCode, WrongArguments, description, read, schema
from .workspace import Finding, OutsideError, Workspace

NAME = "meaning-lsp"

Context = ServerRequestContext[Any]


def serve(roots: Sequence[Path], settings: Settings) -> int:
    """Serve one client on stdin and stdout until it closes them. `roots` are absolute, links resolved."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # A thread waits for the next message, and Python would wait for it: end at once. What is committed is safe.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    workspace = Workspace(roots, settings)
    try:
        asyncio.run(_serve(server(workspace)))
    finally:
        workspace.close()
    return 0


async def _serve(of_us: Server[Any]) -> None:
    async with stdio_server() as (messages, answers):
        await of_us.run(messages, answers, of_us.create_initialization_options())


def server(workspace: Workspace) -> Server[Any]:
    """The server of a workspace, for any transport."""

    async def list_tools(_context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=description(tool),
                    input_schema=schema(tool),
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            text, wrong = await _answer(workspace, context, params.name, params.arguments or {}), False
        except (WrongArguments, QueryError, OutsideError, OrgError, *EXPECTED) as error:
            text, wrong = plain(str(error), LONGEST_ERROR), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=wrong)

    return Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _answer(workspace: Workspace, context: Context, name: str, arguments: Mapping[str, Any]) -> str:
    if name not in TOOLS:
        raise WrongArguments(f"no tool is called {name!r}: there are {', '.join(TOOLS)}")
    asked = read(TOOLS[name], arguments)

    async def told(done: int, total: int) -> None:
        await context.session.report_progress(done, total, "indexing")

    if isinstance(asked, SearchCode):
        finding = await _search(workspace, asked, told)
    else:
        finding = await _similar(workspace, asked, told)
    return await asyncio.to_thread(as_text, finding, workspace.roots, asked.budget)


async def _search(workspace: Workspace, asked: SearchCode, told: Any) -> Finding:
    everywhere = asked.scope == "org"
    repositories = asked.repositories if everywhere else None
    query = parse_query(asked.query, asked.limit, asked.languages, asked.paths, asked.kinds, repositories=repositories)
    if everywhere:
        return await asyncio.to_thread(workspace.search_organisation, query)
    await workspace.fresh(told)
    return await asyncio.to_thread(workspace.search, query)


async def _similar(workspace: Workspace, asked: SimilarCode, told: Any) -> Finding:
    file = workspace.located(asked.path)
    await workspace.fresh(told)
    return await asyncio.to_thread(workspace.similar, file, asked.line - 1, asked.limit)
