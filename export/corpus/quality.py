"""What makes a doc comment a good question: its first sentences in plain words, cleaned of markup."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

MIN_WORDS = 3
MAX_WORDS = 40
"""People ask in few words; the rest of a doc is details."""
MIN_CODE_WORDS = 6
MAX_CODE_CHARS = 6_000
"""Longer units are cut here: what they are about shows at their top."""

_WORD = re.compile(r"[A-Za-z]{2,}")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_COMMON = frozenset(
    """
    a about after all also an and any are as at be before between but by can check convert create do does each find
    for from get given has have if in into is it its list make new no not of on one only or other out over parse read
    remove return returns run same set should so some than that the their them then there these this to under until up
    update use used uses using value was way when where whether which while will with without write you your
    """.split()
)
"""A sentence in English has at least one of these."""

_NOT_A_QUESTION = re.compile(
    r"""copyright | licen[sc]e[sd]?\b | all\ rights\ reserved | \bgenerated\ (by|from|code) | auto-?generated
    | do\ not\ edit | inherit-?doc | ^\s*(todo|fixme|xxx|hack|note|nolint|eslint|tslint|noinspection|see|nodoc)\b
    | ^\s*@ | ^\s*(from|import|using|include|const|var|let|def|class|func)\s\S+\s*(import|=|\(|\{|;|$)
    | ^\s*(overrides?|implements?|deprecated|test\ (for|that|case)|tests\b) | -\*- | \bvim:
    | ^\s*(construct(s|or)|default\ constructor|getter|setter)\b[^.]{0,30}\.?$""",
    re.IGNORECASE | re.VERBOSE,
)
_SECTION = re.compile(
    r"^\s*(@(param|return|throws|see|since|author|deprecated|example|exception|template|var|type|api|private|internal)"
    r"|:(param|return|rtype|raises?|type|arg)\b|\\(param|return|brief)"
    r"|(args|arguments|parameters?|returns?|raises|yields?|examples?|usage|notes?|see also)\s*:?\s*$"
    r"|(errors|panics|safety)\s*:?\s*$"
    r"|#+\s|={3,}|-{3,}|```|>>>|\.\. )",
    re.IGNORECASE,
)
_MARKUP = (
    (re.compile(r"\{@\w+\s+([^}]*)\}"), r"\1"),  # {@link Type}
    (re.compile(r"</?[A-Za-z][^<>]{0,80}>"), " "),  # <p>, <code>
    (re.compile(r"<see cref=\"([^\"]*)\"\s*/>"), r"\1"),
    (re.compile(r"\[([^\]]{1,80})\]\([^)]*\)"), r"\1"),  # [text](url)
    (re.compile(r":[a-z:]+:`~?([^`<]*)[^`]*`"), r"\1"),  # :class:`Name`
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r"&[a-z]+;"), " "),
    (re.compile(r"^\s*\\brief\s+|^\s*@brief\s+"), ""),
    (re.compile(r"[`*|\"]+"), ""),
    (re.compile(r"\s+"), " "),
)


def question(doc: str, name: str) -> str | None:
    """The first sentences of a doc comment as one line, or None if they say nothing in English words.

    Where the doc begins with the unit's own name, as Go's do, the name is taken off: who knew it would not ask.
    """
    lines: list[str] = []
    for line in doc.strip().split("\n"):
        if (not line.strip() or _SECTION.match(line)) and lines:
            break
        if line.strip() and not (_SECTION.match(line) and not re.match(r"\s*[\\@]brief", line)):
            lines.append(line.strip())
    text = " ".join(lines)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    text = text.strip(" .:-").removeprefix(f"{name} ").removeprefix(f"{name}() ")
    text = _first_sentences(text)
    return text if _is_question(text) else None


def _first_sentences(text: str) -> str:
    kept: list[str] = []
    for sentence in re.split(r"(?<=[a-z)\]][.!?])\s+(?=[A-Z])", text):
        words = sentence.split()
        if kept and len(kept) + len(words) > MAX_WORDS:
            break
        kept += words
        if len(kept) >= 12:
            break
    return " ".join(kept[:MAX_WORDS])


def _is_question(text: str) -> bool:
    words = [word.lower() for word in _WORD.findall(text)]
    if len(words) < MIN_WORDS or _NOT_A_QUESTION.search(text):
        return False
    letters = sum(map(len, words))
    plain = sum(1 for character in text if character.isascii())
    return plain > 0.97 * len(text) and letters > 0.6 * len(text.replace(" ", "")) and not _COMMON.isdisjoint(words)


def pieces(text: str) -> list[str]:
    """Identifiers and words split at camel case, underscores and digits, in lower case."""
    return [piece.lower() for piece in _PIECE.findall(text)]


def shape(words: Iterable[str]) -> str:
    """Near-duplicates have the same shape: the three smallest hashes of their runs of three words."""
    run = [word for word in words if not word.isdigit()]
    hashes = {zlib.crc32(" ".join(run[at : at + 3]).encode()) for at in range(max(1, len(run) - 2))}
    return "-".join(f"{value:x}" for value in sorted(hashes)[:3])
