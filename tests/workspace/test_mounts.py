"""Which file systems are said not to tell of every change."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.workspace import mounts
from server.workspace.mounts import shared_mount

TABLE = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 0:21 / /proc rw,relatime - proc proc rw
40 27 0:40 / /mnt/c rw,noatime - 9p drvfs rw
41 27 0:41 / /home/me/net\\040work rw shared:7 master:1 - nfs4 server:/x rw
42 27 0:42 / /mnt/c/fast rw - ext4 /dev/vdb rw
43 27 0:43 / /data rw - nfs old:/x rw
44 27 0:44 / /data rw - xfs /dev/vdc rw
45 27 0:45 / /home/me/remote rw - fuse.sshfs me@there: rw
46 27 0:46 / /media/usb rw - fuseblk /dev/sdb rw
"""


@pytest.fixture(autouse=True)
def _table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(TABLE)
    monkeypatch.setattr(mounts, "_TABLE", file)


@pytest.mark.parametrize(
    ("root", "found"),
    [
        ("/home/me/code", None),
        ("/mnt/c/code", ("/mnt/c", "9p")),
        ("/mnt/c/fast/code", None),
        ("/mnt/code", None),
        ("/home/me/net work", ("/home/me/net work", "nfs4")),
        ("/home/me", ("/home/me/net work", "nfs4")),
        ("/home/me/remote/x", ("/home/me/remote", "fuse.sshfs")),
        ("/data/x", None),
        ("/media/usb/x", None),
    ],
)
def test_it_is_the_mount_around_or_below_that_counts(root: str, found: tuple[str, str] | None) -> None:
    assert shared_mount(Path(root)) == found


def test_other_systems_have_no_such_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mounts, "_TABLE", tmp_path / "none")
    assert shared_mount(Path("/mnt/c")) is None
