"""A file made from the database is known by its checksum, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from server.index.derived import _READ_AT_ONCE, PAGE, is_intact, write_derived

SIZES = (0, 1, PAGE - 1, PAGE, 3 * PAGE + 5, _READ_AT_ONCE + 3 * PAGE + 5)


def written(folder: Path, size: int) -> tuple[Path, int]:
    """A file of random bytes and its checksum."""
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    name, checksum = write_derived(folder, "some-{}.data", lambda path: path.write_bytes(data))
    return folder / name, checksum


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_intact(tmp_path: Path, size: int) -> None:
    path, checksum = written(tmp_path, size)
    assert is_intact(path, checksum)
    assert f"{checksum:08x}" in path.name


def flip_a_bit(data: bytes) -> bytes:
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def swap_two_pages(data: bytes) -> bytes:
    return data[PAGE : 2 * PAGE] + data[:PAGE] + data[2 * PAGE :]


def empty_a_page(data: bytes) -> bytes:
    return bytes(PAGE) + data[PAGE:]


def cut_the_end(data: bytes) -> bytes:
    return data[:-1]


def cut_a_page(data: bytes) -> bytes:
    return data[PAGE:]


def add_zeros(data: bytes) -> bytes:
    return data + bytes(2)  # in the last page, whose sum stays


def add_a_page(data: bytes) -> bytes:
    return data + bytes(PAGE)


@pytest.mark.parametrize(
    "damage", [flip_a_bit, swap_two_pages, empty_a_page, cut_the_end, cut_a_page, add_zeros, add_a_page]
)
@pytest.mark.parametrize("size", SIZES[-2:])
def test_damage_is_seen(tmp_path: Path, size: int, damage: Callable[[bytes], bytes]) -> None:
    path, checksum = written(tmp_path, size)
    path.write_bytes(damage(path.read_bytes()))
    assert not is_intact(path, checksum)


def test_a_file_that_is_gone_is_not_intact(tmp_path: Path) -> None:
    assert not is_intact(tmp_path / "nothing", 0)
