"""A file -> its units. Knows grammars; knows nothing of folders, models or indexes.

`language_of` says by name what a file is, `decode` turns its bytes into text, `parse` the text into units. A new
language is a row in languages.py, a query in queries/ and a fixture under tests/parse/.
"""

from .languages import LANGUAGES, Language, language_of, settled
from .source import NotText, decode, split_lines
from .unit import KINDS, Unit
from .units import parse

__all__ = [
    "KINDS",
    "LANGUAGES",
    "Language",
    "NotText",
    "Unit",
    "decode",
    "language_of",
    "parse",
    "settled",
    "split_lines",
]
