"""How answers look in a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.cli.show import LEAST_WIDTH, View, wants_colour
from server.search.answer import Answer, Hit

SGR = re.compile(r"\x1b\[[\d;]*m")


def hit(path: str, start: int, end: int, name: str = "f", container: str = "", preview: str = "") -> Hit:
    return Hit(path, start, end, (start, 0, 0), "", name, container, "function", "python", 1.0, preview)


def answer(*hits: Hit, indexed: int = 5) -> Answer:
    return Answer(hits, 0, indexed, "m", 1.0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text('def parse(text):\n\t"""Split it."""\n\treturn text.split(",", 2)  # twice\n\n\n')
    return tmp_path


def test_a_hit_is_a_place_a_name_and_its_first_lines(root: Path) -> None:
    shown = View(root, colour=False, width=80).text(answer(hit("a.py", 0, 2, "parse", "Reader")))
    assert shown == (
        "a.py:1  function Reader.parse\n"
        "     1 def parse(text):\n"
        '     2     """Split it."""\n'
        '     3     return text.split(",", 2)  # twice'
    )


def test_colours_change_no_character(root: Path) -> None:
    found = answer(hit("a.py", 0, 4, "parse"), hit("gone.py", 0, 3, preview="def gone()"))
    coloured, plain = (View(root, colour=colour, width=80).text(found) for colour in (True, False))
    assert SGR.sub("", coloured) == plain
    assert "\x1b[34mdef\x1b[m" in coloured
    assert '\x1b[33m"""Split it."""\x1b[m' in coloured
    assert "\x1b[32m# twice\x1b[m" in coloured
    assert "\x1b[35m2\x1b[m" in coloured


def test_a_place_is_told_from_where_one_stands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "inner").mkdir()
    monkeypatch.chdir(root / "inner")
    assert View(root, False, 80).text(answer(hit("a.py", 0, 0))).startswith("../a.py:1 ")
    monkeypatch.chdir("/")
    assert View(root, False, 80).text(answer(hit("a.py", 0, 0))).startswith(f"{str(root)[1:]}/a.py:1 ")


@pytest.mark.parametrize("width", [1, LEAST_WIDTH, 25, 40])
def test_code_keeps_to_the_width(root: Path, width: int) -> None:
    long = f"def f(): return '{'長い' * 50}' + '" + "e\u0301" * 50 + "'\n" + "x" * 100_000 + "\n"
    (root / "a.py").write_text(long, "utf-8")
    for colour in (True, False):
        lines = SGR.sub("", View(root, colour, width).text(answer(hit("a.py", 0, 1)))).split("\n")[1:]
        assert len(lines) == 2
        assert all(columns(line) <= max(width, LEAST_WIDTH) for line in lines)
        assert all(line.endswith("…") for line in lines)


def columns(line: str) -> int:
    return sum(0 if char == "\u0301" else 2 if char in "長い" else 1 for char in line)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202eevil\x00\x7f"


def test_nothing_of_the_workspace_reaches_the_terminal_as_a_command(root: Path) -> None:
    path = f"{HOSTILE.replace(chr(0), '')}.py"
    (root / path).write_text(f"def f():\n    return '{HOSTILE}'\n\f\v\x85\u2028# {HOSTILE}\n".replace("\0", "\\0"))
    found = answer(hit(path, 0, 2, HOSTILE, HOSTILE), hit("gone.py", 0, 1, preview=HOSTILE))
    for colour in (True, False):
        shown = View(root, colour, 500).text(found, numbered=True)
        assert all(char.isprintable() or char == "\n" for char in SGR.sub("", shown))
        assert "evil" in shown


def test_a_file_that_became_a_link_to_elsewhere_is_not_shown(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").symlink_to(root / "a.py")
    shown = View(work, False, 80).text(answer(hit("a.py", 0, 2, preview="the preview")))
    assert shown.endswith("\n    the preview")


def test_nothing_is_told_as_such() -> None:
    assert View(Path(), False, 80).text(answer()) == "nothing found"
    assert View(Path(), False, 80).text(answer(indexed=0)) == "nothing found: the index is empty"


def test_hits_are_numbered_to_be_chosen_from(root: Path) -> None:
    shown = View(root, False, 80).text(answer(hit("a.py", 0, 0), hit("a.py", 2, 2)), numbered=True)
    assert shown.startswith("1. a.py:1 ")
    assert "\n\n2. a.py:3 " in shown


@pytest.mark.parametrize(
    ("terminal", "environment", "choice", "wanted"),
    [
        (True, {}, "auto", True),
        (False, {}, "auto", False),
        (True, {"NO_COLOR": "1"}, "auto", False),
        (True, {"NO_COLOR": ""}, "auto", True),
        (True, {"TERM": "dumb"}, "auto", False),
        (False, {"NO_COLOR": "1"}, "always", True),
        (True, {}, "never", False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    terminal: bool, environment: dict[str, str], choice: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    assert wants_colour(choice) == wanted
