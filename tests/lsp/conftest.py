from __future__ import annotations

from pathlib import Path

import pytest

from server.settings import Settings
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
