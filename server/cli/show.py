"""How an answer looks in a terminal: a place to click, a name, and the first lines of the code in colours."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..parse import LANGUAGES, Language
from ..parse.highlight import Span, spans
from ..search.answer import Answer, Hit
from ..search.source import current_text
from ..terminal import shown

CODE_LINES = 5
"""Of each hit, from the line of its name on: enough to tell whether it is the one."""
TAB = "    "
LEAST_WIDTH = 20

_LANGUAGES = {language.name: language for language in LANGUAGES}
_SGR = {
    "path": "36",
    "name": "1",
    "dim": "2",
    "comment": "32",
    "string": "33",
    "number": "35",
    "keyword": "34",
    "type": "36",
}
"""The sixteen colours that every theme chooses itself."""


def wants_colour(choice: str) -> bool:
    """Whether answers go out in colours, for `--color` auto, always or never: by default to a terminal that has some,
    unless NO_COLOR (https://no-color.org) is set."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class View:
    """Shows answers about one folder."""

    def __init__(self, root: Path, colour: bool, width: int | None = None) -> None:
        """`width` in columns; None for the terminal's."""
        self._root, self._colour = root, colour
        self._width = max(width or shutil.get_terminal_size().columns, LEAST_WIDTH)

    def text(self, answer: Answer, numbered: bool = False) -> str:
        """The hits, best first, each with a blank line after it but for the last one."""
        if not answer.hits:
            return "nothing found" + ("" if answer.indexed else ": the index is empty")
        return "\n\n".join(
            "\n".join(self._hit(hit, f"{number}. " if numbered else "")) for number, hit in enumerate(answer.hits, 1)
        )

    def _hit(self, hit: Hit, number: str) -> Iterator[str]:
        line = hit.selection[0]
        place = f"{shown(self._near(hit.path))}:{line + 1}"  # never cut: it is to be clicked
        name = f"{hit.container}.{hit.name}" if hit.container else hit.name
        kind = self._styled(hit.kind, "dim")
        yield f"{number}{self._styled(place, 'path')}  {kind} {self._styled(shown(name), 'name')}"
        text = current_text(self._root, hit.path)
        if text is None:
            yield self._clipped("    ", [(hit.preview, "")])
            return
        last = min(hit.end_line, line + CODE_LINES - 1)
        language = _LANGUAGES.get(hit.language)
        yield from self._code(text, language, line, last)

    def _code(self, text: str, language: Language | None, first: int, last: int) -> Iterator[str]:
        found = spans(text, language, first, last) if language and self._colour else {}
        lines = text.split("\n")[first : last + 1]
        while lines and not lines[-1].strip():
            lines.pop()
        for number, line in enumerate(lines, first):
            yield self._clipped(self._styled(f"{number + 1:6} ", "dim"), _pieces(line, found.get(number, ())), 7)

    def _near(self, path: str) -> str:
        """A path that a click in this terminal finds: from the folder that it stands in, or whole."""
        whole = str(self._root / path)
        try:
            return min(os.path.relpath(whole), whole, key=len)
        except ValueError:  # another drive
            return whole

    def _clipped(self, margin: str, pieces: Iterable[tuple[str, str]], taken: int = 4) -> str:
        """One line of the terminal, whatever is in it. `taken` columns are the margin's."""
        room = self._width - taken
        line = margin
        for text, style in pieces:
            fitting, room = _fitting(shown(text.replace("\t", TAB)), room)
            line += self._styled(fitting, style)
            if room <= 0:
                break
        return line.rstrip()

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_SGR[style]}m{text}\x1b[m" if text and style and self._colour else text


def _pieces(line: str, found: Sequence[Span]) -> Iterator[tuple[str, str]]:
    """A line in pieces of one style each."""
    data = line.encode("utf-8", "replace")
    position = 0
    for start, end, style in found:
        yield data[position:start].decode("utf-8", "replace"), ""
        yield data[start:end].decode("utf-8", "replace"), style
        position = end
    yield data[position:].decode("utf-8", "replace"), ""


def _fitting(text: str, room: int) -> tuple[str, int]:
    """As much of a text as has room, with an ellipsis for the rest, and the columns that are left."""
    for position, char in enumerate(text):
        width = _width(char)
        if width >= room:  # the last column is the ellipsis's
            return text[:position] + "…", 0
        room -= width
    return text, room


def _width(char: str) -> int:
    """The columns that a printable character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
