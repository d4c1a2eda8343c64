"""The check that every test's answers go through finds what it is for."""

from __future__ import annotations

from typing import Any

import pytest

from server.lsp.protocol import REINDEX, SEARCH

from .shapes import SHAPES, misfit

REPORT = dict.fromkeys(("files", "units", "embedded", "reused", "removed", "seconds", "pending", "fetched"), 0)
FOLDER = {"uri": "file:///a", **REPORT}
ITEM: dict[str, Any] = {
    "location": {},
    "selectionRange": {},
    "name": "f",
    "containerName": None,
    "kind": 12,
    "language": "go",
    "score": 1,
    "preview": "",
}
FOUND = {"items": [], "pending": 0, "indexed": 3, "model": "m", "tookMs": 0.5}


@pytest.mark.parametrize(
    ("method", "value"),
    [
        (REINDEX, {"folders": []}),
        (REINDEX, {"folders": [FOLDER]}),
        (SEARCH, {**FOUND, "items": [ITEM, {**ITEM, "repository": "r", "containerName": "C"}]}),
    ],
)
def test_what_is_described_fits(method: str, value: Any) -> None:
    assert misfit(value, SHAPES[method], method) is None


@pytest.mark.parametrize(
    ("method", "value", "place"),
    [
        (REINDEX, None, REINDEX),
        (REINDEX, {}, REINDEX),
        (REINDEX, {"folders": {}}, "folders"),
        (REINDEX, {"folders": [FOLDER, REPORT]}, "folders[1]"),
        (REINDEX, {"folders": [{**FOLDER, "more": 0}]}, "folders[0]"),
        (REINDEX, {"folders": [{**FOLDER, "files": None}]}, "folders[0].files"),
        (SEARCH, {**FOUND, "items": [{**ITEM, "name": None}]}, "items[0].name"),
        (SEARCH, {**FOUND, "tookMs": "1"}, "tookMs"),
    ],
)
def test_what_is_not_is_told_with_its_place(method: str, value: Any, place: str) -> None:
    assert place in (misfit(value, SHAPES[method], method) or "")
