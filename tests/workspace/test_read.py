"""A file is read if it is one, and nothing else is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from server.workspace.read import read_regular


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    assert read_regular(tmp_path / "a", 4) == b"text"


def test_a_file_that_grew_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_regular(tmp_path / "a", 3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "a")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        read_regular(tmp_path)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links cannot be refused here")
def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match=r"."):
        read_regular(tmp_path / "a")
