"""The list of packages that the corpus is made of, and the list of what must not be in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.tsv"
EXCLUDED = HERE / "excluded.txt"

REGISTRIES = ("deb", "npm", "pypi", "src")
"""`deb` is a Debian binary package, `src` a Debian source package."""

_HEADER = "# registry\tname\tversion\tlicence\tlanguages (by pairs, most first)\n"


@dataclass(frozen=True, order=True)
class Package:
    """One pinned package."""

    registry: str
    name: str
    version: str
    licence: str
    """SPDX, as the package's own metadata states it."""
    languages: tuple[str, ...] = ()
    """What it gave pairs in; a hint for readers."""

    @property
    def key(self) -> str:
        """A file name that no other package has."""
        return f"{self.registry}-{self.name.replace('/', '+')}"


@dataclass(frozen=True)
class Exclusion:
    """One repository that nothing may be trained on."""

    repository: str
    packages: tuple[str, ...]
    """registry:glob."""
    folders: frozenset[str]
    """Lower-case names of folders under which others vendor it."""


def read_manifest(path: Path = MANIFEST) -> list[Package]:
    """The packages, sorted. Raises ValueError naming the line that is malformed."""
    packages = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 5 or fields[0] not in REGISTRIES:
                raise ValueError(
                    f"{path}:{number}: not registry, name, version, licence, languages split by tabs: {line!r}"
                )
            registry, name, version, licence, languages = fields
            packages.append(Package(registry, name, version, licence, tuple(languages.split())))
    return sorted(packages)


def write_manifest(packages: Iterable[Package], path: Path = MANIFEST) -> None:
    """Writes the packages sorted, one a line."""
    rows = ("\t".join((p.registry, p.name, p.version, p.licence, " ".join(p.languages))) for p in sorted(packages))
    path.write_text(_HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")


@lru_cache(maxsize=1)
def exclusions() -> tuple[Exclusion, ...]:
    """The repositories of excluded.txt."""
    found = []
    for line in EXCLUDED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            repository, *rest = line.split()
            packages = tuple(item for item in rest if not item.startswith("dir:"))
            folders = frozenset(item.removeprefix("dir:").lower() for item in rest if item.startswith("dir:"))
            found.append(Exclusion(repository, packages, folders))
    return tuple(found)


def excluded_by(registry: str, name: str) -> str | None:
    """The repository because of which a package may not be used, or None."""
    wanted = f"{registry}:{name}"
    for exclusion in exclusions():
        if any(fnmatchcase(wanted, pattern) for pattern in exclusion.packages):
            return exclusion.repository
    return None


@lru_cache(maxsize=1)
def excluded_folders() -> frozenset[str]:
    """Folder names, lower case, that may hold a copy of an excluded repository."""
    return frozenset().union(*(exclusion.folders for exclusion in exclusions()))
