"""`meaning-lsp mcp`: serve a coding agent."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..terminal import PROGRAM, Failure, UsageError
from .workspace import bundle_of, folder, settings_of, told_errors

OF_THE_EXTRA = ("mcp", "mcp_types", "pydantic")
"""Modules that only the `mcp` extra brings."""


def run(options: argparse.Namespace) -> int:
    """Serve until the client closes our input."""
    try:
        from ..agents.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OF_THE_EXTRA:
            raise
        raise Failure("the `mcp` package is not installed: pip install 'meaning-lsp[mcp]'") from None
    roots = [_workspace(path) for path in options.paths]
    settings = settings_of(options)
    with told_errors():
        bundle_of(settings.model)
        return serve(roots, settings)


def _workspace(path: str) -> Path:
    """A folder that an agent may have meant to have indexed; nobody means all that they own."""
    root = folder(path)
    if root in (Path(root.anchor), Path.home()):
        raise UsageError(f"{root}: that is all there is; name the workspace's folder: {PROGRAM} mcp PATH")
    return root
