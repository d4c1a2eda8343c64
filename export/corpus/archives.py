"""Reads packages without unpacking or running them: their licence, and their source files."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from .debian import source_filter, whole_licence
from .licences import from_metadata, from_package_json
from .manifest import Package


@dataclass(frozen=True)
class Opened:
    """A package whose licence lets us use it."""

    package: Package
    files: Callable[[Callable[[str], bool]], Iterator[tuple[str, bytes]]]
    """Called with a filter of paths: yields path (with /, from the package's top folder) and content."""


class Unusable(Exception):
    """The package may not or cannot be used; the message says why."""


def open_package(registry: str, name: str, folder: Path) -> Opened:
    """The package whose archives lie in `folder`, with version and licence as its own metadata states them.

    Raises Unusable if the licence is not permissive or not stated, or if the archive is not what its registry serves.
    """
    reader = {"pypi": _wheel, "npm": _npm, "deb": _deb, "src": _source}[registry]
    try:
        return reader(name, folder)
    except (OSError, ValueError, KeyError, tarfile.TarError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
        raise Unusable(f"{registry}:{name}: cannot be read: {error}") from error


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Unusable(f"{folder.name}: no {pattern} in the download")
    return found[0]


def _wheel(name: str, folder: Path) -> Opened:
    path = _only(folder, "*.whl")
    with zipfile.ZipFile(path) as archive:
        metadata_name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(metadata_name).decode("utf-8", "replace").splitlines()
    licence = from_metadata(metadata)
    if licence is None:
        raise Unusable(f"pypi:{name}: no permissive licence stated")

    def files(wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir() and wanted(member.filename):
                    yield member.filename, archive.read(member)

    return Opened(Package("pypi", name, path.name.split("-")[1], licence), files)


def _npm(name: str, folder: Path) -> Opened:
    path = _only(folder, "*.tgz")
    manifest = None
    with tarfile.open(path) as archive:
        for member in archive:
            if PurePosixPath(member.name).name == "package.json" and member.name.count("/") == 1:
                stream = archive.extractfile(member)
                manifest = json.loads(stream.read()) if stream else None
                break
    licence = from_package_json(manifest)
    if licence is None or manifest is None:
        raise Unusable(f"npm:{name}: no permissive licence stated")
    return Opened(
        Package("npm", name, str(manifest["version"]), licence), _tar_files(partial(tarfile.open, path), strip=1)
    )


def _deb(name: str, folder: Path) -> Opened:
    path = _only(folder, "*.deb")
    shown = subprocess.run(["dpkg-deb", "-f", str(path), "Version"], capture_output=True, text=True, check=True)
    licence = whole_licence(_deb_copyright(path, name))
    if licence is None:
        raise Unusable(f"deb:{name}: not all of it is under permissive licences by its copyright file")
    files = _tar_files(partial(_deb_tar, path), strip=0)
    return Opened(Package("deb", name, shown.stdout.strip(), licence), files)


@contextmanager
def _deb_tar(path: Path) -> Iterator[tarfile.TarFile]:
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as unpacking:
        assert unpacking.stdout is not None
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive:
            yield archive
        unpacking.stdout.close()


def _deb_copyright(path: Path, name: str) -> str:
    suffix = f"/usr/share/doc/{name}/copyright"
    with _deb_tar(path) as archive:
        for member in archive:
            if ("/" + member.name.removeprefix("./")) == suffix and member.isfile():
                stream = archive.extractfile(member)
                return stream.read().decode("utf-8", "replace") if stream else ""
    raise Unusable(f"deb:{name}: has no copyright file of its own")


def _source(name: str, folder: Path) -> Opened:
    description = _only(folder, "*.dsc")
    version = next(
        line.split(":", 1)[1].strip()
        for line in description.read_text("utf-8").splitlines()
        if line.startswith("Version:")
    )
    tarballs = sorted(p for p in folder.iterdir() if ".tar." in p.name and not p.name.endswith(".asc"))
    debian = [p for p in tarballs if ".debian.tar." in p.name]
    upstream = [p for p in tarballs if p not in debian]
    if not upstream:
        raise Unusable(f"src:{name}: no tarball in the download")
    verdict = source_filter(_source_copyright((debian or upstream)[0]))
    if verdict is None:
        raise Unusable(f"src:{name}: its main part is not under a permissive licence by its copyright file")
    licence, may_use = verdict

    def files(wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        for tarball in upstream:
            yield from _tar_files(partial(tarfile.open, tarball), 1)(lambda path: may_use(path) and wanted(path))

    return Opened(Package("src", name, version, licence), files)


def _source_copyright(path: Path) -> str:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.removeprefix("./").endswith("debian/copyright") and member.isfile():
                stream = archive.extractfile(member)
                return stream.read().decode("utf-8", "replace") if stream else ""
    raise Unusable(f"{path.name}: has no debian/copyright")


def _tar_files(
    open_tar: Callable[[], AbstractContextManager[tarfile.TarFile]], strip: int
) -> Callable[[Callable[[str], bool]], Iterator[tuple[str, bytes]]]:
    """A reader of a tar's regular files, `strip` leading folders taken off their paths."""

    def files(wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        with open_tar() as archive:
            for member in archive:
                parts = PurePosixPath(member.name.removeprefix("./")).parts[strip:]
                path = "/".join(parts)
                if member.isfile() and path and wanted(path):
                    stream: IO[bytes] | None = archive.extractfile(member)
                    if stream:
                        yield path, stream.read()

    return files
