"""Vectors in a file are what was written, however many are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from server.index.matrix import Halves, Ids, Matrix, write_matrix

DIM = 16


def some(count: int) -> tuple[Ids, Halves]:
    """Keys and rows."""
    return np.arange(count, dtype=np.int64) * 3, np.random.default_rng(0).normal(size=(count, DIM)).astype(np.float16)


def written(path: Path, keys: Ids, rows: Halves) -> Matrix:
    write_matrix(path, ((keys[at : at + 7], rows[at : at + 7]) for at in range(0, len(keys), 7)))
    return Matrix(path, DIM)


@pytest.mark.parametrize("count", [0, 1, 100])
def test_what_was_written_is_there(tmp_path: Path, count: int) -> None:
    keys, rows = some(count)
    found = written(tmp_path / "m", keys, rows)
    assert np.array_equal(found.keys, keys)
    assert np.array_equal(found.rows, rows)


def test_it_is_read_by_row_and_in_parts(tmp_path: Path) -> None:
    keys, rows = some(20_000)
    found = written(tmp_path / "m", keys, rows)
    query, chosen = np.ones(DIM, np.float32), np.array([7, 19_999, 8_000])
    for _ in range(2):
        assert np.allclose(found.cosines(query, chosen), rows[chosen].astype(np.float32) @ query)
        parts = [*found.parts(5, 19_000)]
        assert np.array_equal(np.concatenate([part for part, _ in parts]), keys[5:19_000])
        assert np.array_equal(np.concatenate([part for _, part in parts]), rows[5:19_000])


def test_a_file_of_another_length_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "m", *some(10))
    with pytest.raises(ValueError, match="10 vectors"):
        Matrix(tmp_path / "m", 2 * DIM)
