"""What the README says of settings, options and targets is what the code has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from server.settings import Settings, with_values

from .test_imports import ROOT

README = (ROOT / "README.md").read_text("utf-8")
SETTINGS = README.partition("\n## Settings\n")[2].partition("\n#")[0]
ROWS = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", SETTINGS, re.MULTILINE)
OF_THE_MACHINE = {"cacheDir", "threads"}
"""Their defaults are told in words."""


def test_the_table_names_every_setting_in_order() -> None:
    assert [name for name, _, _ in ROWS] == [camel(field.name) for field in fields(Settings)]


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


@pytest.mark.parametrize(("name", "default"), [row[:2] for row in ROWS if row[0] not in OF_THE_MACHINE])
def test_the_table_tells_the_default(name: str, default: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEANING_MODEL", raising=False)
    settings, problems = with_values(Settings(limit=99), {name: json.loads(default.strip("`"))})
    field = next(field.name for field in fields(Settings) if camel(field.name) == name)
    assert not problems
    assert getattr(settings, field) == getattr(Settings(), field)


def test_the_demo_shows_what_it_prints(tmp_path: Path) -> None:
    command, *lines = re.findall(r"\n```\n\$ (.+?)\n```\n", README, re.DOTALL)[0].splitlines()
    shown = {(line.split(":")[0], line.split()[-1]) for line in lines[::2]}
    question = re.search(r'"(.+?)"', command)
    assert question
    assert f"QUESTION ?= {question[1]}\n" in (ROOT / "Makefile").read_text("utf-8")
    program = (sys.executable, "-m", "server", "search", question[1], "server", "--limit", "10")
    done = subprocess.run(
        [*program, "--cache-dir", str(tmp_path)], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    )
    printed = [(line.split(":")[0], line.split()[-1]) for line in done.stdout.splitlines()[::2]]
    assert printed[0] in shown
    assert shown <= set(printed)


def test_every_option_of_the_text_is_one_of_a_command_line() -> None:
    programs = [
        ROOT / "server" / "cli" / "arguments.py",
        *ROOT.glob("export/*.py"),
        *ROOT.glob("export/*/__main__.py"),
        *ROOT.glob("tests/bench/*.py"),
    ]
    source = "".join(program.read_text("utf-8") for program in programs)
    options = set(re.findall(r"--[a-z][a-z-]+", README))
    assert options <= {"--help"} | set(re.findall(r'"(--[a-z-]+)"', source))


def test_every_target_of_the_text_is_one_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"`?make ([a-z-]+)", README))
    assert {"demo", "test"} <= targets <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) | {"a", "the"}


def test_every_folder_of_the_table_is_there() -> None:
    folders = re.findall(r"^\| `((?:server|export)[\w/]*)` \|", README, re.MULTILINE)
    assert len(folders) == 11
    assert all(Path(ROOT, folder).is_dir() for folder in folders)
