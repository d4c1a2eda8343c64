"""Which file systems do not tell of every change: those that other machines, or a container's host, change too."""

from __future__ import annotations

import re
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")
_SHARED = re.compile(
    r"nfs4?|cifs|smb3?|smbfs|9p|virtiofs|fuse\..*|vboxsf|prl_fs|afs|ceph|lustre|gpfs|beegfs|ncpfs|davfs"
)
"""Network file systems, and those that lend a host's folders to a virtual machine (9p is what WSL calls `C:`)."""


def shared_mount(root: Path) -> tuple[str, str] | None:
    """The place and the type of a shared file system that `root` lies on or that lies below it, None if there is none.

    Known on Linux alone.
    """
    try:
        lines = _TABLE.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    mounts = {Path(place): kind for place, kind in map(_parsed, lines)}  # The last one at a place hides the others.
    around = max((place for place in mounts if root.is_relative_to(place)), key=lambda place: len(place.parts))
    for place, kind in mounts.items():
        if (place == around or place.is_relative_to(root)) and _SHARED.fullmatch(kind):
            return str(place), kind
    return None


def _parsed(line: str) -> tuple[str, str]:
    """A mount's place and its file system's type. Spaces and the like are octal there."""
    fields, _, rest = line.partition(" - ")
    place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields.split(" ")[4])
    return place, rest.split(" ")[0]
