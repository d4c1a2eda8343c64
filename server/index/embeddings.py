"""The vectors of one model in a store: by the key of the text that was embedded, so that equal texts share one.

A store may hold those of several models side by side: of the one that answers, of one that is going to, and of one that
refines.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..embed.bundle import Bundle
from .store import Store
from .sums import sound

Vectors = npt.NDArray[np.float32]

KEPT_MODELS = 4
"""Models whose vectors are kept, those of late: to go back to one costs nothing."""

_MODELS, _ANSWERS = "models", "answers"


class Embeddings:
    """What one model made of a store's texts. Every method may raise StoreError."""

    def __init__(self, store: Store, bundle: Bundle) -> None:
        self._store, self._bundle = store, bundle

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of `keys` whose vectors are there."""
        sql = "SELECT key FROM embeddings WHERE model = ? AND key IN (?)"
        return {key for (key,) in self._store.rows_in(sql, keys, (self._bundle.fingerprint,))}

    def of(self, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors [parts, dim] of those of `keys` that are there, and are as they were stored."""
        sql = "SELECT key, vectors, sum FROM embeddings WHERE model = ? AND key IN (?)"
        rows = self._store.rows_in(sql, keys, (self._bundle.fingerprint,))
        return {
            key: np.frombuffer(data, np.float16).reshape(-1, self._bundle.dim).astype(np.float32)
            for key, *stored in rows
            if (data := sound(*stored))
        }

    def put(self, key: bytes, vectors: Vectors) -> None:
        """Remember a text's vectors [parts, dim], as float16. Inside of a transaction."""
        data = vectors.astype(np.float16).tobytes()
        self._store.write(
            "INSERT OR REPLACE INTO embeddings (model, key, vectors, sum) VALUES (?, ?, ?, ?)",
            (self._bundle.fingerprint, key, data, zlib.crc32(data)),
        )

    def missing(self, within: Collection[str] = ("",)) -> dict[str, int]:
        """Path -> how many of its texts have no vector: its units', and the path's own. Of the files among `within`
        or below it, those alone that lack some."""
        found: dict[str, int] = {}
        for path in within:
            # "0" is the character after "/": the range is all that begins with `path/`.
            # (Of a subquery, since SQLite would go through all files to group them.)
            some = "SELECT id FROM files WHERE path = ?2 OR (path > ?2 || '/' AND path < ?2 || '0')"
            where = f"f.id IN ({some})" if path else "?2 = ''"
            rows = self._store.rows(
                "SELECT f.path, sum(NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.model = ?1 AND e.key = u.key))"
                " + NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.model = ?1 AND e.key = f.path_key) AS lacking"
                f" FROM files f CROSS JOIN units u ON u.file = f.id WHERE {where} GROUP BY f.id HAVING lacking",
                (self._bundle.fingerprint, path),
            )
            found.update(rows)
        return found

    # -- beside those of other models

    def note_use(self, answers: bool) -> None:
        """This model was used just now, so that its vectors stay; those of models that were not for long go. With
        `answers`, it has all that it needs to answer alone. Writes nothing where nothing is new."""
        known = _ids(self._store)
        used = list(dict.fromkeys([self._bundle.fingerprint, *known]))
        mark = json.dumps({"model": self._bundle.fingerprint, "folder": str(self._bundle.folder.resolve())})
        new_mark = answers and self._store.meta(_ANSWERS) != mark
        if used == known and not new_mark:
            return
        with self._store.transaction():
            if new_mark:
                self._store.set_meta(_ANSWERS, mark)
            self._store.set_meta(_MODELS, json.dumps(used[:KEPT_MODELS]))
            for model in used[KEPT_MODELS:]:
                self._store.write("DELETE FROM embeddings WHERE model = ?", (model,))
                self._store.write("DELETE FROM meta WHERE key LIKE 'vectors ' || ? || ' %'", (model,))


def last_to_answer(store: Store) -> tuple[str, Path] | None:
    """The fingerprint and the bundle's folder of the model that had the vectors of all, when it was last looked."""
    try:
        mark = json.loads(store.meta(_ANSWERS) or "null")
        return mark and (str(mark["model"]), Path(mark["folder"]))
    except (ValueError, KeyError, TypeError):
        raise store.damaged("it does not say which model answers") from None


def drop_unused(store: Store, spare: int) -> int:
    """Drop the oldest embeddings that no unit and no file uses, but for `spare` of them; returns how many.

    Inside of a transaction. Those that are kept make a reverted edit, or a branch that comes back, cost nothing.
    """
    [(most,)] = store.rows("SELECT (SELECT count(*) FROM embeddings) - (SELECT count(DISTINCT key) FROM units)")
    if most <= spare:  # more cannot be unused, so there is no need to look at each
        return 0
    unused = store.rows(
        "SELECT id FROM embeddings e WHERE NOT EXISTS (SELECT 1 FROM units u WHERE u.key = e.key)"
        " AND key NOT IN (SELECT path_key FROM files) ORDER BY id DESC LIMIT -1 OFFSET ?",
        (spare,),
    )
    for row in unused:
        store.write("DELETE FROM embeddings WHERE id = ?", row)
    return len(unused)


def _ids(store: Store) -> list[str]:
    try:
        return [str(model) for model in json.loads(store.meta(_MODELS) or "[]")]
    except (ValueError, TypeError):
        raise store.damaged("it does not say whose vectors it holds") from None
