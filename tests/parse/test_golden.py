"""Every language's fixtures give the units that a person wrote down beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.parse.languages import grammar_names

from .golden import SUFFIX, golden

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = sorted(FIXTURES.glob(f"*/*{SUFFIX}"))


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: f"{path.parent.name}/{path.name[: -len(SUFFIX)]}")
def test_a_fixture_gives_the_units_written_beside_it(expected: Path) -> None:
    source = expected.with_name(expected.name[: -len(SUFFIX)])
    assert golden(source) == json.loads(expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", grammar_names())
def test_every_language_has_a_fixture(language: str) -> None:
    assert any(expected.parent.name == language for expected in EXPECTED)
