"""Opening a hit: every editor has its own way to be told a line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from server.cli.editor import command, edit
from server.terminal import Failure

FILE = Path("/work space/a:5.py")


@pytest.fixture(autouse=True)
def _every_program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if not name or "missing" in name else f"/usr/bin/{name}")


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        ("vim", ["vim", "+7", str(FILE)]),
        ("/opt/bin/nvim -p", ["/opt/bin/nvim", "-p", "+7", str(FILE)]),
        ("emacsclient -nw -a ''", ["emacsclient", "-nw", "-a", "", "+7", str(FILE)]),
        ("code --wait", ["code", "--wait", "--goto", f"{FILE}:7"]),
        ("hx", ["hx", f"{FILE}:7"]),
        ("'/my apps/subl' -w", ["/my apps/subl", "-w", f"{FILE}:7"]),
        ("pycharm", ["pycharm", "--line", "7", str(FILE)]),
        ("something-else", ["something-else", str(FILE)]),
    ],
)
def test_an_editor_is_told_the_line(editor: str, words: list[str]) -> None:
    assert command(editor, FILE, 7) == words


@pytest.mark.parametrize("editor", ["missing-editor", "vim 'unclosed", "''", "  "])
def test_what_is_no_editor_is_told_by_what_it_says(editor: str) -> None:
    with pytest.raises(Failure, match=r"\$EDITOR is "):
        command(editor, FILE, 7)


def test_without_an_editor_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "")
    with pytest.raises(Failure, match="export EDITOR="):
        edit(FILE, 7)
