from __future__ import annotations

from pathlib import Path

import pytest
from watchdog.observers.polling import PollingObserver

from server.workspace import watch_tree
from server.workspace.watch import Watcher
from server.workspace.watch_tree import TreeWatch

from .watching import Seen


@pytest.fixture(autouse=True)
def _nobodys_git_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)


@pytest.fixture(params=["the system's way", "as a tree"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace folder, watched in the way of this system, and in the way of those that watch whole trees.

    (watchdog can watch a tree on Linux, too, but loses sight of folders that are moved, so that polling stands in.)
    """
    if request.param == "as a tree":
        monkeypatch.setattr(Watcher, "_open", lambda self: TreeWatch(self._root, self._settings))
        monkeypatch.setattr(watch_tree, "Observer", lambda: PollingObserver(timeout=0.01))
        monkeypatch.setattr(watch_tree, "LOOK_SECONDS", 0.02)
        monkeypatch.setattr(Seen, "fences", 3)
    root = tmp_path / "work space"
    root.mkdir()
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder
