"""What lies in a shared cache: under which name, and how it is known to be what it is taken for.

A name is HMAC-SHA256 of the model and the text's key. A value is

    header   "mE", version 1, whether it is veiled; parts and dim (uint16 each, little-endian)
    nonce    16 random bytes; only if it is veiled
    vectors  parts x dim float16, little-endian
    sum      HMAC-SHA256 of its name and of everything before, 32 bytes

Without a private key the HMACs' keys are known to all: names are plain hashes, the sum finds damage, mix-ups and values
of other models. With one, whoever has the cache but not the key cannot tell whether it holds a text that he knows, and
cannot put in a value that would be believed. Vectors betray their text, too (embed what you look for, and take the
nearest), so they are veiled then: by the stream of SHAKE-256 of a secret and the nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle

Vectors = npt.NDArray[np.float32]

_HEADER = struct.Struct("<2sBBHH")
_MAGIC, _VERSION = b"mE", 1
_NONCE_BYTES, _SUM_BYTES = 16, 32
_FLOAT16 = np.dtype("<f2")
_MOST_PARTS = 0xFFFF

NORM_TOLERANCE = 0.01
"""How far from 1 a vector's length may be: rounding to float16 moves it by a thousandth at most."""


class Unsound(ValueError):
    """A value is not what it should be; the message says what is wrong, in a few words."""


class Seal:
    """Names and values of one model's vectors."""

    def __init__(self, bundle: Bundle, private_key: bytes = b"") -> None:
        self._model, self._dim = bundle.fingerprint.encode("utf-8", "surrogatepass"), bundle.dim
        self._naming, self._summing, self._veiling = (
            hmac.digest(private_key, b"meaning-lsp shared cache 1: " + use, "sha256")
            for use in (b"name", b"sum", b"veil")
        )
        self._veiled = bool(private_key)

    def name(self, key: bytes) -> bytes:
        """What the vectors of the text with this key are found by: 32 bytes."""
        return hmac.digest(self._naming, _joined(self._model, key), "sha256")

    def pack(self, name: bytes, vectors: Vectors) -> bytes:
        """The value of unit vectors [parts, dim]. Raises Unsound for more parts than there is room to count."""
        if len(vectors) > _MOST_PARTS:
            raise Unsound(f"{len(vectors)} parts")
        header = _HEADER.pack(_MAGIC, _VERSION, self._veiled, len(vectors), self._dim)
        data = vectors.astype(_FLOAT16).tobytes()
        if self._veiled:
            nonce = os.urandom(_NONCE_BYTES)
            data = nonce + self._veil(nonce, data)
        return header + data + self._sum(name, header + data)

    def unpack(self, name: bytes, value: bytes) -> Vectors:
        """The unit vectors [parts, dim] that were packed for this name. Raises Unsound."""
        if len(value) < _HEADER.size + _SUM_BYTES:
            raise Unsound("too short")
        magic, version, veiled, parts, dim = _HEADER.unpack_from(value)
        if (magic, version, veiled) != (_MAGIC, _VERSION, self._veiled):
            raise Unsound("of another format")
        if dim != self._dim or not parts:
            raise Unsound("of another width")
        data = value[_HEADER.size : -_SUM_BYTES]
        if len(data) != parts * dim * _FLOAT16.itemsize + _NONCE_BYTES * self._veiled:
            raise Unsound("of a wrong length")
        if not hmac.compare_digest(self._sum(name, value[:-_SUM_BYTES]), value[-_SUM_BYTES:]):
            raise Unsound("wrong sum")
        if self._veiled:
            data = self._veil(data[:_NONCE_BYTES], data[_NONCE_BYTES:])
        return _unit(np.frombuffer(data, _FLOAT16).reshape(parts, dim).astype(np.float32))

    def _sum(self, name: bytes, content: bytes) -> bytes:
        return hmac.digest(self._summing, _joined(name, content), "sha256")

    def _veil(self, nonce: bytes, data: bytes) -> bytes:
        """Veils what is bare, and bares what is veiled."""
        stream = hashlib.shake_256(_joined(self._veiling, nonce)).digest(len(data))
        return np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(stream, np.uint8)).tobytes()


def _joined(first: bytes, second: bytes) -> bytes:
    """Both, so that no other two would give the same."""
    return len(first).to_bytes(4, "little") + first + second


def _unit(vectors: Vectors) -> Vectors:
    # A sum without a private key says nothing of who made it: numbers are looked at in any case.
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(lengths).all():
        raise Unsound("not finite")
    if np.abs(lengths - 1).max() > NORM_TOLERANCE:
        raise Unsound("not of unit length")
    return vectors
