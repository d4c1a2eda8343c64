"""What the index asks before it embeds a text, and gives what it embedded."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from weakref import WeakValueDictionary

from ..embed.bundle import Bundle
from ..settings import SettingError
from .address import Address, address_of, private_key
from .breaker import Account
from .engine import Missing
from .link import Link
from .seal import Seal, Unsound, Vectors

ASKED_AT_ONCE = 500
"""Texts of one call: some 300 KB of answer at 256 numbers each, which a call's time is enough for on most lines."""

FLUSH_SECONDS = 5.0
"""How long a process that ends waits for what it gave to be written."""


class SharedCache:
    """The vectors of one model in a shared cache; without a URL, of one that is always empty.

    Nothing here raises, and nothing waits longer than CALL_SECONDS at once: what a cache does wrong is told by
    `problem`, and its vectors are computed here instead. It is first looked for when it is first needed. For one thread
    at a time.
    """

    def __init__(self, url: str, bundle: Bundle) -> None:
        self._url, self._bundle = url, bundle
        self._found: tuple[Link, Seal] | None = None
        self._unusable: str | None = None
        self._wrong: Counter[str] = Counter()
        self._account = Account()

    @property
    def problem(self) -> str | None:
        """What is wrong with the cache, for the user; None for nothing that is known."""
        if self._found is None:
            return self._unusable
        link, _ = self._found
        if problem := link.problem:
            return f"shared cache {link.address.shown}: {problem}"
        if self._wrong:
            kinds = ", ".join(f"{count} {what}" for what, count in self._wrong.most_common(3))
            return f"shared cache {link.address.shown}: left out what is no vector of these texts ({kinds})"
        return None

    def fetch(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors [parts, dim] of those texts that the cache has them of, each of them checked."""
        found: dict[bytes, Vectors] = {}
        wanted = list(keys)
        if not wanted or not (connected := self._connected()):
            return found
        link, seal = connected
        for start in range(0, len(wanted), ASKED_AT_ONCE):
            if not link.reads.closed:
                break
            begun = time.perf_counter()
            some = self._ask(link, seal, wanted[start : start + ASKED_AT_ONCE])
            found |= some
            self._account.asked(time.perf_counter() - begun, len(some))
            if self._account.overdrawn():
                link.reads.failed("to ask it takes longer than to embed")
        return found

    def give(self, vectors: Mapping[bytes, Vectors], seconds: float) -> None:
        """Have the cache keep what was embedded here within so many seconds; it is written in the background."""
        if not vectors or not (connected := self._connected()):
            return
        link, seal = connected
        self._account.computed(seconds, len(vectors))
        items = list(vectors.items())
        for start in range(0, len(items), ASKED_AT_ONCE):
            link.put(self._bundle.fingerprint, partial(_packed, seal, items[start : start + ASKED_AT_ONCE]))

    def flush(self) -> None:
        """Before the process ends: wait, within reason, until what was given is written."""
        if self._found is not None:
            self._found[0].flush(FLUSH_SECONDS)

    def _connected(self) -> tuple[Link, Seal] | None:
        if self._url and self._found is None and self._unusable is None:
            try:
                seal = Seal(self._bundle, private_key())
                self._found = _link_to(address_of(self._url)), seal
            except (SettingError, Missing) as error:
                self._unusable = f"{error}; everything is embedded here"
        return self._found

    def _ask(self, link: Link, seal: Seal, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        names = {seal.name(key): key for key in keys}
        values = link.get(self._bundle.fingerprint, list(names))
        opened = ((key, self._opened(seal, name, values[name])) for name, key in names.items() if name in values)
        return {key: vectors for key, vectors in opened if vectors is not None}

    def _opened(self, seal: Seal, name: bytes, value: bytes) -> Vectors | None:
        try:
            return seal.unpack(name, value)
        except Unsound as error:
            self._wrong[str(error)] += 1
            return None


def _packed(seal: Seal, items: Sequence[tuple[bytes, Vectors]]) -> dict[bytes, bytes]:
    named = ((seal.name(key), vectors) for key, vectors in items)
    return {name: seal.pack(name, vectors) for name, vectors in named}


_links: WeakValueDictionary[Address, Link] = WeakValueDictionary()
_lock = threading.Lock()


def _link_to(address: Address) -> Link:
    """The process's one link to a cache, however many indexes and models use it. Raises Missing."""
    with _lock:
        link = _links.get(address)
        if link is None:
            link = _links[address] = Link(address)
        return link
