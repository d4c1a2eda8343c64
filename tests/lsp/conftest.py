from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from server.lsp import folders
from server.settings import Settings
from server.workspace.watch import EVERYTHING, ChangeSet
from tests.embed.tiny import write_bundle

UPLOADS = '''\
def w1():
    """w2 w3: sends a file again when the network failed."""
    return send(retries=3)


class Uploader:
    def w4(self):
        return "w5"
'''


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real model."""
    return write_bundle(tmp_path_factory.mktemp("model"), changed={"max_tokens": 64})


@pytest.fixture
def settings(tmp_path: Path, model: Path) -> Settings:
    return Settings(model=str(model), cache_dir=tmp_path / "cache", threads=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace folder with one file of Python."""
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "uploads.py").write_text(UPLOADS)
    return folder


class StillWatcher:
    """Says at once that all is to be looked at, and never anything again."""

    def __init__(self, root: Path, settings: Settings, on_change: Callable[[ChangeSet], None], on_mode: object) -> None:
        on_change(EVERYTHING)

    def close(self, patience: float) -> None:
        """There is nothing to end."""


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first update of a folder there are none but those that are asked for."""
    monkeypatch.setattr(folders, "Watcher", StillWatcher)
