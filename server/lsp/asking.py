"""A question to the workspace folders or to the organisation's index: asked in a thread of its own, the answers joined,
converted, and sent in the parts that the client wants."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcRequestCancelled

from ..index.database import DamagedStore
from ..org.connect import OrgError
from ..search.answer import Answer, Hit, Query
from ..search.query import QueryError
from ..search.searcher import Cancelled, Searcher
from . import organisation, protocol
from .convert import Converter
from .folder import EXPECTED, Folder
from .protocol import SearchItem, SearchResult
from .session import Session

PARTIAL_ITEMS = 20
"""Items of one partial result."""
REQUEST_FAILED = int(types.LSPErrorCodes.RequestFailed)

Item = TypeVar("Item")
Ask = Callable[[Searcher, Callable[[], bool]], Answer]
"""A question to one folder's searcher, and a way to see whether anybody still waits for the answer."""


def searching(query: Query) -> Ask:
    """Asks for the hits of a query."""
    return lambda searcher, cancelled: searcher.search(query, cancelled)


@dataclass(frozen=True)
class Found(Generic[Item]):
    """The answers of all folders that were asked, joined."""

    items: list[Item]
    pending: int
    indexed: int
    model: str
    took_ms: float


async def find(
    session: Session,
    folders: Sequence[Folder],
    ask: Ask,
    limit: int,
    convert: Callable[[Converter, Hit], Item],
    token: protocol.Token | None,
) -> Found[Item]:
    """Ask the folders in a thread of its own, and convert the best hits of all.

    Scores of two folders are compared: they come from one model and one ranking, if not from one pool of candidates.
    A hit in a folder within a folder is found twice and told once.
    """
    progress = session.work_progress("Searching", token)
    encoding = session.workspace.position_encoding

    def work(stopped: Callable[[], bool]) -> Found[Item]:
        start = time.perf_counter()
        with as_response():
            answers = _answers(session, folders, ask, lambda: stopped() or progress.cancelled)
            model = answers[0][1].model if answers else session.folders.models.answering.bundle().id
        converters = [Converter(folder.uri, folder.path, encoding) for folder, _ in answers]
        each = [[(c, hit) for hit in answer.hits] for c, (_, answer) in zip(converters, answers, strict=True)]
        best: dict[tuple[Path, int, str], tuple[Converter, Hit]] = {}
        for converter, hit in merge(*each, key=lambda found: -found[1].score):
            best.setdefault((converter.root / hit.path, hit.start_line, hit.name), (converter, hit))
        return Found(
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


async def find_in_organisation(session: Session, query: Query, token: protocol.Token | None) -> Found[SearchItem]:
    """Ask the organisation's index. Nothing but this request hangs on it."""
    progress = session.work_progress("Searching", token)
    encoding, folders = session.workspace.position_encoding, list(session.folders)

    def work(stopped: Callable[[], bool]) -> Found[SearchItem]:
        model = session.folders.models.answering
        with as_response():
            found = session.organisation.search(
                query, session.settings, model, folders, lambda: stopped() or progress.cancelled
            )
        items: list[SearchItem] = [organisation.item(each, folders, encoding) for each in found.found]
        answer = found.answer
        return Found(items, answer.pending, answer.indexed, answer.model, answer.took_ms)

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
def as_response() -> Iterator[None]:
    """What the domain raises becomes the error of the response."""
    try:
        yield
    except QueryError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    except Cancelled:
        raise JsonRpcRequestCancelled("the request was cancelled") from None
    except (*EXPECTED, OrgError) as error:
        raise JsonRpcException(str(error), REQUEST_FAILED) from None


def search_result(session: Session, found: Found[SearchItem], token: protocol.Token | None) -> SearchResult:
    """What was found, for the response; the items as `in_parts` has it."""
    return {
        "items": in_parts(session, found.items, token, lambda items: {"items": items}),
        "pending": found.pending,
        "indexed": found.indexed,
        "model": found.model,
        "tookMs": found.took_ms,
    }


def in_parts(
    session: Session, items: list[Item], token: protocol.Token | None, part: Callable[[list[Item]], Any]
) -> list[Item]:
    """The items for the response: all of them, or none when they went out as partial results, as the protocol asks."""
    if token is None:
        return items
    for start in range(0, len(items), PARTIAL_ITEMS):
        value = part(items[start : start + PARTIAL_ITEMS])
        session.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))
    return []
