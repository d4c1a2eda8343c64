"""Opening a hit in the user's editor, at its line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path, PurePath

from ..terminal import Failure

_PLUS_LINE = frozenset(
    "ed emacs emacsclient ex gedit gvim jed joe kak mcedit mg micro mvim nano ne nvim pico vi view vim vis".split()
)
_GOTO = frozenset("code code-insiders codium vscodium cursor windsurf positron".split())
_COLON = frozenset("hx helix zed zeditor subl sublime_text lapce textadept".split())
_LINE_OPTION = frozenset(
    "idea pycharm webstorm phpstorm goland clion rubymine rider rustrover kate kwrite mate".split()
)


def command(editor: str, file: Path, line: int) -> list[str]:
    """What runs `editor` (a program, maybe with arguments, as in $EDITOR) on an absolute file at a line from 1.

    An editor that is not known opens the file. Raises Failure for a text that is no command.
    """
    try:
        words = shlex.split(editor, posix=os.name != "nt")
    except ValueError as error:
        raise Failure(f"$EDITOR is {editor!r}, which is no command ({error})") from None
    if not words or shutil.which(words[0]) is None:
        raise Failure(f"$EDITOR is {editor!r}, which is not found; set it to your editor")
    return [*words, *_place(PurePath(words[0]).stem.lower(), str(file), line)]


def _place(program: str, file: str, line: int) -> list[str]:
    if program in _PLUS_LINE:
        return [f"+{line}", file]
    if program in _GOTO:
        return ["--goto", f"{file}:{line}"]
    if program in _COLON:
        return [f"{file}:{line}"]
    return ["--line", str(line), file] if program in _LINE_OPTION else [file]


def edit(file: Path, line: int) -> int:
    """Open a file in $VISUAL or $EDITOR; the editor takes this process's place where that can be. Raises Failure."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise Failure("no editor is known; say which: export EDITOR=vim")
    words = command(editor, file, line)
    sys.stdout.flush()
    if os.name != "nt":
        os.execvp(words[0], words)  # Ctrl-C is the editor's from here on
    return subprocess.run(words, check=False).returncode
