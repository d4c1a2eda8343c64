from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Real code that every machine has: packages of Python's own library."""
    folder = tmp_path / "my code"
    for name in ("json", "urllib", "http"):
        source = Path(str(importlib.import_module(name).__file__)).parent
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
