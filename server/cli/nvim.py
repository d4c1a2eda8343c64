"""`meaning-lsp nvim`: where the Neovim plugin is, for who links it to where Neovim looks."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..terminal import print_line


def run(_options: argparse.Namespace) -> int:
    """Print the folder."""
    print_line(str(Path(__file__).parents[1] / "editors" / "nvim"))
    return 0
