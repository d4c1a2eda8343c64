"""Neovim as its users set it up: what the README says, in a home of its own, with the plugin that comes along."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import write

from .programs import PATIENCE, README, blocks, neovim, surroundings

SCRIPT = Path(__file__).with_name("neovim.lua")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return user(tmp_path_factory.mktemp("user"))


def user(folder: Path) -> Mapping[str, str]:
    """Somebody who has done what the README says."""
    environment = surroundings(folder)
    subprocess.run(["sh", "-euc", blocks("Neovim", "sh")[0]], env=environment, check=True)
    configuration = Path(environment["HOME"], ".config", "nvim", "init.lua")
    configuration.parent.mkdir(parents=True)
    configuration.write_text(blocks("Neovim", "lua")[0])
    return environment


@pytest.fixture(scope="module")
def seen(environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the script saw."""
    project = write(tmp_path_factory.mktemp("my code"))
    (project / ".git").mkdir()
    return ran(environment, SCRIPT, project)


def ran(environment: Mapping[str, str], script: Path, project: Path) -> Any:
    out = project.parent / f"{script.stem}.json"
    ended = subprocess.run(
        (neovim(), "--headless", "-i", "NONE", "-n", "-S", str(script)),
        cwd=project,
        env={**environment, "OUT": str(out)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert out.exists(), ended.stderr.decode()
    found = json.loads(out.read_text())
    assert "failure" not in found, found["failure"]
    found["stderr"] = ended.stderr.decode()
    found["project"] = str(project)
    return found


def test_a_project_without_an_open_file_has_a_server_and_keeps_the_one(seen: Any) -> None:
    assert Path(seen["started_at"]).samefile(seen["project"])
    assert seen["clients"] == 1


def test_hits_are_offered_and_the_chosen_one_jumped_to(seen: Any) -> None:
    assert seen["offered"][0] == "Uploader.retry  net/upload.py:2  def retry(self, job, attempts=3)"
    assert seen["word"] == "retry"
    assert seen["back"] == "cron.py"


def test_what_is_typed_is_found_before_it_is_saved(seen: Any) -> None:
    assert seen["typed"].startswith("turn_pancake  time/cron.py:2 ")
    assert seen["moved"].startswith("parse_cron  time/cron.py:5 ")


def test_filters_are_words_of_the_query(seen: Any) -> None:
    assert [label.partition(" ")[0] for label in seen["filtered"]] == ["ParseCookies", "cookies"]


def test_nothing_found_and_mistakes_are_told(seen: Any) -> None:
    nothing, mistake = seen["told"]
    assert nothing == "meaning: nothing found"
    assert "klingon" in mistake


def test_a_bang_fills_the_quickfix_list_best_first(seen: Any) -> None:
    assert seen["title"] == "Meaning: split a cron expression"
    assert seen["first"] == ["cron.py", 5, 5, "def parse_cron(text)"]
    assert seen["window"] == "quickfix"


def test_code_like_that_at_the_cursor_is_offered(seen: Any) -> None:
    assert seen["similar"]
    assert not any(label.startswith("parse_cron ") for label in seen["similar"])


def test_checkhealth_tells_how_it_stands(seen: Any) -> None:
    assert "bin/meaning-lsp" in seen["health"]
    assert "ready, 3 files, " in seen["health"]
    assert "ERROR" not in seen["health"]


def test_without_a_query_the_hits_follow_what_is_typed(environment: Mapping[str, str], tmp_path: Path) -> None:
    project = write(tmp_path / "code")
    (project / ".git").mkdir()
    found = ran(environment, SCRIPT.with_name("live.lua"), project)
    assert found["rows"][0] == "parse_cron  time/cron.py:1  def parse_cron(text)"
    assert "klingon" in found["mistake"][0]
    assert found["left"] == ["upload.py", "n", 1]
    assert (found["word"], found["line"]) == ("next_run", 6)
    assert found["kept"] == {"title": "Meaning: cookies of a request", "first": "cookies.go"}


def test_a_folder_that_is_no_project_is_told(environment: Mapping[str, str], tmp_path: Path) -> None:
    script = tmp_path / "nowhere.lua"
    script.write_text("""
local told = {}
vim.notify = function(message) table.insert(told, message) end
vim.cmd("Meaning anything")
vim.fn.writefile({ vim.json.encode({ told = told, clients = #vim.lsp.get_clients() }) }, vim.env.OUT)
vim.cmd("qall!")
""")
    (tmp_path / "folder").mkdir()
    found = ran(environment, script, tmp_path / "folder")
    assert found["clients"] == 0
    assert "no project here" in found["told"][0]


def test_without_the_program_it_says_so(tmp_path: Path) -> None:
    environment = user(tmp_path / "user")
    (tmp_path / "user" / "bin" / "meaning-lsp").unlink()
    script = tmp_path / "missing.lua"
    script.write_text("""
local told = {}
vim.notify = function(message) table.insert(told, message) end
vim.cmd("Meaning anything")
vim.cmd("checkhealth meaning")
local health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n")
vim.fn.writefile({ vim.json.encode({ told = told, health = health }) }, vim.env.OUT)
vim.cmd("qall!")
""")
    project = write(tmp_path / "code")
    (project / ".git").mkdir()
    seen = ran(environment, script, project)
    assert "not installed" in seen["told"][0]
    assert "meaning-lsp is not executable" in seen["health"]


def test_the_readme_names_the_commands_that_there_are() -> None:
    plugin = Path(__file__).parents[2] / "server/editors/nvim/plugin/meaning.lua"
    for name in ("Meaning", "MeaningSimilar"):
        assert f'"{name}"' in plugin.read_text()
        assert f"`:{name}" in README


TELESCOPE = ("telescope.nvim", "plenary.nvim")


@pytest.fixture
def with_telescope(tmp_path: Path) -> Mapping[str, str]:
    """A user who has Telescope, too; clones of it are looked for in $MEANING_TEST_NVIM_PLUGINS."""
    clones = os.environ.get("MEANING_TEST_NVIM_PLUGINS")
    if not clones:
        pytest.skip("no Telescope: no registry has it; MEANING_TEST_NVIM_PLUGINS=FOLDER names a folder with its clone")
    environment = user(tmp_path / "user")
    packages = Path(environment["HOME"], ".local/share/nvim/site/pack/others/start")
    packages.mkdir(parents=True)
    for plugin in TELESCOPE:
        (packages / plugin).symlink_to(Path(clones, plugin))
    return environment


def test_telescopes_rows_follow_what_is_typed(with_telescope: Mapping[str, str], tmp_path: Path) -> None:
    project = write(tmp_path / "code")
    (project / ".git").mkdir()
    found = ran(with_telescope, SCRIPT.with_name("telescope.lua"), project)
    assert found["first"] == "parse_cron  time/cron.py:1  def parse_cron(text)"
    assert (found["cursor"][0], found["word"]) == (2, "retry")
