"""Debian's machine-readable copyright files: which files of a package are under which licence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .licences import permitted


@dataclass(frozen=True)
class Stanza:
    """One `Files:` paragraph."""

    globs: tuple[str, ...]
    licence: str | None
    """The SPDX expression if it is permissive, else None."""


def stanzas(copyright_text: str) -> list[Stanza]:
    """The paragraphs of a DEP-5 file in order; empty if the text is in no known format (then nothing is permitted)."""
    if not re.match(r"\s*Format(-Specification)?:", copyright_text):
        return []
    found = []
    for paragraph in re.split(r"\n[ \t]*\n", copyright_text):
        fields = _fields(paragraph)
        if "files" in fields:
            licence = fields.get("license", "").strip().split("\n")[0]
            found.append(Stanza(tuple(fields["files"].replace(",", " ").split()), permitted(licence)))
    return found


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = ""
    for line in paragraph.split("\n"):
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t") and key:
            fields[key] += "\n" + line.strip()
        elif ":" in line:
            key, _, value = line.partition(":")
            key = key.strip().lower()
            fields[key] = value.strip()
    return fields


def source_filter(copyright_text: str) -> tuple[str, Callable[[str], bool]] | None:
    """For a source package: its main licence, and whether a path may be used. None if its main part may not.

    As the format says, the last paragraph that matches a path decides.
    """
    rules = stanzas(copyright_text)
    main = next((s.licence for s in rules if "*" in s.globs), None)
    if main is None:
        return None
    compiled = [(_matcher(stanza.globs), stanza.licence is not None) for stanza in rules]

    def may_use(path: str) -> bool:
        verdict = False
        for matches, allowed in compiled:
            if matches(path):
                verdict = allowed
        return verdict

    return main, may_use


def whole_licence(copyright_text: str) -> str | None:
    """For a binary package, whose paths are not the source's: permissive only if every part but debian/ is."""
    rules = [s for s in stanzas(copyright_text) if not all(glob.startswith("debian/") for glob in s.globs)]
    if not rules or any(s.licence is None for s in rules):
        return None
    return next((s.licence for s in rules if "*" in s.globs), rules[0].licence)


def _matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    pattern = _compiled(globs)
    return lambda path: pattern.fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    """DEP-5 globs: `*` and `?` match any character, the slash included."""
    parts = [re.escape(g.removeprefix("./")).replace(r"\*", ".*").replace(r"\?", ".") for g in globs]
    return re.compile("|".join(f"(?:{part})" for part in parts), re.DOTALL)
