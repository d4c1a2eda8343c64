"""macOS, Windows and the rest: one recursive watch of watchdog's, whose events are judged as they come.

The rules that lie elsewhere are a few files, looked at now and then: a watch of the home folder would bring the events
of all that is below it.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path, PurePath

from watchdog.events import (
    DirCreatedEvent,
    DirModifiedEvent,
    DirMovedEvent,
    FileClosedNoWriteEvent,
    FileDeletedEvent,
    FileOpenedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from ..settings import Settings
from . import builtin, git, rule_files
from .ignore import Ignores

_NO_CHANGE = (FileOpenedEvent, FileClosedNoWriteEvent, DirModifiedEvent)
"""A folder is modified when its entries are, each of which has an event of its own."""

_BOTH = (False, True)
"""Windows does not say whether what is gone was a folder, so it is asked about as either."""

LOOK_SECONDS = 2.0
"""How often the rules that lie elsewhere are looked at, which takes a fraction of a millisecond."""
STOP_SECONDS = 2.0
"""How long the end may wait for watchdog's threads."""


class TreeWatch(FileSystemEventHandler):
    """The watch of one workspace folder and all that is below it."""

    gap = None
    """Why some folders are not watched: the system watches all or nothing."""

    def __init__(self, root: Path, settings: Settings) -> None:
        """Watches from here on. Raises OSError if `root` cannot be."""
        self._root, self._settings = root, settings
        self._elsewhere = self._said_elsewhere()
        self._ignores: Ignores | None = Ignores(root, settings)
        self._stirred = threading.Condition()
        self._changed: set[str] = set()
        self._woken = False
        self._observer = Observer()
        self._observer.schedule(self, str(root), recursive=True)
        self._observer.start()

    def wait(self, timeout: float | None) -> set[str]:
        """Waits up to `timeout` seconds for changes: their paths, as in a change set.

        Raises OSError when the workspace folder is gone.
        """
        with self._stirred:
            until_look = LOOK_SECONDS if timeout is None else min(timeout, LOOK_SECONDS)
            self._stirred.wait_for(lambda: self._changed or self._woken, until_look)
            self._look_elsewhere()
            changed, self._changed = self._changed, set()
        if not self._root.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder is gone", str(self._root))
        return changed

    def _look_elsewhere(self) -> None:
        if (said := self._said_elsewhere()) != self._elsewhere:
            self._elsewhere, self._ignores = said, None
            self._changed.add("")

    def _said_elsewhere(self) -> list[tuple[object, ...]]:
        top = git.top_folder(self._root) or self._root
        looks = rule_files.from_above(self._root), rule_files.of_the_user(self._root), rule_files.of_a_repository(top)
        return [sources.said for sources in looks]

    def settle(self) -> None:
        """Nothing is planned here, so changed rules change no plan."""

    def wake(self) -> None:
        """End the wait, and every later one, at once. For another thread."""
        with self._stirred:
            self._woken = True
            self._stirred.notify()

    def close(self) -> None:
        """End the watch."""
        self._observer.stop()
        self._observer.join(STOP_SECONDS)

    # -- in watchdog's thread

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Something happened to a file or a folder, or to two by a move."""
        if isinstance(event, _NO_CHANGE):
            return
        with self._stirred:
            if isinstance(event, (DirCreatedEvent, DirMovedEvent)):
                self._ignores = None  # What is known of a folder of that name is of another one.
            kinds = _BOTH if os.name == "nt" and isinstance(event, FileDeletedEvent) else (event.is_directory,)
            places = (event.src_path, event.dest_path)
            changed = {path for place in places if (path := self._changed_by(place, kinds)) is not None}
            if changed:
                self._changed |= changed
                self._stirred.notify()

    def _changed_by(self, place: bytes | str, kinds: tuple[bool, ...]) -> str | None:
        try:
            path = PurePath(os.fsdecode(place)).relative_to(self._root).as_posix() if place else "."
        except ValueError:
            return None  # Moved out of the workspace, or in.
        if path == ".":
            return None if not place or self._root.is_dir() else ""
        if Ignores.depends_on(path) and self._counts(path):
            self._ignores = None
            return ""
        return None if self._is_ignored(path, kinds) else path

    def _counts(self, path: str) -> bool:
        """Whether a file that may hold rules lies where they hold: not in what is left out, of which there is much.

        A sign that a folder was made by a tool counts there, too, for it may have been the reason.
        """
        above, _, name = path.rpartition("/")
        signs = builtin.signs((name,))
        return (
            above.endswith((".git/info", ".git"))
            or builtin.made_by_a_tool(signs, is_cache_tag=lambda _: True)
            or not self._is_ignored(above, (True,))
        )

    def _is_ignored(self, path: str, kinds: tuple[bool, ...]) -> bool:
        try:
            self._ignores = ignores = self._ignores or Ignores(self._root, self._settings)
        except OSError:
            return False  # The folder is gone, which `wait` tells.
        return all(ignores.is_ignored(path, is_dir) for is_dir in kinds)
