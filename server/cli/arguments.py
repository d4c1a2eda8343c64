"""What can be typed. Each command is the module of its name beside this one, whose `run` takes the options."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from .. import __version__
from ..settings import Settings
from ..terminal import PROGRAM, UsageError

SHELLS = ("bash", "zsh", "fish")


class _Parser(argparse.ArgumentParser):
    """argparse's, with mistakes told in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options that were typed, in any order: argparse itself lets no option stand between QUERY and PATH.

    `command` is the command's name. Raises UsageError.
    """
    whole = parser()
    options, left = whole.parse_known_args(arguments)
    if len(left) == 1 and not left[0].startswith("-") and getattr(options, "path", "") is None:
        options.path = left.pop()
    if left:
        whole.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def parser() -> argparse.ArgumentParser:
    """Every command and every option there is."""
    whole = _Parser(
        prog=PROGRAM, description="Find code by what it means. Without a command: a language server on stdio."
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    whole.add_argument("--tcp", type=_port, metavar="PORT", help="serve on 127.0.0.1:PORT instead of stdio")
    whole.set_defaults(command="serve")
    commands = whole.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    _add_search(commands)
    for name, text in (
        ("index", "bring the index of a folder up to date"),
        ("status", "tell what the index of a folder holds"),
        ("doctor", "say what is wrong with the installation, and what to do"),
    ):
        command = _command(commands, name, text)
        _add_index_options(command)
        command.add_argument("path", nargs="?", default=".", help="the workspace folder (default: this one)")
        if name != "doctor":
            command.add_argument("--json", action="store_true", help="print JSON")
    _add_publish(commands)
    mcp = _command(commands, "mcp", "an MCP server on stdio, for coding agents")
    _add_index_options(mcp)
    mcp.add_argument("paths", nargs="*", default=["."], help="the workspace folders (default: this one)")
    completion = _command(commands, "completion", "print what a shell needs to complete this program's commands")
    completion.add_argument("shell", choices=SHELLS, help="the shell")
    _command(commands, "nvim", "print the folder of the Neovim plugin")
    return whole


def _add_search(commands: Any) -> None:
    search = _command(commands, "search", "answer a question about a folder of code")
    search.add_argument("query", nargs="?", help="what the code does, or a name; may hold filters: lang:go path:src/")
    search.add_argument("path", nargs="?", help="the workspace folder (default: this one)")
    search.add_argument(
        "--batch", metavar="FILE", help="instead of QUERY: one query a line (- is stdin), one JSON object a line out"
    )
    search.add_argument("--limit", type=int, default=Settings.limit, metavar="N", help="hits (default: %(default)s)")
    search.add_argument("--lang", action="append", default=[], metavar="L", help="only this language (may be repeated)")
    search.add_argument("--path", dest="globs", action="append", default=[], metavar="GLOB", help="only these paths")
    search.add_argument("--kind", action="append", default=[], metavar="K", help="only this kind: function, class, …")
    search.add_argument(
        "--scope",
        choices=("workspace", "org"),
        default="workspace",
        help="where: the folder, or all that was published to the organisation's index (default: %(default)s)",
    )
    search.add_argument(
        "--repo", action="append", default=[], metavar="NAME", help="only this repository (a glob; with --scope org)"
    )
    search.add_argument("--only", choices=("dense", "lexical"), help="rank by vectors alone, or by full text alone")
    search.add_argument("--no-index", action="store_true", help="search the index as it is, without an update before")
    search.add_argument("--open", action="store_true", help="open a hit in $EDITOR, at its line")
    search.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="code in colours (default: in a terminal)"
    )
    search.add_argument("--json", action="store_true", help="print JSON")
    _add_index_options(search)


def _add_publish(commands: Any) -> None:
    publish = _command(commands, "publish", "send a folder's index to the organisation's (MEANING_ORG_INDEX)")
    publish.add_argument("path", nargs="?", default=".", help="the workspace folder (default: this one)")
    publish.add_argument("--name", help="what it is called there (default: owner/project of its git remote)")
    publish.add_argument("--remove", metavar="NAME", help="instead: take out what was published under this name")
    publish.add_argument("--json", action="store_true", help="print JSON")
    _add_index_options(publish)


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(command=name)
    return command


def _add_index_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", metavar="NAME|DIR", help="the model: default, or a bundle's folder")
    command.add_argument("--cache-dir", metavar="DIR", help="where indexes live")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)
