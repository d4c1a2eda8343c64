"""Emacs as its users set it up: what the README says, in a home of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.agents.conftest import write

from .programs import PATIENCE, blocks, found, missing, surroundings

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("emacs.el")
PACKAGES = {"eglot": "elpa-eglot", "lsp-mode": "elpa-lsp-mode"}


def seen(what: str, folder: Path) -> dict[str, str]:
    """What the script sees in one of its parts, in an Emacs with all that the README says."""
    emacs = found("emacs", "apt-get install emacs-nox elpa-eglot elpa-lsp-mode")
    environment = surroundings(folder / "user")
    configuration = Path(environment["HOME"], ".emacs.d", "init.el")
    configuration.parent.mkdir()
    configuration.write_text("\n".join(blocks("Emacs", "elisp")))
    if what in PACKAGES:
        there = [emacs, "--batch", "--eval", f'(kill-emacs (if (locate-library "{what}") 0 1))']
        if subprocess.run(there, env=environment, capture_output=True, check=False).returncode:
            missing(f"this Emacs has no {what}: apt-get install {PACKAGES[what]}")
    project = write(folder / "my code")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    done = subprocess.run(
        [emacs, "--batch", "-l", str(configuration), "-l", str(SCRIPT)],
        env={**environment, "FOLDER": str(project), "WHAT": what},
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert not done.returncode, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def test_the_command_shows_hits_to_jump_to(tmp_path: Path) -> None:
    assert seen("command", tmp_path) == {"row": "1: parse_cron  def parse_cron(text)", "jumped": "cron.py:1"}


def test_eglot_finds_symbols_by_meaning_as_they_are_typed(tmp_path: Path) -> None:
    found = seen("eglot", tmp_path)
    assert "parse_cron" in found["first"]
    assert "turn_pancake" in found["typed"]


def test_lsp_mode_has_it_beside_other_servers(tmp_path: Path) -> None:
    assert seen("lsp-mode", tmp_path) == {"first": "[Function] parse_cron"}
