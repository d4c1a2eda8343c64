"""Whether what a file holds is worth indexing: said from its bytes, after the walk and its name have let it through."""

from __future__ import annotations

import re

_HEAD_BYTES = 8_000
"""git looks as far for a NUL, too."""

_BOMS_16 = (b"\xff\xfe", b"\xfe\xff")
_BOM_32 = b"\xff\xfe\0\0"

_LONG_LINE = 1_000
_ORDINARY_LINES = 30
"""A file with as many lines of ordinary length that are not blank is code with some data in it, not minified code."""
_PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc", ".tex", ".org")
"""A paragraph may be one long line."""

_HEAD_LINES = 40
_COMMENT = re.compile(r"\s*(//|/\*|\*|#|--|;|%|<!--|\(\*|\{-|'''|\"\"\"|<\?|package\b|@charset)")
"""What a line above the code begins with: a comment, or what has to stand before one."""
_OPENS = re.compile(r"/\*|<!--|\(\*|\{-|'''|\"\"\"")
_CLOSES = re.compile(r"\*/|-->|\*\)|-\}|'''|\"\"\"")
_GENERATED = re.compile(
    r"(?<![\w{`'\"])@generated\b"
    r"|\bDO NOT (EDIT|MODIFY)\b"
    r"|<auto-?generated"
    r"|\b(code|file|source|automatically|auto[- ]?) ?generated (by|from|with|using)\b"
    r"|^\W*generated (by|from) "
    r"|\bthis (file|code|class|module|source) (is|was|has been) (automatically |auto-?)?generated\b",
    re.IGNORECASE,
)


def content_reason(data: bytes, path: str) -> str | None:
    """Why a file with this content is left out (`binary`, `minified` or `generated`), None if it is not."""
    if _is_binary(data):
        return "binary"
    if not path.lower().endswith(_PROSE) and _is_minified(data):
        return "minified"
    if _is_generated(data):
        return "generated"
    return None


def _is_binary(data: bytes) -> bool:
    """UTF-16 has NULs and a mark at its start; UTF-32 is no encoding of source files."""
    return b"\0" in data[:_HEAD_BYTES] and (not data.startswith(_BOMS_16) or data.startswith(_BOM_32))


def _is_minified(data: bytes) -> bool:
    """More than half of it stands in long lines, and there is next to nothing else."""
    if len(data) <= _LONG_LINE:
        return False
    long = ordinary = 0
    for line in data.splitlines():
        if len(line) > _LONG_LINE:
            long += len(line)
        elif line.strip():
            ordinary += 1
            if ordinary == _ORDINARY_LINES:
                return False
    return long > len(data) / 2


def _is_generated(data: bytes) -> bool:
    """Whether a comment above the code says that a tool wrote it."""
    encoding = "utf-16" if data.startswith(_BOMS_16) else "utf-8-sig"
    inside = False
    for line in data[:_HEAD_BYTES].decode(encoding, "replace").splitlines()[:_HEAD_LINES]:
        if not line.strip():
            continue
        if not inside and not _COMMENT.match(line):
            return False
        if _GENERATED.search(line):
            return True
        if inside:
            inside = not _CLOSES.search(line)
        elif opening := _OPENS.search(line):
            inside = not _CLOSES.search(line, opening.end())
    return False
