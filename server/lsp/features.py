"""What the server does for each message: unpack the parameters, call the domain, convert the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from ..embed.bundle import ModelError
from ..index.report import IndexReport
from ..search.answer import Answer
from ..search.query import QueryError, parse_query
from ..search.searcher import Searcher
from . import protocol
from .asking import as_response, find, find_in_organisation, in_parts, search_result, searching
from .convert import Converter, folder_report, real_path_of
from .folder import Folder
from .folders import Job
from .progress import WorkProgress
from .protocol import ReindexParams, ReindexResult, SearchParams, SearchResult, SimilarParams, StatusResult
from .session import Session, folder_status

_GIT = ".git"

# -- our requests


async def search(session: Session, params: Any) -> SearchResult:
    """`meaning/search`."""
    wanted = SearchParams.read(params)
    await session.ready()
    with as_response():
        limit = wanted.limit or session.settings.limit
        repositories = wanted.repositories if wanted.scope == protocol.ORG else None
        query = parse_query(
            wanted.query, limit, wanted.languages, wanted.paths, wanted.kinds, repositories=repositories
        )
    if wanted.scope == protocol.ORG:
        found = await find_in_organisation(session, query, wanted.work_done_token)
        return search_result(session, found, wanted.partial_result_token)
    folders = _folders(session, wanted.workspace_folder)
    found = await find(session, folders, searching(query), limit, Converter.item, wanted.work_done_token)
    return search_result(session, found, wanted.partial_result_token)


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
    found = await find(session, folders, ask, limit, Converter.item, wanted.work_done_token)
    return search_result(session, found, wanted.partial_result_token)


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

    A folder that cannot be indexed costs the others nothing: it is left out, and its trouble stands in the status. One
    that leaves the workspace meanwhile is left out, too.
    """
    wanted = ReindexParams.read(params)
    await session.ready()
    progress = session.work_progress("Indexing", wanted.work_done_token)
    result: ReindexResult = {"folders": []}
    problems: list[BaseException] = []
    try:
        for folder in _folders(session, wanted.workspace_folder):
            outcome = await _updated(session, folder, progress)
            if isinstance(outcome, IndexReport):
                result["folders"].append(folder_report(folder.uri, outcome))
            elif outcome:
                problems.append(outcome)
    finally:
        progress.end("done")
    with as_response():
        if problems and not result["folders"]:
            raise problems[0]
    return result


async def _updated(session: Session, folder: Folder, progress: WorkProgress) -> IndexReport | BaseException | None:
    """The outcome of an update, or what was wrong; None of a folder that left the workspace meanwhile. One that was
    opened anew, for settings changed, is updated as it is now."""
    job = Job(progress, lambda: progress.cancelled)
    session.folders.update(folder, job)
    done = asyncio.wrap_future(job.done)
    try:
        await asyncio.wait([done])
    except asyncio.CancelledError:
        job.done.cancel()
        raise
    problem = None if done.cancelled() else done.exception()
    if folder.retired:
        anew = session.folders.named(folder.uri)
        return await _updated(session, anew, progress) if anew else None
    return problem or done.result()


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
    found = await find(session, folders, searching(query), limit, Converter.symbol, work_done)
    return in_parts(session, found.items, partial_result, lambda items: items)


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
