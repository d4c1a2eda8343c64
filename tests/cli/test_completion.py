"""Completion, in the shells themselves."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from server.cli.arguments import SHELLS, parser
from server.cli.completion import script
from server.parse import KINDS
from tests.editors.programs import found

Complete = Callable[[list[str], Path], set[str]]
COMMANDS = {"search", "index", "status", "doctor", "publish", "mcp", "completion", "nvim"}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("my code", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "file.txt").write_text("")
    for shell in SHELLS:
        (tmp_path / f"script.{shell}").write_text(script(shell, parser()))
    return tmp_path


def bash(line: list[str], here: Path) -> set[str]:
    words = " ".join(f"'{word}'" for word in ["meaning-lsp", *line])
    program = (
        f"source script.bash; COMP_WORDS=({words}); COMP_CWORD={len(line)}; compopt() {{ :; }}; _meaning_lsp;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return lines([found("bash", "install it"), "--norc", "-c", program], here)


def fish(line: list[str], here: Path) -> set[str]:
    typed = " ".join(["meaning-lsp", *line])
    program = f"source script.fish; complete -C '{typed}'"
    offered = lines([found("fish", "apt-get install fish"), "--no-config", "-c", program], here)
    return {each.partition("\t")[0] for each in offered}


def zsh(line: list[str], here: Path) -> set[str]:
    """In a zsh of its own on a pseudo terminal, which alone runs completion."""
    typed = " ".join(["meaning-lsp", *line])
    program = f"""
zmodload zsh/zpty
zpty -b shell {found("zsh", "apt-get install zsh")} -f -i
say() {{ zpty -w shell "$1"; }}
say 'PS1= PS2=; autoload -Uz compinit; compinit -u -D; source script.zsh'
say 'compadd() {{ builtin compadd -O seen "$@"; print -rl -- "${{(@)seen}}" >> offered; builtin compadd "$@"; }}'
say 'rm -f offered done; print -r > ready'
until [[ -e ready ]]; do sleep 0.05; done; rm ready
zpty -w -n shell '{typed}'$'\\t'
say $'\\x15print -r > done'  # which it reads when it has completed
until [[ -e done ]]; do sleep 0.05; done
cat offered
"""
    return lines([found("zsh", "apt-get install zsh"), "-f", "-c", program], here)


def lines(command: list[str], here: Path) -> set[str]:
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60, check=False)
    return {line for line in done.stdout.splitlines() if line}


COMPLETE = pytest.mark.parametrize("complete", [bash, zsh, fish], ids=SHELLS)


@COMPLETE
def test_commands_are_offered(complete: Complete, here: Path) -> None:
    assert complete([""], here) >= COMMANDS
    assert complete(["sea"], here) == {"search"}


@COMPLETE
def test_options_of_the_command_are_offered(complete: Complete, here: Path) -> None:
    offered = complete(["search", "--"], here)
    assert {"--limit", "--lang", "--open", "--json"} <= offered
    assert "--tcp" not in offered
    assert not {"--limit", "--open"} & complete(["index", "--"], here)


@COMPLETE
def test_values_are_offered(complete: Complete, here: Path) -> None:
    assert complete(["search", "--lang", "ru"], here) == {"ruby", "rust"}
    assert complete(["search", "--kind", ""], here) == set(KINDS)
    assert complete(["completion", "z"], here) == {"zsh"}


@COMPLETE
def test_folders_are_offered_where_one_is_meant(complete: Complete, here: Path) -> None:
    offered = {each.rstrip("/").replace("\\", "") for each in complete(["index", "o"], here)}
    assert offered == {"other"}
    assert "file.txt" not in complete(["index", "f"], here)


def test_every_option_stands_in_every_script() -> None:
    [commands] = [each for each in parser()._actions if isinstance(each, argparse._SubParsersAction)]
    assert set(commands.choices) == COMMANDS
    options = {
        option
        for command in commands.choices.values()
        for action in command._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    for shell in SHELLS:
        text = script(shell, parser())
        assert all((f"-l {option[2:]} " if shell == "fish" else option) in text for option in options)
