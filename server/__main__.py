"""The command line: `meaning-lsp`, or `python -m server` in a clone.

Exit status: 0 fine; 1 a failure, told in one line on stderr; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .settings import SettingError, Settings, user_path
from .terminal import (
    PROGRAM,
    Failure,
    Interrupt,
    ProgressBar,
    as_json,
    as_text,
    close_complaints,
    close_output,
    complain,
    hold_standard_streams,
    print_line,
)

if TYPE_CHECKING:
    from .embed.bundle import Bundle
    from .index.index import Index, Status
    from .index.report import IndexReport
    from .search.answer import Answer, Query
    from .search.searcher import Searcher

PATIENCE = 60.0
"""Seconds that a command waits while another process updates the index, before it goes on with what is there."""

INTERRUPTED = "interrupted; what was indexed until now is kept"

MAX_WORKERS = 8
"""Processes that prepare files; the one that writes could not keep up with more."""


class UsageError(Exception):
    """The command was called wrongly: exit status 2."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    hold_standard_streams()
    interrupt = Interrupt()
    try:
        options = _parsed(arguments)
        if options.run is not _serve:  # which has its own ways to end
            interrupt.listen()
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except KeyboardInterrupt:
        return complain(INTERRUPTED, 130)
    except Exception as error:
        if interrupt.came:  # an import that Ctrl-C breaks off makes another error of it
            return complain(INTERRUPTED, 130)
        return _explain(error)
    finally:
        interrupt.forget()
        close_complaints()


def _explain(error: Exception) -> int:
    """Tell what the user can do something about; anything else is a fault of ours, and raised again."""
    if isinstance(error, BrokenPipeError):
        close_output()  # the reader (`| head`) has seen enough
        return 0
    if isinstance(error, (UsageError, SettingError)):
        return complain(str(error), 2)
    if isinstance(error, Failure):
        return complain(str(error), 1)
    if isinstance(error, OSError):  # what nothing below had a better word for
        return complain(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    raise error


# -- what can be typed


class _Parser(argparse.ArgumentParser):
    """argparse's, with mistakes told in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options that were typed, in any order: argparse itself lets no option stand between QUERY and PATH."""
    parser = _parser()
    options, left = parser.parse_known_args(arguments)
    if len(left) == 1 and not left[0].startswith("-") and getattr(options, "path", "") is None:
        options.path = left.pop()
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM, description="Find code by what it means. Without a command: a language server on stdio."
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("--tcp", type=_port, metavar="PORT", help="serve on 127.0.0.1:PORT instead of stdio")
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    search = _command(commands, "search", _search, "answer a question about a folder of code")
    search.add_argument("query", nargs="?", help="what the code does, or a name; may hold filters: lang:go path:src/")
    search.add_argument("path", nargs="?", help="the workspace folder (default: this one)")
    search.add_argument(
        "--batch", metavar="FILE", help="instead of QUERY: one query a line (- is stdin), one JSON object a line out"
    )
    search.add_argument("--limit", type=int, default=Settings.limit, metavar="N", help="hits (default: %(default)s)")
    search.add_argument("--lang", action="append", default=[], metavar="L", help="only this language (may be repeated)")
    search.add_argument("--path", dest="globs", action="append", default=[], metavar="GLOB", help="only these paths")
    search.add_argument("--kind", action="append", default=[], metavar="K", help="only this kind: function, class, …")
    search.add_argument("--only", choices=("dense", "lexical"), help="rank by vectors alone, or by full text alone")
    search.add_argument("--no-index", action="store_true", help="search the index as it is, without an update before")
    index = _command(commands, "index", _index, "bring the index of a folder up to date")
    status = _command(commands, "status", _status, "tell what the index of a folder holds")
    for command in (index, status):
        command.add_argument("path", nargs="?", default=".", help="the workspace folder (default: this one)")
    nvim = commands.add_parser("nvim", help="print the folder of the Neovim plugin")
    nvim.set_defaults(run=_nvim)
    mcp = _command(commands, "mcp", _mcp, "an MCP server on stdio, for coding agents", json=False)
    mcp.add_argument("paths", nargs="*", default=["."], help="the workspace folders (default: this one)")
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, json: bool = True
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    if json:
        command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--model", metavar="NAME|DIR", help="the model: default, or a bundle's folder")
    command.add_argument("--cache-dir", metavar="DIR", help="where indexes live")
    command.set_defaults(run=run)
    return command


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


# -- commands


def _serve(options: argparse.Namespace) -> int:
    from .lsp.server import serve_stdio, serve_tcp

    return serve_tcp(options.tcp, Settings()) if options.tcp else serve_stdio(Settings())


def _search(options: argparse.Namespace) -> int:
    root, queries = _asked(options)
    with _told_errors():
        from .search.searcher import Searcher

        with closing(_open(root, options)) as index:
            if options.no_index:
                if not index.status().files:
                    raise Failure(f"{root}: no index yet; search without --no-index, or run `{PROGRAM} index` first")
            else:
                _update_for_search(index)
            return _answer_all(Searcher(index), queries, options)


def _asked(options: argparse.Namespace) -> tuple[Path, Iterator[str]]:
    """The folder and the queries; with --batch the only positional is the folder."""
    if options.batch is None:
        if options.query is None:
            raise UsageError(f"what shall be found? {PROGRAM} search QUERY [PATH]")
        _query(options.query, options)  # a wrong one is told before any work
        return _folder(options.path or "."), iter([options.query])
    if options.path is not None:
        raise UsageError(f"--batch FILE stands instead of QUERY: {PROGRAM} search --batch FILE [PATH]")
    return _folder(options.query or "."), iter(_lines(options.batch))


def _lines(file: str) -> list[str]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _answer_all(searcher: Searcher, queries: Iterator[str], options: argparse.Namespace) -> int:
    from .search.query import QueryError

    status = 0
    for text in queries:
        try:
            answer = _answer(searcher, _query(text, options), options)
        except (UsageError, QueryError) as error:
            # Only in a batch: a line that is no query must not take the others with it.
            print_line(json.dumps({"query": text, "error": str(error)}, ensure_ascii=False))
            status = 1
            continue
        if options.json or options.batch is not None:
            print_line(json.dumps(as_json(text, answer), ensure_ascii=False))
        else:
            print_line(as_text(answer))
    return status


def _answer(searcher: Searcher, query: Query, options: argparse.Namespace) -> Answer:
    from .index.database import DamagedStore

    try:
        return searcher.search(query)
    except DamagedStore:
        if options.no_index:
            raise
        _update_for_search(searcher.index)  # which builds it anew
        return searcher.search(query)


def _query(text: str, options: argparse.Namespace) -> Query:
    from .search.query import QueryError, parse_query

    try:
        return parse_query(text, options.limit, options.lang, options.globs, options.kind, options.only)
    except QueryError as error:
        raise UsageError(str(error)) from None


def _update_for_search(index: Index) -> None:
    """Bring the index up to date; where that cannot be, say so and search what is there."""
    from .index.database import StoreError

    try:
        report = _update(index)
    except StoreError as error:
        if not index.status().files:
            raise
        complain(f"{error}; searching the index as it is", 0)
        return
    _tell_problems(index)
    if report.pending:
        complain(f"another process updates the index; {report.pending} changed files are not in it yet", 0)


def _update(index: Index) -> IndexReport:
    from .index.workers import Workers

    with Workers(min(os.cpu_count() or 1, MAX_WORKERS)) as workers:
        return index.update(ProgressBar(), workers=workers, patience=PATIENCE)


def _tell_problems(index: Index) -> None:
    """One line, however much was wrong: the last trouble, and how many there are beside it."""
    if problems := index.problems:
        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        complain(f"{problems[-1]}{more}", 0)


def _index(options: argparse.Namespace) -> int:
    root = _folder(options.path)
    with _told_errors(), closing(_open(root, options)) as index:
        report = _update(index)
        _tell_problems(index)
        if options.json:
            print_line(json.dumps(asdict(report)))
        else:
            print_line(
                f"{report.files} files, {report.units} units; {report.embedded} embedded, {report.reused} reused,"
                f" {report.removed} files removed in {report.seconds:.1f} s"
                + (f"; {report.pending} files are left to another process" if report.pending else "")
            )
    return 0


def _status(options: argparse.Namespace) -> int:
    root = _folder(options.path)
    with _told_errors():
        status = asdict(_status_of(root, options))
        if options.json:
            print_line(json.dumps(status, ensure_ascii=False))
        else:
            for name, value in status.items():
                print_line(f"{name:9} {'; '.join(value) or 'none' if name == 'problems' else value}")
    return 0


def _status_of(root: Path, options: argparse.Namespace) -> Status:
    """The status of the folder's index; looking makes none."""
    from .index.database import DATABASE
    from .index.folder import index_folder
    from .index.index import Status

    settings = _settings(options)
    folder = index_folder(settings.cache_dir.absolute(), root)
    if not (folder / DATABASE).exists():
        nothing = f"no index yet: run `{PROGRAM} index {root}`, or search"
        return Status(str(root), str(folder), 0, 0, 0, _bundle(settings.model).id, (nothing,))
    with closing(_open(root, options)) as index:
        return index.status()


def _nvim(_options: argparse.Namespace) -> int:
    print_line(str(Path(__file__).with_name("editors") / "nvim"))
    return 0


def _mcp(options: argparse.Namespace) -> int:
    try:
        from .agents.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "pydantic"):
            raise
        raise Failure("the `mcp` package is not installed: pip install 'meaning-lsp[mcp]'") from None
    roots = [_workspace(path) for path in options.paths]
    settings = _settings(options)
    with _told_errors():
        _bundle(settings.model)
        return serve(roots, settings)


def _workspace(path: str) -> Path:
    """A folder that an agent may have meant to have indexed; nobody means all that they own."""
    root = _folder(path)
    if root in (Path(root.anchor), Path.home()):
        raise UsageError(f"{root}: that is all there is; name the workspace's folder: {PROGRAM} mcp PATH")
    return root


# -- shared by commands


def _folder(path: str) -> Path:
    root = Path(path)
    try:
        if not root.exists():
            raise Failure(f"{path}: no such folder")
        if not root.is_dir():
            raise Failure(f"{path}: a file; give the folder that holds it, and --path to search in it alone")
        next(os.scandir(root), None)
        return root.resolve()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _open(root: Path, options: argparse.Namespace) -> Index:
    from .index.index import Index

    settings = _settings(options)
    return Index.open(root, _bundle(settings.model), settings)


def _settings(options: argparse.Namespace) -> Settings:
    given = {"cache_dir": options.cache_dir and user_path(options.cache_dir), "model": options.model}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def _bundle(model: str) -> Bundle:
    from .embed.bundle import Bundle, BundleError, resolve_model

    try:
        folder = resolve_model(model)
    except BundleError as error:
        raise UsageError(str(error)) from None
    return Bundle.load(folder)


class _told_errors:  # noqa: N801  (a context manager that reads like a function)
    """Turns the errors that parts of the server raise for the user into a Failure."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return  # Ctrl-C may have come in the middle of the very imports that follow

        from .embed.bundle import ModelError
        from .index.database import StoreError

        if isinstance(error, (ModelError, StoreError)):
            raise Failure(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
