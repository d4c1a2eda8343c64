"""Words of a query that no code has, read as the ones that were meant: `parseConifg` finds parseConfig."""

from __future__ import annotations

from ..index.store import Store

LEAST_LETTERS = 5
"""A shorter word is one slip away from too many others."""


def meant(store: Store, stem: str) -> tuple[str, int] | None:
    """The stem that is one slip away from `stem`, begins with the same letter and is in most units, and in how many;
    None if there is none."""
    if len(stem) < LEAST_LETTERS or not (stem.isascii() and stem.isalpha()):
        return None
    bounds = (stem[0], chr(ord(stem[0]) + 1))
    rows = store.rows("SELECT term, doc FROM vocabulary WHERE term >= ? AND term < ?", bounds)
    near = [(units, term) for term, units in rows if one_slip(stem, term)]
    units, term = max(near, default=(0, ""))
    return (term, units) if term else None


def one_slip(typed: str, word: str) -> bool:
    """Whether one letter is missing, too many or wrong, or two neighbours are swapped."""
    if abs(len(typed) - len(word)) > 1 or typed == word:
        return False
    shorter = min(len(typed), len(word))
    start = next((at for at in range(shorter) if typed[at] != word[at]), shorter)
    mine, theirs = typed[start:], word[start:]
    swapped = mine[1::-1] + mine[2:]
    return mine[1:] in (theirs, theirs[1:]) or mine == theirs[1:] or swapped == theirs
