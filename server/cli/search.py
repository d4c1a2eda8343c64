"""`meaning-lsp search`: bring the index up to date, ask, and show what was found."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..terminal import PROGRAM, Failure, UsageError, as_json, as_text, complain, print_line
from .editor import edit
from .workspace import folder, open_index, settings_of, told_errors, update, workers

if TYPE_CHECKING:
    from ..index.index import Index
    from ..index.workers import Workers
    from ..search.answer import Answer, Hit, Query
    from ..search.searcher import Searcher


def run(options: argparse.Namespace) -> int:
    """Answer one query, or a batch of them."""
    root, queries = _asked(options)
    if options.scope == "org":
        return _in_organisation(queries, options)
    with told_errors(), workers(root, options) as some:
        from ..search.searcher import Searcher
        from ..search.tiers import refiner_of

        with closing(open_index(root, options)) as index:
            if options.no_index:
                if not index.status().files:
                    raise Failure(f"{root}: no index yet; search without --no-index, or run `{PROGRAM} index` first")
            else:
                _update(index, some)
            refiner = refiner_of(index) if options.only is None else None
            searcher = Searcher(index, refiner=refiner)
            if options.batch is not None:
                return _answer_all(lambda query: _answer(searcher, query, options, some), queries, options)
            text = next(queries)
            answer = _answer(searcher, _query(text, options), options, some)
    if options.json:
        print_line(json.dumps(as_json(text, answer), ensure_ascii=False))
        return 0
    hit = _shown(root, answer, options)
    return edit(root / hit.path, hit.selection[0] + 1) if hit else 0


def _in_organisation(queries: Iterator[str], options: argparse.Namespace) -> int:
    with told_errors():
        from .organisation import org_searcher

        with org_searcher(settings_of(options)) as searcher:

            def ask(query: Query) -> Answer:
                return searcher.search(query).answer

            if options.batch is not None:
                return _answer_all(ask, queries, options)
            text = next(queries)
            answer = ask(_query(text, options))
    print_line(json.dumps(as_json(text, answer), ensure_ascii=False) if options.json else as_text(answer))
    return 0


def _check_scope(options: argparse.Namespace) -> None:
    """Raises UsageError for what one scope has not."""
    if options.scope == "org":
        folder_named = options.path if options.batch is None else options.query
        if folder_named is not None:
            raise UsageError(f"{folder_named}: --scope org searches no folder; choose among repositories by --repo")
        for name in ("open", "no_index"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} is for what is here: not with --scope org")
    elif options.repo:
        raise UsageError("--repo chooses among many repositories: only with --scope org")


def _asked(options: argparse.Namespace) -> tuple[Path, Iterator[str]]:
    """The folder and the queries; with --batch the only positional is the folder."""
    _check_scope(options)
    if options.open and (options.json or options.batch is not None):
        raise UsageError("--open is for who looks at the hits: not with --json or --batch")
    if options.batch is None:
        if options.query is None:
            raise UsageError(f"what shall be found? {PROGRAM} search QUERY [PATH]")
        _query(options.query, options)  # a wrong one is told before any work
        return folder(options.path or "."), iter([options.query])
    if options.path is not None:
        raise UsageError(f"--batch FILE stands instead of QUERY: {PROGRAM} search --batch FILE [PATH]")
    return folder(options.query or "."), iter(_lines(options.batch))


def _lines(file: str) -> list[str]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _query(text: str, options: argparse.Namespace) -> Query:
    from ..search.query import QueryError, parse_query

    repositories = options.repo if options.scope == "org" else None
    try:
        return parse_query(text, options.limit, options.lang, options.globs, options.kind, options.only, repositories)
    except QueryError as error:
        raise UsageError(str(error)) from None


def _update(index: Index, some: Workers) -> None:
    """Bring the index up to date; where that cannot be, say so and search what is there."""
    from ..index.database import StoreError

    try:
        report = update(index, some)
    except StoreError as error:
        if not index.status().files:
            raise
        complain(f"{error}; searching the index as it is", 0)
        return
    if report.pending:
        complain(f"another process updates the index; {report.pending} changed files are not in it yet", 0)


def _answer_all(ask: Callable[[Query], Answer], queries: Iterator[str], options: argparse.Namespace) -> int:
    status = 0
    for text in queries:
        try:
            reply = as_json(text, ask(_query(text, options)))
        except UsageError as error:  # a line that is no query must not take the others with it
            reply, status = {"query": text, "error": str(error)}, 1
        print_line(json.dumps(reply, ensure_ascii=False))
    return status


def _answer(searcher: Searcher, query: Query, options: argparse.Namespace, some: Workers) -> Answer:
    from ..index.database import DamagedStore

    try:
        return searcher.search(query)
    except DamagedStore:
        if options.no_index:
            raise
        _update(searcher.index, some)  # which builds it anew
        return searcher.search(query)


# -- for people


def _shown(root: Path, answer: Answer, options: argparse.Namespace) -> Hit | None:
    """Print an answer; with --open, the hit that shall be opened."""
    from .show import View, wants_colour

    terminal = sys.stdout.isatty()
    colour = wants_colour(options.color)
    choosing = options.open and terminal and sys.stdin.isatty() and len(answer.hits) > 1
    if terminal or colour:
        print_line(View(root, colour).text(answer, numbered=choosing))
    else:
        print_line(as_text(answer))
    if not options.open or not answer.hits:
        return None
    return _chosen(answer) if choosing else answer.hits[0]


def _chosen(answer: Answer) -> Hit | None:
    """Ask which one; the first for nothing, none for anything that is no number."""
    print_line("")
    try:
        said = input(f"Open which? [1-{len(answer.hits)}, Enter for 1] ").strip() or "1"
    except EOFError:
        return None
    number = int(said) if said.isdecimal() else 0
    return answer.hits[number - 1] if 0 < number <= len(answer.hits) else None
