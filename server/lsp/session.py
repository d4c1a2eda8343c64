"""One client's connection: its settings, its folders, and the ways to talk to it from other threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from .. import __version__
from ..embed.bundle import Bundle, ModelError, resolve_model
from ..index.report import IndexReport
from ..settings import Settings, with_values
from ..workspace.overlay import Overlay
from .convert import real_path_of
from .documents import Documents
from .folder import EXPECTED, Folder
from .folders import Folders, Job
from .organisation import Organisation
from .progress import WorkProgress, on_loop
from .protocol import INDEX_CHANGED, FolderStatus, Token
from .wire import Wire

NAME = "meaning-lsp"
SECTION = "meaning"
CLIENT_SECONDS = 2.0
"""How long a client may take to tell its settings before its requests are answered without them."""
SEARCH_THREADS = 2
"""One that searches, and one for the next question of somebody who types on."""
SHOWN = 200
"""Messages that are remembered, so as not to be shown again."""
_CLIENTS_OWN = ("trace",)
"""Keys that language clients put into a server's section for themselves."""

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class Session(LanguageServer):
    """The server, as one client sees it."""

    protocol: Wire

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        """`settings` hold where the client's say nothing."""
        super().__init__(NAME, __version__, protocol_cls=Wire, converter_factory=default_converter)
        self.loop = loop
        self.overlay = Overlay()
        self.documents = Documents(self.overlay)
        self.folders = Folders(settings, self.overlay, self._folder_changed, self._background_job)
        self.organisation = Organisation(lambda text: on_loop(loop, self.show_once, text, types.MessageType.Warning))
        self._base = settings
        self._initial: Mapping[str, Any] = {}
        self._fallback_root: str | None = None
        self._searches = ThreadPoolExecutor(SEARCH_THREADS, "meaning-search")
        self._begun = asyncio.Event()
        self._configuring = asyncio.Lock()
        self._looking: set[Folder] = set()
        """Folders whose documents are about to be looked at."""
        self._shown: deque[str] = deque(maxlen=SHOWN)

    @property
    def settings(self) -> Settings:
        """What holds now."""
        return self.folders.settings

    # -- from hello to goodbye

    def greet(self, params: types.InitializeParams) -> None:
        """Remember what `initialize` says; the work begins with `initialized`."""
        self.documents.encoding = self.workspace.position_encoding or self.documents.encoding
        self._initial = self._section(params.initialization_options, "initializationOptions")
        if params.workspace_folders is None:
            self._fallback_root = params.root_uri or self.workspace.root_uri

    async def begin(self) -> None:
        """The client is there: ask for its settings, then index its folders."""
        try:
            async with self._configuring:
                await self._configure(await self._asked_settings())
        finally:
            self.take_folders()
            self._begun.set()
        self._register()

    async def ready(self) -> None:
        """Waits until the settings that were announced hold, but not for a client that does not tell them. The folders
        are those that their names lead to now: nobody tells that a link was turned."""
        if not self._begun.is_set() or self._configuring.locked():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._settled(), CLIENT_SECONDS)
        if self._begun.is_set():
            self.take_folders()

    async def _settled(self) -> None:
        await self._begun.wait()
        async with self._configuring:
            return

    def take_folders(self) -> None:
        """The workspace folders are now those that the client named."""
        named = [folder.uri for folder in self.workspace.folders.values()]
        self.folders.set([self._fallback_root] if self._fallback_root and not named else named)

    def end(self, patience: float = 0) -> None:
        """Stop all work; waits up to `patience` seconds for it to stop."""
        self.folders.close(patience)
        self._searches.shutdown(wait=False, cancel_futures=True)
        self.organisation.close()

    # -- settings

    async def reconfigure(self, pushed: Any) -> None:
        """The client says that its settings changed: in the notification itself, or to be asked for."""
        section = pushed.get(SECTION) if isinstance(pushed, dict) else None
        async with self._configuring:
            await self._configure(self._section(section, "settings") if section else await self._asked_settings())

    async def _configure(self, values: Mapping[str, Any]) -> None:
        """Lay the client's settings over the initial ones; a bad one is shown by name, and its default holds."""
        given = {**self._initial, **values}
        settings, problems = with_values(self._base, {k: v for k, v in given.items() if k not in _CLIENTS_OWN})
        if settings.model not in (self._base.model, self.settings.model):
            try:
                await self.off_loop(lambda _: Bundle.load(resolve_model(settings.model)))
            except ModelError as error:
                problems.append(f"meaning.model: {error}; using {self._base.model!r}")
                settings = replace(settings, model=self._base.model)
        if settings.refine_model:  # its files, which are large, are checked when it is loaded
            try:
                resolve_model(settings.refine_model)
            except ModelError as error:
                problems.append(f"meaning.refineModel: {error}; using none")
                settings = replace(settings, refine_model="")
        for problem in problems:
            self.show_once(problem, types.MessageType.Warning)
        self.folders.configure(settings)

    async def _asked_settings(self) -> Mapping[str, Any]:
        workspace = self.client_capabilities.workspace
        if not (workspace and workspace.configuration):
            return {}
        wanted = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        try:
            answer = await asyncio.wait_for(self.workspace_configuration_async(wanted), CLIENT_SECONDS)
        except Exception as error:  # No answer in time, or an error: as if the client had no such settings.
            log.warning("the client's settings are not known: %s", error or type(error).__name__)
            return {}
        return self._section(answer[0] if answer else None, "workspace/configuration")

    def _section(self, value: Any, where: str) -> Mapping[str, Any]:
        """The settings in a value that a client sent, which may hold them under `meaning`."""
        inner = value.get(SECTION, value) if isinstance(value, dict) else value
        if isinstance(inner, dict):
            return inner
        if inner is not None:
            self.show_once(f"{where}: {inner!r} is no object of settings; it is ignored", types.MessageType.Warning)
        return {}

    def _register(self) -> None:
        """Ask to be told of changed files and settings, where the client can be asked."""
        workspace = self.client_capabilities.workspace
        files = workspace and workspace.did_change_watched_files
        configuration = workspace and workspace.did_change_configuration
        wanted = []
        if files and files.dynamic_registration:
            every = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/*")])
            wanted.append(types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, every))
        if configuration and configuration.dynamic_registration:
            section = types.DidChangeConfigurationRegistrationOptions(SECTION)
            wanted.append(types.Registration("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
        if wanted:
            self.client_register_capability(types.RegistrationParams(wanted))

    # -- work in other threads

    async def off_loop(
        self, work: Callable[[Callable[[], bool]], Result], threads: ThreadPoolExecutor | None = None
    ) -> Result:
        """Run `work` in a thread (of those that search, if no others are named); it is given a way to ask whether the
        request was cancelled."""
        stop = threading.Event()
        try:
            return await self.loop.run_in_executor(threads or self._searches, work, stop.is_set)
        except asyncio.CancelledError:
            stop.set()
            raise

    def look_at_documents(self, uri: str) -> None:
        """One was opened or saved: see soon whether it is as on disk, for later its file may be gone."""
        path = real_path_of(uri)
        for folder in self.folders if path else ():
            if path and folder.relative(path) is not None and folder not in self._looking:
                self._looking.add(folder)
                self._searches.submit(self._look, folder)

    def _look(self, folder: Folder) -> None:
        self._looking.discard(folder)
        with suppress(*EXPECTED), folder.reading() as searcher:
            searcher.look_at_documents()

    def work_progress(self, title: str, token: Token | None = None) -> WorkProgress:
        """A progress that the client shows."""
        return WorkProgress(self, self.loop, title, token)

    def _background_job(self, folder: Folder) -> Job:
        """An update that no request asked for, with a progress of the server's own."""
        progress = self.work_progress(f"Indexing {folder.path.name}")
        job = Job(progress, lambda: progress.cancelled)
        job.done.add_done_callback(lambda done: progress.end(_outcome(done)))
        return job

    # -- talking to the client

    def _folder_changed(self, folder: Folder) -> None:
        """Called in the threads that index and watch."""
        if folder.problem:
            on_loop(self.loop, self.show_once, folder.problem, types.MessageType.Error)
        elif folder.model_problem:
            on_loop(self.loop, self.show_once, folder.model_problem, types.MessageType.Error)
        elif folder.unwatched and folder.path.is_dir():
            late = f"{folder.path}: some changes are seen late: {folder.unwatched}"
            # A limit of the system is met by one folder after the other: for the user that is one thing.
            on_loop(self.loop, self.show_once, late, types.MessageType.Warning, folder.unwatched)
        on_loop(self.loop, self.protocol.notify, INDEX_CHANGED, folder_status(folder))

    def show_once(self, message: str, kind: types.MessageType, about: str | None = None) -> None:
        """Show a message to the user, unless it was shown before, or another `about` the same."""
        if (about or message) not in self._shown:
            self._shown.append(about or message)
            self.window_show_message(types.ShowMessageParams(kind, message))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What went wrong outside of the protocol, for the log. Users can do nothing about it, so it is not shown."""
        if source is FeatureRequestError and getattr(error, "code", None) != JsonRpcInternalError.CODE:
            return  # The client made a mistake, and has it in its response.
        trace = (getattr(error, "data", None) or {}).get("traceback", ())
        log.error("%s%s", error, "".join(("\n", *trace)) if trace else "")
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{error}"))


def folder_status(folder: Folder) -> FolderStatus:
    """How a folder is; looks into its index, so not for the event loop."""
    files = units = pending = 0
    model = None
    problem = folder.problem or folder.model_problem
    try:
        with folder.reading() as searcher:
            status = searcher.index.status()
        files, units, pending, model = status.files, status.units, status.pending, status.model
        problem = problem or next(reversed([*status.problems, *folder.problems]), None)
    except EXPECTED as error:
        problem = problem or str(error)
    return {
        "uri": folder.uri,
        "state": folder.state,
        "done": folder.done,
        "total": folder.total,
        "files": files,
        "units": units,
        "pending": folder.pending(pending),
        "problem": problem,
        "watch": folder.watch,
        "model": model,
        "backfill": folder.backfill and {"model": folder.backfill[0], "left": folder.backfill[1]},
    }


def _outcome(done: Future[IndexReport]) -> str:
    """The last word of an update's progress."""
    if done.cancelled():
        return "cancelled"
    if error := done.exception():
        return str(error)
    report = done.result()
    return f"{report.pending} files left" if report.pending else f"{report.units} pieces of code"
