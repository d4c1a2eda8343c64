"""Words of a query that no code has, read as the ones that were meant: `parseConifg` finds parseConfig."""

from __future__ import annotations

from string import ascii_lowercase

from ..index.postings import Postings
from ..index.words import term

LEAST_LETTERS = 5
"""A shorter word is one slip away from too many others."""


def meant(postings: Postings, stem: str) -> str | None:
    """The stem that is one slip away from `stem`, begins with the same letter and is in most units; None if there is
    none."""
    if len(stem) < LEAST_LETTERS or not (stem.isascii() and stem.isalpha()):
        return None
    near = slips(stem)
    units = postings.frequencies([term(word) for word in near])
    best = int(units.argmax())
    return near[best] if units[best] else None


def slips(word: str) -> list[str]:
    """What is typed instead, each once, when behind the first letter one is missing, too many or wrong, or two
    neighbours are swapped."""
    places = range(1, len(word))
    missing = [word[:at] + word[at + 1 :] for at in places]
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]]
    wrong = [word[:at] + letter + word[at + 1 :] for at in places for letter in ascii_lowercase]
    added = [word[:at] + letter + word[at:] for at in (*places, len(word)) for letter in ascii_lowercase]
    return [each for each in dict.fromkeys(missing + swapped + wrong + added) if each != word]
