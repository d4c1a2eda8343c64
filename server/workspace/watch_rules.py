"""Linux: inotify watches for the files that say what is left out, where the walk does not come.

Watched are the folders on the way to such a file, few and never what is below them: of the last one, and of one in
which the way ends or turns, those entries that lie on the way; of the others no more than whether they go. So what
else happens in a home folder is heard, and dismissed by its name.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from . import inotify
from .inotify import Inotify
from .rule_files import Sources, trail

_SELF = inotify.DELETE_SELF | inotify.MOVE_SELF
_ENTRIES = (
    inotify.CREATE
    | inotify.DELETE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.CLOSE_WRITE
    | inotify.ATTRIB  # What could not be read may be readable now.
)
_OFTEN_WRITTEN = frozenset({"config", ".gitconfig", "HEAD"})
"""git writes these all the time, and seldom what counts here. They are looked into; of all else the event suffices, for
what was changed and changed back may have been read in between."""
_TRIES = 10
"""How often a way is walked that is another one each time. If it goes on so, the events tell of it again."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False, slots=True)
class _Heeded(Generic[Key]):
    """Files that are watched together."""

    key: Key
    look: Callable[[], Sources]
    said: tuple[object, ...] = ()
    watched: dict[str, int] = field(default_factory=dict)
    """The folders on the way and the numbers of their watches."""


class RuleWatches(Generic[Key]):
    """The watches of such files, each set of them under the key of what it says something about."""

    def __init__(self, watches: Inotify) -> None:
        self.gap: str | None = None
        """Why some files are not watched, None if all are."""
        self._inotify = watches
        self._heeded: dict[Key, list[_Heeded[Key]]] = {}
        self._names: dict[int, dict[_Heeded[Key], frozenset[str]]] = {}
        """Of each watch, the entries that are on somebody's way."""
        self._stirred: dict[_Heeded[Key], bool] = {}
        """Whose way something happened on, and whether that suffices."""

    def heed(self, key: Key, look: Callable[[], Sources]) -> None:
        """Watch the files that `look` gives. What changes from here on is told by `changed`."""
        heeded = _Heeded(key, look)
        self._heeded.setdefault(key, []).append(heeded)
        self._follow(heeded)

    def drop(self, key: Key) -> None:
        """Watch no more what was watched under a key."""
        for heeded in self._heeded.pop(key, ()):
            self._watch(heeded, {})
            self._stirred.pop(heeded, None)

    def clear(self) -> None:
        """Watch nothing any more."""
        for key in tuple(self._heeded):
            self.drop(key)
        self.gap = None

    def hear(self, wd: int, mask: int, name: str) -> None:
        """An event, which may be another user's."""
        for heeded, names in self._names.get(wd, {}).items():
            if name in names if name else mask & inotify.ENDS:
                self._stirred[heeded] = self._stirred.get(heeded, False) or name not in _OFTEN_WRITTEN
        if mask & inotify.IGNORED:
            self._names.pop(wd, None)

    @property
    def stirred(self) -> bool:
        """Whether something was heard of since `changed` was asked."""
        return bool(self._stirred)

    def changed(self) -> Iterator[Key]:
        """The keys under which something else may be said now."""
        while self._stirred:
            heeded, certain = self._stirred.popitem()
            before = heeded.said
            self._follow(heeded)
            if certain or heeded.said != before:
                yield heeded.key

    def _follow(self, heeded: _Heeded[Key]) -> None:
        """Watch the way as it is now, and look once it is watched: what comes after that is heard."""
        for _ in range(_TRIES):
            before = heeded.watched
            sources = heeded.look()
            heeded.said = sources.said
            self._watch(heeded, _on_the_way(sources.files))
            if heeded.watched == before:
                break

    def _watch(self, heeded: _Heeded[Key], wanted: dict[str, frozenset[str]]) -> None:
        before, heeded.watched = heeded.watched, {}
        for folder, names in wanted.items():
            try:
                wd = self._inotify.add(folder, _ENTRIES | _SELF if names else _SELF, inotify.RULES)
            except OSError as error:  # It went meanwhile, or is closed to us, if there is no watch left.
                if error.errno == errno.ENOSPC:
                    self.gap = error.strerror
                continue
            heeded.watched[folder] = wd
            self._names.setdefault(wd, {})[heeded] = names
        for wd in {*before.values()} - {*heeded.watched.values()}:
            self._release(wd, heeded)

    def _release(self, wd: int, heeded: _Heeded[Key]) -> None:
        users = self._names.get(wd, {})
        users.pop(heeded, None)
        if not users:
            self._names.pop(wd, None)
            self._inotify.remove(wd, inotify.RULES)


def _on_the_way(files: Iterable[Path]) -> dict[str, frozenset[str]]:
    """The folders on the way to files, and which of their entries are."""
    found: dict[str, frozenset[str]] = {}
    for file in files:
        for folder, name in trail(file):
            found[folder] = found.get(folder, frozenset()) | ({name} if name else frozenset())
    return found
