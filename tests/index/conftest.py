"""A workspace, a tiny real model, and an index of one by the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from server.embed.bundle import Bundle
from server.index.index import Index
from server.settings import Settings
from tests.embed.tiny import write_bundle

Open = Callable[[], Index]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle.load(write_bundle(tmp_path / "bundle"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", threads=1)


@pytest.fixture
def open_index(root: Path, bundle: Bundle, settings: Settings) -> Open:
    return lambda: Index.open(root, bundle, settings)
