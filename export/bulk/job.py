"""What a run was asked for, and the pieces that it is done in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.index.prepare import digest_of
from server.index.version import units_version
from server.settings import Settings
from server.workspace.discover import FoundFile, discover

from ..errors import ExportError, one_line

CHUNK_BYTES = 1_000_000
"""Of code in a chunk, at most about: a second's work or a few, which is what a kill can cost. Each chunk costs Ray some
milliseconds."""

CUT = 64
"""One file in so many begins a new chunk, by its path: a file that comes or goes leaves most chunks as they were."""

CLONES_DEPTH = 3
"""How far down in a folder of clones they are looked for: `host/owner/name`."""


@dataclass(frozen=True)
class Job:
    """What every process of a run has to know. Its settings name the model and the shared cache."""

    out: Path
    model: Path
    fingerprint: str
    settings: Settings


@dataclass(frozen=True)
class Repository:
    """A folder of code."""

    name: str
    """As the rows of the result name it."""
    root: Path

    @property
    def id(self) -> str:
        """Names its folder in the result: different for every repository."""
        return (
            f"{Path(self.name).name[:40]}-{hashlib.sha256(self.name.encode(errors='surrogateescape')).hexdigest()[:12]}"
        )


@dataclass(frozen=True)
class Chunk:
    """Some files of a repository."""

    repository: Repository
    files: tuple[FoundFile, ...]
    digest: str
    """Of all that its vectors come from."""


def repositories(paths: Sequence[Path], lists: Sequence[Path], clones: Sequence[Path]) -> list[Repository]:
    """Those that are named: by their folders, by files of such lines, and by folders whose folders they are.

    A clone is named by its path in the folder of clones, any other by its path as it was given. Raises ExportError.
    """
    found = [Repository(str(path), path.absolute()) for path in paths]
    try:
        for file in lists:
            lines = (line.strip() for line in file.read_text("utf-8").splitlines())
            found += [
                Repository(line, file.absolute().parent / line) for line in lines if line and not line.startswith("#")
            ]
        for folder in clones:
            found += [Repository(root.relative_to(folder).as_posix(), root.absolute()) for root in _clones(folder)]
    except (OSError, ValueError) as error:
        raise ExportError(f"the repositories cannot be listed: {one_line(error)}") from None
    return list({repository.name: repository for repository in found}.values())


def _clones(folder: Path, depth: int = CLONES_DEPTH) -> Iterator[Path]:
    """The topmost folders with a `.git`."""
    for child in sorted(child for child in folder.iterdir() if child.is_dir() and not child.is_symlink()):
        if (child / ".git").exists():
            yield child
        elif depth > 1:
            yield from _clones(child, depth - 1)


def chunks_of(repository: Repository, job: Job) -> list[Chunk]:
    """All that is to be done for a repository; every file is read. Raises OSError."""
    root = repository.root.resolve(strict=True)
    files = sorted(discover(root, job.settings), key=lambda found: found.path)
    chunks: list[Chunk] = []
    some: list[FoundFile] = []
    digest, size = _new_digest(job), 0
    for found in files:
        try:
            content = (root / found.path).read_bytes()
        except OSError:
            continue  # it has gone, or is not ours to read
        if some and (size >= CHUNK_BYTES or digest_of(found.path.encode())[0] % CUT == 0):
            chunks.append(Chunk(repository, tuple(some), digest.hexdigest()))
            some, digest, size = [], _new_digest(job), 0
        some.append(found)
        digest.update(found.path.encode() + b"\0" + digest_of(content))
        size += len(content)
    if some:
        chunks.append(Chunk(repository, tuple(some), digest.hexdigest()))
    return chunks


def _new_digest(job: Job) -> hashlib.blake2b:
    about = f"{job.fingerprint}\0{units_version()}\0"
    return hashlib.blake2b(about.encode("utf-8", "surrogatepass"), digest_size=16)
