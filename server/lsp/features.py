"""What the server does for each message: unpack the parameters, call the domain, convert the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcRequestCancelled

from ..embed.bundle import ModelError
from ..index.database import DamagedStore
from ..org.connect import OrgError
from ..search.answer import Answer, Hit, Query
from ..search.query import QueryError, parse_query
from ..search.searcher import Cancelled, Searcher
from . import organisation, protocol
from .convert import Converter, folder_report, real_path_of
from .folder import EXPECTED, Folder
from .folders import Job
from .protocol import ReindexParams, ReindexResult, SearchItem, SearchParams, SearchResult, SimilarParams, StatusResult
from .session import Session, folder_status

PARTIAL_ITEMS = 20
"""Items of one partial result."""
REQUEST_FAILED = int(types.LSPErrorCodes.RequestFailed)
_GIT = ".git"

Item = TypeVar("Item")
Ask = Callable[[Searcher, Callable[[], bool]], Answer]
"""A question to one folder's searcher, and a way to see whether anybody still waits for the answer."""


# -- our requests


async def search(session: Session, params: Any) -> SearchResult:
    """`meaning/search`."""
    wanted = SearchParams.read(params)
    await session.ready()
    with _as_response():
        limit = wanted.limit or session.settings.limit
        repositories = wanted.repositories if wanted.scope == protocol.ORG else None
        query = parse_query(
            wanted.query, limit, wanted.languages, wanted.paths, wanted.kinds, repositories=repositories
        )
    if wanted.scope == protocol.ORG:
        found = await _find_in_organisation(session, query, wanted.work_done_token)
        return _search_result(session, found, wanted.partial_result_token)
    folders = _folders(session, wanted.workspace_folder)
    found = await _find(session, folders, _asking(query), limit, Converter.item, wanted.work_done_token)
    return _search_result(session, found, wanted.partial_result_token)


async def similar(session: Session, params: Any) -> SearchResult:
    """`meaning/similar`; nothing is similar to code that no workspace folder holds."""
    wanted = SimilarParams.read(params)
    await session.ready()
    limit = wanted.limit or session.settings.limit
    path = real_path_of(wanted.uri)
    folder = path and session.folders.holding(path)
    place = path.relative_to(folder.path).as_posix() if path and folder else ""

    def ask(searcher: Searcher, _cancelled: Callable[[], bool]) -> Answer:
        return searcher.similar(place, wanted.line, limit)

    folders = [folder] if folder else []
    found = await _find(session, folders, ask, limit, Converter.item, wanted.work_done_token)
    return _search_result(session, found, wanted.partial_result_token)


async def status(session: Session, _params: Any) -> StatusResult:
    """`meaning/status`; answers whatever is wrong, and says what it is."""
    await session.ready()

    def look(_cancelled: Callable[[], bool]) -> StatusResult:
        model, problem = None, None
        try:
            model = session.folders.models.answering.bundle().id
        except ModelError as error:
            problem = str(error)
        folders = [folder_status(folder) for folder in session.folders]
        return {"version": session.version, "model": model, "problem": problem, "folders": folders}

    return await session.off_loop(look)


async def reindex(session: Session, params: Any) -> ReindexResult:
    """`meaning/reindex`: answers when the index equals the files again.

    A folder that cannot be indexed costs the others nothing: it is left out, and its trouble stands in the status.
    """
    wanted = ReindexParams.read(params)
    await session.ready()
    progress = session.work_progress("Indexing", wanted.work_done_token)
    result: ReindexResult = {"folders": []}
    problems: list[Exception] = []
    try:
        for folder in _folders(session, wanted.workspace_folder):
            job = Job(progress, lambda: progress.cancelled)
            session.folders.update(folder, job)
            try:
                report = await asyncio.wrap_future(job.done)
            except EXPECTED as error:
                problems.append(error)
            else:
                result["folders"].append(folder_report(folder.uri, report))
    finally:
        progress.end("done")
    with _as_response():
        if problems and not result["folders"]:
            raise problems[0]
    return result


# -- the protocol's own requests


async def workspace_symbol(session: Session, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
    """`workspace/symbol` by meaning: for editors that know no request of ours.

    It is sent while somebody types: a query that says nothing yet, or names a filter half, finds nothing.
    """
    work_done = protocol.checked_token("workDoneToken", params.work_done_token)
    partial_result = protocol.checked_token("partialResultToken", params.partial_result_token)
    await session.ready()
    limit = session.settings.limit
    try:
        query = parse_query(params.query, limit)
    except QueryError:
        return []
    folders = list(session.folders) if session.settings.workspace_symbol else []
    found = await _find(session, folders, _asking(query), limit, Converter.symbol, work_done)
    return _in_parts(session, found.items, partial_result, lambda items: items)


async def search_command(session: Session, params: types.ExecuteCommandParams) -> SearchResult:
    """`meaning.search`: its argument is the query, or the params of `meaning/search`."""
    argument = _only_argument(params)
    values = {"query": argument} if isinstance(argument, str) else argument
    return await search(session, _with_token(values, params))


async def reindex_command(session: Session, params: types.ExecuteCommandParams) -> ReindexResult:
    """`meaning.reindex`: its argument, if there is one, is the params of `meaning/reindex`."""
    return await reindex(session, _with_token(_only_argument(params) or {}, params))


# -- notifications


def initialize(session: Session, params: types.InitializeParams) -> None:
    """Before the answer to `initialize`."""
    session.greet(params)


async def initialized(session: Session, _params: Any) -> None:
    """The client has our answer."""
    await session.begin()


def shutdown(session: Session, _params: Any) -> None:
    """No more requests will come."""
    session.end()


async def did_change_configuration(session: Session, params: types.DidChangeConfigurationParams) -> None:
    """Settings changed: they hold from now on."""
    await session.reconfigure(params.settings)


def did_change_workspace_folders(session: Session, _params: Any) -> None:
    """Folders came or went; the list is in the workspace already."""
    session.take_folders()


def did_open(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """A document was opened."""
    session.documents.opened(params)
    session.look_at_documents(params.text_document.uri)


def did_change(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """A document was edited."""
    session.documents.changed(params)


def did_close(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """A document was closed, saved or not."""
    session.documents.closed(params)


def did_save(session: Session, params: types.DidSaveTextDocumentParams) -> None:
    """A file was saved."""
    session.documents.saved(params)
    session.look_at_documents(params.text_document.uri)
    _files_changed(session, [params.text_document.uri])


def did_change_watched_files(session: Session, params: types.DidChangeWatchedFilesParams) -> None:
    """Files changed outside of the editor, which is news only where not all of that is seen."""
    _files_changed(session, [change.uri for change in params.changes], lambda folder: folder.watch != "watching")


REQUESTS: Mapping[str, Callable[..., Any]] = {
    protocol.SEARCH: search,
    protocol.SIMILAR: similar,
    protocol.STATUS: status,
    protocol.REINDEX: reindex,
    types.WORKSPACE_SYMBOL: workspace_symbol,
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.SHUTDOWN: shutdown,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: did_change_workspace_folders,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.TEXT_DOCUMENT_DID_SAVE: did_save,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: did_change_watched_files,
}
COMMANDS: Mapping[str, Callable[..., Any]] = {
    protocol.SEARCH_COMMAND: search_command,
    protocol.REINDEX_COMMAND: reindex_command,
}


# -- what they share


def _asking(query: Query) -> Ask:
    return lambda searcher, cancelled: searcher.search(query, cancelled)


@dataclass(frozen=True)
class _Found(Generic[Item]):
    """The answers of all folders that were asked, joined."""

    items: list[Item]
    pending: int
    indexed: int
    model: str
    took_ms: float


async def _find(
    session: Session,
    folders: Sequence[Folder],
    ask: Ask,
    limit: int,
    convert: Callable[[Converter, Hit], Item],
    token: protocol.Token | None,
) -> _Found[Item]:
    """Ask the folders in a thread of its own, and convert the best hits of all.

    Scores of two folders are compared: they come from one model and one ranking, if not from one pool of candidates.
    A hit in a folder within a folder is found twice and told once.
    """
    progress = session.work_progress("Searching", token)
    encoding = session.workspace.position_encoding

    def work(stopped: Callable[[], bool]) -> _Found[Item]:
        start = time.perf_counter()
        with _as_response():
            answers = _answers(session, folders, ask, lambda: stopped() or progress.cancelled)
            model = answers[0][1].model if answers else session.folders.models.answering.bundle().id
        converters = [Converter(folder.uri, folder.path, encoding) for folder, _ in answers]
        each = [[(c, hit) for hit in answer.hits] for c, (_, answer) in zip(converters, answers, strict=True)]
        best: dict[tuple[Path, int, str], tuple[Converter, Hit]] = {}
        for converter, hit in merge(*each, key=lambda found: -found[1].score):
            best.setdefault((converter.root / hit.path, hit.start_line, hit.name), (converter, hit))
        return _Found(
            [convert(converter, hit) for converter, hit in islice(best.values(), limit)],
            sum(answer.pending for _, answer in answers),
            sum(answer.indexed for _, answer in answers),
            model,
            round((time.perf_counter() - start) * 1000, 2),
        )

    try:
        return await session.off_loop(work)
    finally:
        progress.end("done")


async def _find_in_organisation(session: Session, query: Query, token: protocol.Token | None) -> _Found[SearchItem]:
    """Ask the organisation's index. Nothing but this request hangs on it."""
    progress = session.work_progress("Searching", token)
    encoding, folders = session.workspace.position_encoding, list(session.folders)

    def work(stopped: Callable[[], bool]) -> _Found[SearchItem]:
        model = session.folders.models.answering
        with _as_response():
            found = session.organisation.search(
                query, session.settings, model, folders, lambda: stopped() or progress.cancelled
            )
        items: list[SearchItem] = [organisation.item(each, folders, encoding) for each in found.found]
        answer = found.answer
        return _Found(items, answer.pending, answer.indexed, answer.model, answer.took_ms)

    try:
        return await session.off_loop(work, session.organisation.threads)
    finally:
        progress.end("done")


def _answers(
    session: Session, folders: Sequence[Folder], ask: Ask, cancelled: Callable[[], bool]
) -> list[tuple[Folder, Answer]]:
    """The answers of those folders that can answer. Raises what was wrong with the others if none can."""
    outcomes = [(folder, _outcome(session, folder, ask, cancelled)) for folder in folders]
    answers = [(folder, outcome) for folder, outcome in outcomes if isinstance(outcome, Answer)]
    problems = [outcome for _, outcome in outcomes if isinstance(outcome, Exception)]
    if problems and not answers:
        raise problems[0]
    return answers


def _outcome(session: Session, folder: Folder, ask: Ask, cancelled: Callable[[], bool]) -> Answer | Exception | None:
    """One folder's answer, or why it has none; a folder that is not there holds nothing, and says nothing.

    What is pending counts from before the question: an update that ends meanwhile is not in the answer.
    """
    pending = folder.pending(0)
    try:
        with folder.reading() as searcher:
            answer = ask(searcher, cancelled)
        return replace(answer, pending=max(pending, folder.pending(answer.pending)))
    except NotADirectoryError:
        return None
    except DamagedStore as error:
        session.folders.update(folder)  # which builds the index anew
        return error
    except EXPECTED as error:
        return error


@contextmanager
def _as_response() -> Iterator[None]:
    """What the domain raises becomes the error of the response."""
    try:
        yield
    except QueryError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    except Cancelled:
        raise JsonRpcRequestCancelled("the request was cancelled") from None
    except (*EXPECTED, OrgError) as error:
        raise JsonRpcException(str(error), REQUEST_FAILED) from None


def _search_result(session: Session, found: _Found[SearchItem], token: protocol.Token | None) -> SearchResult:
    return {
        "items": _in_parts(session, found.items, token, lambda items: {"items": items}),
        "pending": found.pending,
        "indexed": found.indexed,
        "model": found.model,
        "tookMs": found.took_ms,
    }


def _in_parts(
    session: Session, items: list[Item], token: protocol.Token | None, part: Callable[[list[Item]], Any]
) -> list[Item]:
    """The items for the response: all of them, or none when they went out as partial results, as the protocol asks."""
    if token is None:
        return items
    for start in range(0, len(items), PARTIAL_ITEMS):
        value = part(items[start : start + PARTIAL_ITEMS])
        session.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))
    return []


def _folders(session: Session, uri: str | None) -> list[Folder]:
    """The folder that a request names, or all."""
    if uri is None:
        return list(session.folders)
    if folder := session.folders.named(uri):
        return [folder]
    known = ", ".join(folder.uri for folder in session.folders) or "none"
    raise JsonRpcInvalidParams(f"`workspaceFolder` is {uri!r}, which is not open (open: {known})")


def _only_argument(params: types.ExecuteCommandParams) -> Any:
    arguments = params.arguments or ()
    if len(arguments) > 1:
        raise JsonRpcInvalidParams(f"{params.command}: takes one argument, not {len(arguments)}")
    return arguments[0] if arguments else None


def _with_token(values: Any, params: types.ExecuteCommandParams) -> Any:
    """A command's progress token is that of its request."""
    return {"workDoneToken": params.work_done_token, **values} if isinstance(values, dict) else values


def _files_changed(session: Session, uris: Sequence[str], concerned: Callable[[Folder], bool] = lambda _: True) -> None:
    """Have the files looked at in the folders that hold them. git's own files change all the time and are never
    indexed."""
    paths = [path for uri in uris if (path := real_path_of(uri)) and _GIT not in path.parts]
    for folder in filter(concerned, session.folders):
        for path in paths:
            if place := folder.relative(path):
                session.folders.changed(folder, place)
