"""The VS Code extension: its types and style, its unit tests, its package, and all of it in the real workbench."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import succeed

pytestmark = pytest.mark.slow

LARGEST = 25_000_000
"""Bytes of the .vsix."""


def test_types_and_style(packages: None) -> None:
    succeed("npm", "run", "check")


def test_units(packages: None) -> None:
    succeed("npm", "test")


def test_the_package_is_small(vsix: Path) -> None:
    assert vsix.stat().st_size < LARGEST


def test_in_the_workbench(vsix: Path, workbench: None) -> None:
    succeed("npm", "run", "e2e")
