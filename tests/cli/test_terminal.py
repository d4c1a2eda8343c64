"""`search` in a real terminal, and in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.agents.conftest import write

pytest.importorskip("pty", reason="no pseudo terminals there")

from .terminal import HOUSE, PATIENCE, Seen, in_terminal

Ask = Callable[..., Seen]
ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[\d;]*m")
AFTER_PROGRESS = re.compile(r"(?s)^.*\r\x1b\[K")
EDITOR = """#!/bin/sh
printf '%s\\n' "$@" > "$SEEN"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "app")


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    editor = tmp_path / "my bin" / "vim"
    editor.parent.mkdir()
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    names = {"EDITOR": f"'{editor}' -n", "VISUAL": "", "SEEN": str(tmp_path / "seen"), "NO_COLOR": ""}
    return {**names, "MEANING_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def ask(root: Path, environment: Mapping[str, str]) -> Ask:
    def ask(*arguments: object, typed: str = "", width: int = 80, **more: str) -> Seen:
        return in_terminal(
            "search", *arguments, cwd=root, environment={**environment, **more}, typed=typed, width=width
        )

    return ask


def piped(*arguments: object, cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "server", "search", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(HOUSE), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def opened(environment: Mapping[str, str]) -> list[str]:
    return Path(environment["SEEN"]).read_text().splitlines()


def test_a_terminal_shows_code_in_colours(ask: Ask) -> None:
    seen = ask("split a cron expression", "--limit", 1)
    assert seen.status == 0
    answer = AFTER_PROGRESS.sub("", seen.text)
    assert f"{ESCAPE}[34mdef{ESCAPE}[m parse_cron(text):" in answer
    assert COLOUR.sub("", answer) == (
        "time/cron.py:1  function parse_cron\n"
        "     1 def parse_cron(text):\n"
        '     2     """Split a cron expression into its five fields."""\n'
        "     3     return text.split()\n"
    )


@pytest.mark.parametrize("how", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_the_code_without(ask: Ask, how: dict[str, str]) -> None:
    ask("cron")  # so that there is no progress to show
    seen = ask("split a cron expression", "--limit", 1, **how)
    assert ESCAPE not in seen.text
    assert "     1 def parse_cron(text):\n" in seen.text


def test_a_narrow_terminal_breaks_no_line_of_code(ask: Ask) -> None:
    ask("cron")
    lines = COLOUR.sub("", ask("split a cron expression", "--limit", 1, width=30).text).splitlines()
    assert lines[2] == '     2     """Split a cron ex…'


@pytest.mark.parametrize("width", [10, 25, 40, 120])
def test_progress_stays_in_one_line_and_goes(ask: Ask, width: int) -> None:
    progress = ask("cron", "--limit", 1, width=width).text.partition("\r\x1b[K")[0]
    assert progress.startswith("\rindexing ")
    assert "\n" not in progress
    if width > len("indexing  0/3 files"):
        assert all(len(line) < width for line in progress.split("\r"))


def test_a_pipe_gets_two_plain_lines_a_hit(root: Path, environment: Mapping[str, str]) -> None:
    done = piped("split a cron expression", "--limit", 1, cwd=root, environment=environment)
    assert (done.stdout, done.stderr) == ("time/cron.py:1-3  function parse_cron\n    def parse_cron(text)\n", "")
    coloured = piped("split a cron expression", "--color", "always", cwd=root, environment=environment)
    assert f"{ESCAPE}[34mdef" in coloured.stdout


@pytest.mark.parametrize(("typed", "chosen"), [("\n", 0), ("2\n", 1), ("n\n", None), ("99\n", None), ("\x04", None)])
def test_open_asks_which_and_opens_it_at_its_line(
    ask: Ask, root: Path, environment: Mapping[str, str], typed: str, chosen: int | None
) -> None:
    seen = ask("when is a schedule due", "--lang", "python", "--kind", "function", "--open", typed=typed)
    assert seen.status == 0
    places = re.findall(r"(?m)^\d\. (.+?):(\d+) ", COLOUR.sub("", AFTER_PROGRESS.sub("", seen.text)))
    assert len(places) == 2
    if chosen is None:
        assert not Path(environment["SEEN"]).exists()
    else:
        path, line = places[chosen]
        assert opened(environment) == ["-n", f"+{line}", str(root / path)]


def test_open_takes_the_first_where_nobody_can_be_asked(root: Path, environment: Mapping[str, str]) -> None:
    done = piped("split a cron expression", "--open", cwd=root, environment=environment)
    assert done.returncode == 0
    assert opened(environment) == ["-n", "+1", str(root / "time/cron.py")]


def test_what_keeps_it_from_opening_is_told_in_a_line(root: Path, environment: Mapping[str, str]) -> None:
    nothing = {**environment, "EDITOR": ""}
    for more, query, status in ((nothing, "cron", 1), ({**nothing, "VISUAL": "no-such-editor -w"}, "cron", 1)):
        done = piped(query, "--open", cwd=root, environment=more)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
        assert "EDITOR" in done.stderr
    done = piped("cron", "--open", "--json", cwd=root, environment=environment)
    assert (done.returncode, done.stdout) == (2, "")


def test_hostile_names_and_code_give_the_terminal_no_commands(ask: Ask, root: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b5m\u202e"
    write(root, {f"pan\x1b[31m{evil}.py": f"def turn_pancake(pan):\n    '''Turn a pancake. {evil}'''\n"})
    seen = COLOUR.sub("", AFTER_PROGRESS.sub("", ask("turn a pancake", "--limit", 1).text))
    assert "turn_pancake" in seen
    assert all(char.isprintable() or char == "\n" for char in seen), ascii(seen)


def test_a_question_may_look_like_an_option(root: Path, environment: Mapping[str, str]) -> None:
    done = piped("--limit", 1, "--", "--parse cron", root, cwd=root, environment=environment)
    assert done.stdout.startswith("time/cron.py:1-3 ")
