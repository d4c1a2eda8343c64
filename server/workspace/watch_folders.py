"""Linux: an inotify watch for every folder that the walk enters, and for no other.

watchdog is of no help here: its recursive watch takes in what is left out, node_modules and all, and watching folder
by folder costs it a thread each (before version 7 an inotify instance, too, of which a user has 128).
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..settings import Settings
from . import builtin, git, inotify, rule_files
from .ignore import Folder, Ignores, is_text, silent, workspace_folder
from .watch_rules import RuleWatches

_ENTRIES = (
    inotify.CREATE
    | inotify.DELETE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.MODIFY
    | inotify.CLOSE_WRITE  # What is written through a memory map is told by nothing else.
    | inotify.ATTRIB  # What could not be read may be readable now.
)
_LEAVES = inotify.DELETE | inotify.MOVED_FROM
_SIGNS = _LEAVES | inotify.MOVED_TO | inotify.CLOSE_WRITE
"""What can happen to the sign by which a folder is left out."""
_SELF = inotify.DELETE_SELF | inotify.MOVE_SELF

_UNSEEN = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG)
"""Gone meanwhile, closed to us, or too deep: the walk sees nothing there either."""

SHARE = 0.5
"""Of the watches that a user's programs have together, what one workspace may take: the editor needs some, too."""


@dataclass(eq=False, slots=True)
class _Place:
    """A folder on disk that is watched, or was to be."""

    where: str
    parent: _Place | None = None
    name: str = ""
    """Empty for the workspace folder."""
    mask: int = _ENTRIES
    folder: Folder | None = None
    """What the rules say of its entries; None if they are not looked at, but the rules among them may count."""
    inside: dict[str, _Place] = field(default_factory=dict)
    wd: int | None = None
    """The watch's number; None when there is no watch."""


class FolderWatches:
    """The watches of one workspace folder. For one thread, but for `wake`.

    Each watched folder keeps what the walk knows in it, so that the two cannot disagree about what is left out. An
    event about a folder says no more than that it is to be looked at; what is on disk by then is what counts, and so
    neither the order of events nor what happens in between matters.
    """

    def __init__(self, root: Path, settings: Settings, cancelled: Callable[[], bool]) -> None:
        """Watches from here on. `cancelled` may end the walk early. Raises OSError if not even `root` can be."""
        self._gap: str | None = None
        self._root, self._settings, self._cancelled = root, settings, cancelled
        self._limit = int(inotify.user_watches() * SHARE)
        self._places: dict[int, _Place] = {}
        self._top = _Place(str(root))
        self._stale: set[_Place] = set()
        self._changed: set[str] = set()
        self._inotify = inotify.Inotify()
        self._rules: RuleWatches[_Place] = RuleWatches(self._inotify)
        try:
            self._watch_all()
        except BaseException:
            self._inotify.close()
            raise

    @property
    def gap(self) -> str | None:
        """Why some folders are not watched, None if all are."""
        return self._gap or self._rules.gap

    def wait(self, timeout: float | None) -> set[str]:
        """Waits up to `timeout` seconds for events: the paths that they are about, as in a change set.

        Raises OSError when the workspace folder is gone.
        """
        self._changed = set()
        for wd, mask, name in self._inotify.read(timeout):
            if mask & inotify.OVERFLOW:
                self._rules_changed(self._top)
                continue
            self._rules.hear(wd, mask, name)
            if place := self._places.get(wd):
                self._hear(place, mask, name)
        if self._rules.stirred:
            self._look_around()
        return self._changed

    def settle(self) -> None:
        """Take up changed rules: watch what they no longer leave out, and no more what they do."""
        stale = sorted(self._stale, key=lambda place: len(place.where))
        self._stale.clear()
        for place in stale:
            if place.wd is None:
                continue  # It went, or was looked at again with the folder around it.
            if place.parent:
                self._look_at(place.parent, place.name)
            else:
                self._watch_all()

    def wake(self) -> None:
        """End the wait, and every later one, at once. For another thread."""
        self._inotify.wake()

    def close(self) -> None:
        """End all watches."""
        self._inotify.close()

    # -- what is watched

    def _watch_all(self) -> None:
        self._forget(self._top)
        self._gap = None
        top = self._top = _Place(str(self._root), mask=_ENTRIES | _SELF)
        self._rules.heed(top, lambda: rule_files.from_above(self._root))
        self._rules.heed(top, lambda: rule_files.of_the_user(self._root))
        around = git.top_folder(self._root)
        if around and around != self._root:
            self._heed_repository(top, around)
        self._watch(top)

    def _watch(self, top: _Place) -> None:
        """Watch a folder and what lies below it: what is nearer to the top first, in case that there is a limit."""
        waiting = deque([top])
        while waiting and not self._cancelled():
            place = waiting.popleft()
            try:
                waiting.extend(self._enter(place))
            except OSError as error:
                if place is self._top:
                    raise
                self._forget(place)
                if error.errno not in _UNSEEN:
                    self._gap = self._gap or str(error.strerror)

    def _enter(self, place: _Place) -> Iterable[_Place]:
        """Watch one folder, then look into it: what comes in between is seen twice rather than never."""
        self._add(place)
        with os.scandir(place.where) as listed:
            entries = list(listed)
        names = [entry.name for entry in entries]
        if ".git" in names:
            self._heed_repository(place, Path(place.where))
        if place.parent is None:
            place.folder = workspace_folder(self._root, self._settings, names)
        elif place.parent.folder:
            place.folder = place.parent.folder.enter(place.name, names, silent)
        if place.folder is None:
            self._rules.drop(place)
            self._inotify.reduce(self._add(place), place.where, _SIGNS, inotify.WALK)
            return ()
        below = [entry.name for entry in entries if is_text(entry.name) and _is_dir(entry)]
        found = {
            name: _Place(f"{place.where}/{name}", place, name)
            for name in below
            if not place.folder.leaves_out(name, True)
        }
        place.inside.update(found)
        return found.values()

    def _heed_repository(self, place: _Place, top: Path) -> None:
        self._rules.heed(place, lambda: rule_files.of_a_repository(top))

    def _add(self, place: _Place) -> int:
        if len(self._places) >= self._limit:
            raise OSError(errno.ENOSPC, inotify.limit_reached("fs.inotify.max_user_watches"), place.where)
        wd = self._inotify.add(place.where, place.mask, inotify.WALK)
        before = self._places.get(wd)
        if before and before is not place:
            before.wd = None  # The folder was moved here, and the events that say so are still to be read.
        self._places[wd] = place
        place.wd = wd
        return wd

    def _forget(self, top: _Place) -> None:
        waiting = [top]
        while waiting:
            place = waiting.pop()
            self._rules.drop(place)
            if place.wd is not None:
                self._inotify.remove(place.wd, inotify.WALK)
                del self._places[place.wd]
                place.wd = None
            waiting.extend(place.inside.values())
            place.inside.clear()

    def _look_at(self, parent: _Place, name: str) -> None:
        """Watch the folder `name` as it is on disk now, if it is there."""
        self._leave(parent, name)
        place = parent.inside[name] = _Place(f"{parent.where}/{name}", parent, name)
        self._watch(place)

    def _leave(self, parent: _Place, name: str) -> None:
        if place := parent.inside.pop(name, None):
            self._forget(place)

    # -- what is heard

    def _hear(self, place: _Place, mask: int, name: str) -> None:
        if not name:
            if place is self._top and mask & inotify.ENDS:
                raise self._gone()
            if mask & inotify.IGNORED and place.wd is not None:
                del self._places[place.wd]
                place.wd = None
        elif is_text(name):
            if self._is_rule(place, mask, name):
                self._rules_changed(place)
            if place.folder:
                self._hear_entry(place, place.folder, mask, name)

    def _look_around(self) -> None:
        """Something happened to files outside of the walk, or to the folders around the workspace folder."""
        try:
            wd = self._inotify.add(self._top.where, self._top.mask, inotify.WALK)
        except OSError:
            raise self._gone() from None
        if wd != self._top.wd:  # Another folder is in its place.
            raise self._gone()
        for place in self._rules.changed():
            self._rules_changed(place)

    def _gone(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "the folder is gone", self._top.where)

    def _is_rule(self, place: _Place, mask: int, name: str) -> bool:
        if not Ignores.depends_on(f"{place.where}/{name}"):
            return False
        signs = builtin.signs((name,))
        if not signs:
            return True
        if mask & _LEAVES or name == builtin.CACHE_TAG:
            return True
        return place.folder is not None and not signs <= place.folder.signs  # What another sign holds says nothing.

    def _rules_changed(self, place: _Place) -> None:
        """Something may be left out, or no more, in all of a folder."""
        self._stale.add(place)
        above = place.parent.folder.path if place.parent and place.parent.folder else ""
        self._changed.add(f"{above}{place.name}")

    def _hear_entry(self, place: _Place, folder: Folder, mask: int, name: str) -> None:
        path = folder.path + name
        is_dir = bool(mask & inotify.IS_DIR)
        if (path in self._changed and not is_dir) or folder.leaves_out(name, is_dir):
            return
        if mask & _LEAVES and not (is_dir and _is_folder(f"{place.where}/{name}")):
            self._leave(place, name)
        elif is_dir:
            known = place.inside.get(name)
            if mask & inotify.ATTRIB and known and known.wd is not None:
                return
            self._look_at(place, name)
        self._changed.add(path)


def _is_folder(where: str) -> bool:
    """Whether a folder is there: one may have come to the place of the one that went, as when two are exchanged."""
    try:
        return stat.S_ISDIR(os.lstat(where).st_mode)
    except OSError:
        return False


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
