"""`meaning-lsp` without a command: the language server."""

from __future__ import annotations

import argparse

from ..settings import Settings


def run(options: argparse.Namespace) -> int:
    """Serve on stdio, or on a port."""
    from ..lsp.server import serve_stdio, serve_tcp

    return serve_tcp(options.tcp, Settings()) if options.tcp else serve_stdio(Settings())
