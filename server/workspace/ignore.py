"""Which entries of a workspace are left out: the ignore files, the settings and the built-in lists, put together.

Strongest first: the setting `exclude`, `.meaningignore`, `.ignore`, then git's own (`.gitignore`, `.git/info/exclude`,
the user's `core.excludesFile`), then the built-in lists. In each, the file deepest in the tree speaks first. A
`!pattern` of the first three brings back what a weaker one hides; git's `!` speaks to git's patterns alone. As in git,
nothing comes back from inside a folder that is left out: bring the folder back first.

The walk and the single question both go through `Folder`, so they cannot disagree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from ..settings import Settings
from . import builtin, git
from .gitignore import Patterns

FILES = (".meaningignore", ".ignore", ".gitignore")
"""The ignore files that lie in the folders they govern, strongest first."""

_CACHE_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"

OnProblem = Callable[[str, OSError], None]
"""Told what was passed over, and why: a path relative to the workspace folder, or an absolute one."""


def silent(path: str, error: OSError) -> None:
    """An `OnProblem` for who does not ask."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """One ignore file's patterns."""

    patterns: Patterns
    above: int
    """How much of a path, from the topmost folder, lies above the folder that the patterns govern."""


_Scopes = tuple[_Scope, ...]
"""Strongest first."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is not left out, and what the rules say of its entries."""

    place: Path
    """Where it is on disk."""
    path: str
    """Relative to the workspace folder, with a `/` at its end; empty for the workspace folder itself."""
    prefix: str
    """The same, but from the topmost folder whose ignore files count."""
    signs: frozenset[str] = frozenset()
    """What lies in it and tells something about folders (see `builtin.signs`)."""
    setting: _Scopes = ()
    meaningignore: _Scopes = ()
    ignore: _Scopes = ()
    git: _Scopes = ()

    def leaves_out(self, name: str, is_dir: bool) -> bool:
        """Whether the entry `name` is left out; for a folder, as far as can be told from outside (see `enter`)."""
        if name in builtin.VCS:
            return True
        asked = self._asked(name, is_dir)
        if asked is not None:
            return asked
        return bool(self._verdict(self.git, name, is_dir)) or builtin.leaves_out(name, is_dir, self.signs)

    def enter(self, name: str, names: Collection[str], on_problem: OnProblem) -> Folder | None:
        """The folder `name`, in which `names` are; None if they show that a tool made it."""
        place = self.place / name
        signs = builtin.signs(names)
        made = builtin.made_by_a_tool(signs, lambda tag: _is_cache_tag(place / tag))
        if made and self._asked(name, is_dir=True) is None:
            return None
        inside = replace(self, place=place, path=f"{self.path}{name}/", prefix=f"{self.prefix}{name}/", signs=signs)
        if ".git" in names and (found := git.git_folder(place)):
            # A repository in the repository: git's patterns end at its border.
            inside = replace(inside, git=_outside_the_tree(place, found, len(inside.prefix), on_problem))
        return inside.with_files(names, on_problem)

    def with_files(self, names: Collection[str], on_problem: OnProblem) -> Folder:
        """This folder with the ignore files that are among `names`."""

        def read(name: str) -> _Scopes:
            return _scopes(self.place / name, len(self.prefix), on_problem) if name in names else ()

        return replace(
            self,
            meaningignore=read(".meaningignore") + self.meaningignore,
            ignore=read(".ignore") + self.ignore,
            git=read(".gitignore") + self.git,
        )

    def hides(self, name: str) -> bool:
        """Whether the ignore files, by themselves, hide the folder `name`."""
        asked = self._asked(name, is_dir=True)
        return bool(self._verdict(self.git, name, is_dir=True)) if asked is None else asked

    def _asked(self, name: str, is_dir: bool) -> bool | None:
        """What the patterns that were written for tools like this one say."""
        for scopes in (self.setting, self.meaningignore, self.ignore):
            verdict = self._verdict(scopes, name, is_dir)
            if verdict is not None:
                return verdict
        return None

    def _verdict(self, scopes: _Scopes, name: str, is_dir: bool) -> bool | None:
        for scope in scopes:
            verdict = scope.patterns.verdict(self.prefix[scope.above :] + name, name, is_dir)
            if verdict is not None:
                return verdict
        return None


class Ignores:
    """Answers about single paths, at a moment: it remembers what it read. Make another when `depends_on` says so."""

    def __init__(self, root: Path, settings: Settings) -> None:
        """Raises OSError if the workspace folder `root` cannot be listed."""
        self._folders: dict[str, Folder | None] = {"": workspace_folder(root, settings, _names(root))}

    def is_ignored(self, path: str, is_dir: bool) -> bool:
        """Whether the walk passes over the file or folder `path` (relative, with `/`), which need not exist any more.

        Says nothing of a file's size and content. A path through a symbolic link is ignored, for what is behind it
        has a path of its own; so is what is neither file nor folder.
        """
        above, _, name = path.rpartition("/")
        if not path or (folder := self._folder(above)) is None:
            return bool(path)
        if not is_text(name) or folder.leaves_out(name, is_dir):
            return True
        return self._folder(path) is None if is_dir else _is_special(folder.place / name)

    @staticmethod
    def depends_on(path: str) -> bool:
        """Whether a change of the file `path` may change answers."""
        name = path.rpartition("/")[2]
        if name in FILES or name == ".git" or builtin.is_sign(name):
            return True
        return path.endswith((".git/info/exclude", ".git/config"))

    def _folder(self, path: str) -> Folder | None:
        folder = self._folders[""]
        at = ""
        for name in path.split("/") if path else ():
            at = f"{at}/{name}" if at else name
            if at not in self._folders:
                self._folders[at] = self._entered(folder, name) if folder else None
            folder = self._folders[at]
        return folder

    def _entered(self, folder: Folder, name: str) -> Folder | None:
        place = folder.place / name
        if not is_text(name) or folder.leaves_out(name, is_dir=True) or place.is_symlink():
            return None
        try:
            names = _names(place)
        except OSError:
            names = []  # it went away, or is closed to us: its name is all there is to judge by
        return folder.enter(name, names, silent)


def workspace_folder(root: Path, settings: Settings, names: Collection[str], on_problem: OnProblem = silent) -> Folder:
    """The folder at the top of the walk, in which `names` are. It is never left out itself: somebody asked for it."""
    root = root.absolute()
    folder = _below_repository(root, on_problem) or Folder(
        root, "", "", git=_outside_the_tree(root, git.git_folder(root), 0, on_problem)
    )
    setting = Patterns(settings.exclude)
    folder = replace(
        folder, signs=builtin.signs(names), setting=(_Scope(setting, len(folder.prefix)),) if setting else ()
    )
    return folder.with_files(names, on_problem)


def _below_repository(root: Path, on_problem: OnProblem) -> Folder | None:
    """The workspace folder with what the folders above it say, up to the top of its repository.

    None if it is no part of one from above: outside of git, a top itself, or hidden by the repository's patterns (a
    home folder under git hides nearly everything, and says nothing of the projects in it).
    """
    top = git.top_folder(root)
    if top is None or top == root:
        return None
    folder = Folder(top, "", "", git=_outside_the_tree(top, git.git_folder(top), 0, on_problem))
    for name in root.relative_to(top).parts:
        try:
            folder = folder.with_files(_names(folder.place), on_problem)
        except OSError as error:
            on_problem(str(folder.place), error)
        if folder.hides(name):
            return None
        folder = replace(folder, place=folder.place / name, prefix=f"{folder.prefix}{name}/")
    return folder


def _outside_the_tree(top: Path, git_folder: Path | None, above: int, on_problem: OnProblem) -> _Scopes:
    """git's patterns that stand in no `.gitignore`."""
    own = _scopes(git.info_exclude(git_folder), above, on_problem) if git_folder else ()
    users = Path(os.path.realpath(git.excludes_file(top, git_folder)))  # It may be a link, as it often is.
    return own + _scopes(users, above, on_problem)


def _scopes(file: Path, above: int, on_problem: OnProblem) -> _Scopes:
    """The patterns of an ignore file; none if there is no such file, or it is a link, as for git."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return ()
        patterns = Patterns.from_bytes(file.read_bytes())
    except FileNotFoundError:
        return ()
    except OSError as error:
        on_problem(str(file), error)
        return ()
    return (_Scope(patterns, above),) if patterns else ()


def _names(place: Path) -> list[str]:
    return [entry.name for entry in place.iterdir()]


def is_text(name: str) -> bool:
    """Whether a name is Unicode: others can neither be stored nor sent to an editor, and are passed over."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_cache_tag(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_CACHE_TAG)) == _CACHE_TAG
    except OSError:
        return False


def _is_special(file: Path) -> bool:
    """Whether something is there that is no regular file."""
    try:
        return not stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False
