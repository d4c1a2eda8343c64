"""The folders that an agent may ask about: kept up to date, searched together, and nothing outside of them told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..lsp.folder import EXPECTED, Folder
from ..lsp.folders import Folders, Job
from ..lsp.organisation import Organisation
from ..search.answer import Answer, Hit, Query
from ..search.searcher import Searcher
from ..settings import Settings
from ..workspace.overlay import Overlay

PATIENCE = 20.0
"""Seconds that an answer waits for the index. A client gives up on a tool after a minute or so, and an index that is
built for the first time may take longer: then the answer is what is there, and says so."""
PROGRESS_SECONDS = 0.5
"""How often a waiting client hears how far the index is."""
END_SECONDS = 1.0
"""How long threads may take to stop; a client kills us after two."""

ToldProgress = Callable[[int, int], Awaitable[None]]
Ask = Callable[[Searcher], Answer]


class OutsideError(ValueError):
    """A path that no folder of the workspace holds; the message says which there are."""


@dataclass(frozen=True)
class Found:
    """A hit, and the workspace folder that it is in; None for a file of the organisation's that no folder has."""

    root: Path | None
    hit: Hit

    @property
    def path(self) -> Path | None:
        """Absolute."""
        return self.root and self.root / self.hit.path


@dataclass(frozen=True)
class Finding:
    """The answers of all folders, joined."""

    found: tuple[Found, ...]
    pending: int
    """Files that changed and are not indexed yet."""
    indexed: int
    """Units in all indexes."""
    problems: tuple[str, ...]
    """Why some folder did not answer."""


class Workspace:
    """The workspace folders of one agent."""

    def __init__(self, roots: Sequence[Path], settings: Settings) -> None:
        """`roots` are absolute, links resolved. Their indexes are brought up to date from now on, whoever asks."""
        self._folders = Folders(settings, Overlay(), lambda _: None, lambda _: Job(lambda *_: None, lambda: False))
        self._folders.set(root.as_uri() for root in roots)
        self._troubles: list[str] = []
        """What was wrong in the organisation's index, and was not told yet."""
        self._organisation = Organisation(self._troubles.append)

    @property
    def roots(self) -> list[Path]:
        """Where the folders are. One whose path is not UTF-8 is left out."""
        return [folder.path for folder in self._folders]

    def close(self) -> None:
        """Stop indexing and close every index."""
        self._folders.close(END_SECONDS)

    async def fresh(self, told: ToldProgress) -> None:
        """Wait until what was written to disk before now is in the indexes, or PATIENCE is over."""
        folders = list(self._folders)
        jobs = [Job(lambda *_: None, lambda: False) for _ in folders]
        for folder, job in zip(folders, jobs, strict=True):
            self._folders.update(folder, job)
        # A job that nobody waits for any more goes on: shielded, for what is indexed now serves the next question.
        waiting = {asyncio.shield(asyncio.wrap_future(job.done)) for job in jobs}
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while waiting and (left := end - loop.time()) > 0:
            done, waiting = await asyncio.wait(waiting, timeout=min(left, PROGRESS_SECONDS))
            for each in done:
                each.exception()  # The folder says it again when it is searched.
            if waiting and (total := sum(folder.total for folder in folders)):
                await told(sum(folder.done for folder in folders), total)

    def search(self, query: Query) -> Finding:
        """The best hits of all folders. Raises ModelError, StoreError or OSError if none can answer."""
        return self._ask(list(self._folders), lambda searcher: searcher.search(query), query.limit)

    def search_organisation(self, query: Query) -> Finding:
        """The best hits of all that was published. Raises OrgError or ModelError."""
        answering = self._folders.models.answering
        found = self._organisation.search(query, self._folders.settings, answering, self._folders, lambda: False)
        problems = tuple(self._troubles)
        self._troubles.clear()
        hits = tuple(Found(each.root, each.hit) for each in found.found)
        return Finding(hits, found.answer.pending, found.answer.indexed, problems)

    def similar(self, file: Path, line: int, limit: int) -> Finding:
        """Code like the unit at a line (from 0) of a file that `located` gave. Raises as `search` does."""
        folder = self._folders.holding(file)
        assert folder
        place = file.relative_to(folder.path).as_posix()
        return self._ask([folder], lambda searcher: searcher.similar(place, line, limit), limit)

    def located(self, path: str) -> Path:
        """The file that an agent means, links resolved. Raises OutsideError for any that is in no folder of ours,
        whether or not it is there: what lies outside is none of an agent's business."""
        try:
            candidates = [Path(os.path.realpath(root / path)) for root in self.roots]
        except (OSError, ValueError):  # a NUL, or a circle of links
            candidates = []
        inside = [file for file in candidates if self._folders.holding(file)]
        if not inside:
            raise OutsideError(f"outside of the workspace ({', '.join(map(str, self.roots))}): {path}")
        for file in inside:
            with suppress(OSError):  # a name that no file system takes
                if file.is_file():
                    return file
        raise OutsideError(f"no such file in the workspace ({', '.join(map(str, self.roots))}): {path}")

    def _ask(self, folders: Sequence[Folder], ask: Ask, limit: int) -> Finding:
        found: dict[tuple[Path, int, str], Found] = {}  # A folder within a folder finds its hits a second time.
        pending = indexed = 0
        problems: list[Exception] = []
        for folder in folders:
            try:
                with folder.reading() as searcher:
                    answer = ask(searcher)
            except EXPECTED as error:
                problems.append(error)
                self._folders.update(folder)
                continue
            pending += folder.pending(answer.pending)
            indexed += answer.indexed
            for hit in answer.hits:
                found.setdefault((folder.path / hit.path, hit.start_line, hit.name), Found(folder.path, hit))
        if problems and len(problems) == len(folders):
            raise problems[0]
        best = sorted(found.values(), key=lambda each: -each.hit.score)[:limit]
        return Finding(tuple(best), pending, indexed, tuple(map(str, problems)))
