"""Completion of the command line in bash, zsh and fish: scripts made of the parser itself, so that they know every
option there is, and run without Python."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..terminal import PROGRAM, print_line
from .arguments import parser as whole_parser

FILES, FOLDERS = "files", "folders"

_VALUES: Mapping[str, str] = {"--batch": FILES, "--model": FOLDERS, "--cache-dir": FOLDERS}
"""What follows these options; the filters' values are added to these."""
_PATHS = frozenset({"path", "paths"})
"""Arguments that are folders."""


@dataclass(frozen=True)
class _Option:
    """An option, and what may follow it: words, FILES, FOLDERS, or anything (None), or nothing at all (())."""

    name: str
    help: str
    value: tuple[str, ...] | str | None


@dataclass(frozen=True)
class _Command:
    """A command; the one without a name stands for none."""

    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]
    """What its arguments may be."""
    folders: bool
    """Whether its arguments may be folders."""


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print_line(script(options.shell, whole_parser()).rstrip())
    return 0


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for `bash`, `zsh` or `fish`."""
    return _SCRIPTS[shell](list(_commands(parser)))


def _commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    [sub] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield _command("", "", parser, tuple(sub.choices))
    helps = {choice.dest: choice.help or "" for choice in sub._choices_actions}
    for name, command in sub.choices.items():
        yield _command(name, helps[name], command, ())


def _command(name: str, about: str, parser: argparse.ArgumentParser, words: tuple[str, ...]) -> _Command:
    options, folders = list[_Option](), False
    for action in parser._actions:
        text = (action.help or "").partition(" (")[0]
        long = [option for option in action.option_strings if option.startswith("--")]
        options += [_Option(option, text, _value(option, action)) for option in long]
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            words += tuple(action.choices or ())
            folders = folders or action.dest in _PATHS
    return _Command(name, about, tuple(options), words, folders)


def _value(option: str, action: argparse.Action) -> tuple[str, ...] | str | None:
    if action.nargs == 0:
        return ()
    known: Iterable[str] = action.choices or _filter_values(option)
    return tuple(known) or _VALUES.get(option)


def _filter_values(option: str) -> Iterable[str]:
    from ..parse import KINDS, LANGUAGES

    return {"--lang": sorted(language.name for language in LANGUAGES), "--kind": sorted(KINDS)}.get(option, ())


# -- the shells


def _bash(commands: list[_Command]) -> str:
    values, words, folders = list[str](), list[str](), list[str]()
    for command in commands:
        with_value = [option for option in command.options if option.value != ()]
        values += [f"    '{command.name} {each.name}') {_bash_value(each.value)}; return ;;" for each in with_value]
        names = " ".join([*command.words, *(option.name for option in command.options)])
        words.append(f"    '{command.name}') words='{names}' ;;")
        if command.folders:
            folders.append(f"'{command.name}'")
    named = "|".join(command.name for command in commands if command.name)
    return f"""\
_meaning_lsp() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command='' words='' word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in {named}) command=$word; break ;; esac
  done
  COMPREPLY=()
  case "$command $before" in
{chr(10).join(values)}
  esac
  case "$command" in
{chr(10).join(words)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$command" in
    {"|".join(folders)}) [[ $current == -* ]] || {{ {_bash_value(FOLDERS, "+=")}; }} ;;
  esac
}}
complete -F _meaning_lsp {PROGRAM}
"""


def _bash_value(value: tuple[str, ...] | str | None, sets: str = "=") -> str:
    if value is None:
        return ":"
    if isinstance(value, tuple):
        return f"COMPREPLY{sets}($(compgen -W '{' '.join(value)}' -- \"$current\"))"
    kind = "-f" if value == FILES else "-d"
    return f"local IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY{sets}($(compgen {kind} -- \"$current\"))"


def _zsh(commands: list[_Command]) -> str:
    top, *others = commands
    described = " ".join(f"'{command.name}:{_zsh_text(command.help)}'" for command in others)
    cases = "\n".join(
        f"      {each.name}) _arguments {' '.join([*map(_zsh_option, each.options), *_zsh_arguments(each)])} ;;"
        for each in others
    )
    return f"""\
#compdef {PROGRAM}
_meaning_lsp() {{
  local -a commands=({described})
  local curcontext=$curcontext state line
  _arguments -C {" ".join(map(_zsh_option, top.options))} '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
{cases}
      esac ;;
  esac
}}
if [ "$funcstack[1]" = _meaning_lsp ]; then _meaning_lsp "$@"; else compdef _meaning_lsp {PROGRAM}; fi
"""


def _zsh_option(option: _Option) -> str:
    text = f"{option.name}[{_zsh_text(option.help)}]"
    if option.value == ():
        return f"'*{text}'" if option.name != "--help" else f"'{text}'"
    return f"'*{text}:value:{_zsh_value(option.value)}'"


def _zsh_value(value: tuple[str, ...] | str | None) -> str:
    if isinstance(value, tuple):
        return f"({' '.join(value)})"
    return {FILES: "_files", FOLDERS: "_path_files -/", None: " "}[value]


def _zsh_arguments(command: _Command) -> Iterator[str]:
    if command.words:
        yield f"'*:argument:({' '.join(command.words)})'"
    elif command.folders:
        yield "'*:folder:_path_files -/'"


def _zsh_text(text: str) -> str:
    return text.replace("'", "").replace(":", "\\:").replace("[", "(").replace("]", ")").replace("%%", "%")


def _fish(commands: list[_Command]) -> str:
    names = " ".join(command.name for command in commands if command.name)
    lines = [f"complete -c {PROGRAM} -f"]
    for command in commands:
        where = (
            f"__fish_seen_subcommand_from {command.name}"
            if command.name
            else f"not __fish_seen_subcommand_from {names}"
        )
        begin = f"complete -c {PROGRAM} -n '{where}'"
        if command.name:
            top = f"not __fish_seen_subcommand_from {names}"
            lines.append(f"complete -c {PROGRAM} -n '{top}' -a {command.name} -d '{_fish_text(command.help)}'")
        lines += [
            f"{begin} -l {option.name[2:]} {_fish_value(option.value)}-d '{_fish_text(option.help)}'"
            for option in command.options
        ]
        if command.name and command.words:
            lines.append(f"{begin} -a '{' '.join(command.words)}'")
        if command.folders:
            lines.append(f"{begin} -a '(__fish_complete_directories (commandline -ct))'")
    return "\n".join(lines) + "\n"


def _fish_value(value: tuple[str, ...] | str | None) -> str:
    if value == ():
        return ""
    if isinstance(value, tuple):
        return f"-x -a '{' '.join(value)}' "
    return {FILES: "-r -F ", FOLDERS: "-x -a '(__fish_complete_directories (commandline -ct))' ", None: "-x "}[value]


def _fish_text(text: str) -> str:
    return text.replace("'", "").replace("%%", "%")


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
