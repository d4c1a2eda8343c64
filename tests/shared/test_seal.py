"""What is packed is what comes out, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.embed.bundle import Bundle
from server.shared.seal import Seal, Unsound, Vectors
from tests.embed.tiny import DIM, write_bundle

KEYS = (b"", b"a private key")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.load(write_bundle(tmp_path_factory.mktemp("seal")))


def vectors(parts: int) -> Vectors:
    some = np.random.default_rng(parts).normal(size=(parts, DIM))
    unit: Vectors = (some / np.linalg.norm(some, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("parts", [1, 2, 300])
def test_all_parts_come_back_as_the_index_would_keep_them(bundle: Bundle, key: bytes, parts: int) -> None:
    seal = Seal(bundle, key)
    name = seal.name(b"text")
    found = seal.unpack(name, seal.pack(name, vectors(parts)))
    np.testing.assert_array_equal(found, vectors(parts).astype(np.float16).astype(np.float32))


def test_a_name_is_of_the_model_and_the_text_and_the_key(bundle: Bundle, tmp_path: Path) -> None:
    other = Bundle.load(write_bundle(tmp_path, seed=1))
    names = [Seal(model, key).name(text) for model in (bundle, other) for key in KEYS for text in (b"a", b"b")]
    assert len({*names}) == 8
    assert {len(name) for name in names} == {32}


def test_no_two_veiled_values_are_alike(bundle: Bundle) -> None:
    seal = Seal(bundle, KEYS[1])
    first, second = (seal.pack(b"name", vectors(1)) for _ in range(2))
    assert first[-48:] != second[-48:]


@settings(deadline=None)
@given(key=st.sampled_from(KEYS), at=st.integers(0, 200), bit=st.integers(0, 7))
def test_any_bit_that_changes_is_noticed(bundle: Bundle, key: bytes, at: int, bit: int) -> None:
    seal = Seal(bundle, key)
    value = bytearray(seal.pack(b"name", vectors(2)))
    value[at % len(value)] ^= 1 << bit
    with pytest.raises(Unsound):
        seal.unpack(b"name", bytes(value))


@settings(deadline=None)
@given(key=st.sampled_from(KEYS), value=st.binary(max_size=200))
def test_noise_is_noticed(bundle: Bundle, key: bytes, value: bytes) -> None:
    with pytest.raises(Unsound):
        Seal(bundle, key).unpack(b"name", value)
