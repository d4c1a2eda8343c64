"""Takes pairs out of one package: what a unit's doc or name says, and the unit's code without it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from server.parse import NotText, Unit, decode, language_of, parse, settled

from .archives import Opened
from .manifest import excluded_folders
from .quality import MAX_CODE_CHARS, MIN_CODE_WORDS, pieces, question, shape

MAX_FILE_BYTES = 300_000
MAX_PACKAGE_BYTES = 12_000_000
"""Source read from one package: more would let the largest packages speak for everyone."""
MAX_PAIRS = {"doc": 3_000, "name": 1_500}

_SKIPPED_FOLDERS = frozenset(
    """
    vendor vendored _vendor _vendored third_party third-party thirdparty 3rdparty 3rd_party node_modules
    bower_components external extern externals deps bundled contrib .git .pc test tests testing testdata __tests__ spec specs fixtures
    testsuite unittests examples example samples demo demos docs doc min generated gen locale typings
    """.split()
)
_BUILDS = frozenset(
    """
    dist build builds lib libs es es5 es6 es2015 es2020 esm cjs mjs umd bundles fesm2015 fesm2020 fesm2022 modern legacy
    """.split()
)
"""Where npm packages have what was made from their sources, and wheels and Debian packages their sources."""
_SKIPPED_NAMES = re.compile(
    r"\.min\.|\.bundle\.|-bundle\.|\.d\.[cm]?ts$|\.pyi$|_pb2|\.pb\.|(^|[._-])(test|tests|spec|bench)\.|_test\.|^test_|"
    r"conftest|generated|\.umd\.|\.prod\.",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Pair:
    """One training example and where it is from."""

    source: str
    """`doc`: the query is the unit's documentation. `name`: it is the unit's name, masked in the code."""
    language: str
    kind: str
    package: str
    path: str
    name: str
    query: str
    code: str
    shape: str
    """Equal for near-duplicate code."""


def harvest(opened: Opened, target: Path) -> Counter[str]:
    """Writes the package's pairs to `target` (JSON lines, sorted), whole or not at all. Returns pairs by language."""
    files = sorted(opened.files(_wanted), key=lambda item: _rank(item[0]))
    found: dict[str, list[Pair]] = {"doc": [], "name": []}
    seen: set[str] = set()
    read = 0
    for path, data in files:
        if len(data) > MAX_FILE_BYTES or read + len(data) > MAX_PACKAGE_BYTES:
            continue
        read += len(data)
        for pair in _pairs(opened.package.key, path, data):
            if pair.shape not in seen and len(found[pair.source]) < MAX_PAIRS[pair.source]:
                seen.add(pair.shape)
                found[pair.source].append(pair)
        if all(len(found[source]) >= limit for source, limit in MAX_PAIRS.items()):
            break
    pairs = sorted(
        (p for each in found.values() for p in each), key=lambda p: (p.path, p.name, p.source, p.query, p.code)
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_text("".join(json.dumps(asdict(p), ensure_ascii=False) + "\n" for p in pairs), encoding="utf-8")
    part.rename(target)
    return Counter(pair.language for pair in pairs if pair.source == "doc")


def _rank(path: str) -> tuple[bool, str]:
    """Sources before what was built from them, else a fixed shuffle: a cap must not take the first folders only."""
    built = not _BUILDS.isdisjoint(path.lower().split("/")[:-1])
    return built, hashlib.sha1(path.encode()).hexdigest()


def _wanted(path: str) -> bool:
    parts = [part.lower() for part in PurePosixPath(path).parts]
    folders, name = set(parts[:-1]), parts[-1]
    stem = name.split(".")[0]
    if folders & excluded_folders() or stem in excluded_folders() or _SKIPPED_NAMES.search(name):
        return False
    if folders & _SKIPPED_FOLDERS:
        return False
    language = language_of(path)
    return language is not None and language.grammar is not None


def _pairs(package: str, path: str, data: bytes) -> Iterator[Pair]:
    try:
        text = decode(data)
    except NotText:
        return
    language = settled(language_of(path), text)
    if language is None or _looks_generated(text):
        return
    for unit in parse(text, language, PurePosixPath(path).stem):
        if unit.kind in ("module", "text"):
            continue
        asked = question(unit.doc, unit.name) if unit.doc else None
        code = without_doc(unit)[:MAX_CODE_CHARS]
        words = pieces(code)
        if len(words) < MIN_CODE_WORDS:
            continue
        if asked:
            yield Pair("doc", language.name, unit.kind, package, path, unit.name, asked, code, shape(words))
        elif len(name_words := pieces(unit.name)) >= 2 and unit.kind in ("function", "method") and len(words) >= 20:
            masked = code.replace(unit.name, " ")
            yield Pair(
                "name", language.name, unit.kind, package, path, unit.name, " ".join(name_words), masked, shape(words)
            )


def _looks_generated(text: str) -> bool:
    head = text[:2_000].lower()
    longest = max(map(len, text.split("\n")), default=0)
    return longest > 2_000 or "generated by" in head or "do not edit" in head or "autogenerated" in head


def without_doc(unit: Unit) -> str:
    """The unit's text without its doc lines: the answer must not hold the question."""
    said = {key for line in unit.doc.split("\n") if (key := _line_key(line))}
    if not said:
        return unit.text
    lines = unit.text.split("\n")
    spoken = [at for at, line in enumerate(lines) if _line_key(line) in said]
    if not spoken:
        return unit.text
    first, last = spoken[0], spoken[-1]
    if last - first > unit.doc.count("\n") + 2:  # a line of the doc stands in the code again: take the lines singly
        return "\n".join(line for line in lines if _line_key(line) not in said)
    return "\n".join(lines[:first] + lines[last + 1 :])


def _line_key(line: str) -> str:
    return " ".join(re.findall(r"\w+", line))
