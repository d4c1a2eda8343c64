"""A damaged installation is told in one line that says what to do."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import server
from server.installation import DamagedInstallation, shipped


@pytest.mark.parametrize(
    "error", [ValueError("odd\n thing"), KeyError("sentence"), FileNotFoundError(2, "gone", "a.scm")]
)
def test_whatever_is_wrong_with_a_shipped_file_is_told_with_its_name(error: Exception) -> None:
    with pytest.raises(DamagedInstallation) as told, shipped(Path("house/a.scm")):
        raise error
    again = pickle.loads(pickle.dumps(told.value))  # as it comes from a worker
    for each in (told.value, again):
        assert "a.scm" in str(each)
        assert "install meaning-lsp again" in str(each)
        assert "\n" not in str(each)


@pytest.mark.parametrize("damage", [None, '{"a": 1', "{}"])
@pytest.mark.parametrize("name", ["search/ranking.json", "parse/queries/python.scm"])
def test_a_search_says_it_in_one_line(tmp_path: Path, name: str, damage: str | None) -> None:
    shutil.copytree(Path(server.__file__).parent, tmp_path / "server", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("def one(): return 1\n")
    file = tmp_path / "server" / name
    file.unlink()
    if damage is not None:
        file.write_text(damage)
    command = [sys.executable, "-m", "server", "search", "one", "code", "--cache-dir", "cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert str(file if damage is None else file.parent) in line
    assert line.endswith("install meaning-lsp again")
