"""What is measured beside each other: this project, semble, and ripgrep for the floor.

Semble's model is not fetched: `semble_model` makes one of its shape, so that its speed is true, and what it finds is
not. Its quality, and ripgrep's, is what its authors published.
"""

from __future__ import annotations

import compileall
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from .processes import Cost, run

HOUSE = Path(__file__).parents[2]
LIMIT = 10
"""Hits that are asked for."""

SEMBLE = "semble==0.7.0"
_TRAINING_SUFFIXES = (".py", ".ts", ".go", ".java", ".rs", ".c", ".rb", ".php", ".md")
_TRAINING_FILES = 3_000
_RIPGREP_WORDS = 4
"""Of a question, the longest: any of them on a line is a hit."""


class Unavailable(Exception):
    """A peer cannot be had here, and why."""


@dataclass(frozen=True)
class Quality:
    """NDCG@10 and where the figure is from."""

    ndcg: float
    source: str


class Peer(Protocol):
    """A tool that searches a folder. Every method may raise CommandFailed."""

    name: str
    quality: Quality | None
    index: Path
    """The folder of everything that it keeps; deleted, it begins from nothing."""

    @property
    def version(self) -> str:
        """As it tells."""

    def search(self, root: Path, question: str) -> Cost:
        """One search, the whole process, what is kept of earlier ones brought up to date first."""

    def warm(self, root: Path, questions: Path) -> dict[str, Any] | None:
        """What warm.py prints; None for a tool that has no process to stay in."""


@dataclass
class Ours:
    """This project's command line."""

    index: Path
    model: str = "default"
    name: str = "meaning-lsp"
    quality: Quality | None = None

    @cached_property
    def version(self) -> str:
        """Compiles what pip would have compiled when it installed it."""
        compileall.compile_dir(HOUSE / "server", quiet=1)
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=HOUSE, capture_output=True, text=True, check=False
        ).stdout.strip()

    def search(self, root: Path, question: str) -> Cost:
        command = [sys.executable, "-m", "server", "search", question, str(root), "--limit", str(LIMIT), "--json"]
        return run([*command, "--model", self.model, "--cache-dir", str(self.index)], cwd=HOUSE)

    def warm(self, root: Path, questions: Path) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.bench.warm", str(root), str(questions), str(self.index), self.model]
        return dict(json.loads(run(command, cwd=HOUSE).output))


@dataclass
class Semble:
    """MinishLab's semble in an environment of its own."""

    index: Path
    home: Path
    """Where its environment and the model lie, made when they are missing."""
    texts: Sequence[Path]
    """Folders of text that the model's vocabulary is made from."""
    name: str = "semble"
    quality: Quality | None = None

    @property
    def _python(self) -> Path:
        return self.home / "semble" / "bin" / "python"

    @property
    def _model(self) -> Path:
        return self.home / "semble-model"

    @cached_property
    def version(self) -> str:
        """Makes what is missing. Raises Unavailable."""
        try:
            if not self._python.exists():
                venv.create(self.home / "semble", with_pip=True, clear=True)
            if not self._python.with_name("semble").exists():
                run([str(self._python), "-m", "pip", "install", "--quiet", SEMBLE])
            if not self._model.exists():
                texts = [str(file) for folder in self.texts for file in _texts(folder)][:_TRAINING_FILES]
                run([str(self._python), str(Path(__file__).with_name("semble_model.py")), str(self._model), *texts])
            return run([str(self._python.with_name("semble")), "--version"]).output.strip()
        except Exception as error:
            raise Unavailable(f"semble cannot be had here: {error}") from None

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "SEMBLE_MODEL_NAME": str(self._model),
            "SEMBLE_CACHE_LOCATION": str(self.index.resolve()),
            "HF_HUB_OFFLINE": "1",
        }

    def search(self, root: Path, question: str) -> Cost:
        command = [str(self._python.with_name("semble")), "search", question, str(root), "--top-k", str(LIMIT)]
        return run(command, environment=self._environment)

    def warm(self, root: Path, questions: Path) -> dict[str, Any]:
        script = Path(__file__).with_name("semble_warm.py")
        command = [str(self._python), str(script), str(root), str(questions)]
        return dict(json.loads(run(command, environment=self._environment).output))


@dataclass
class Ripgrep:
    """Any line with one of the question's words: reading every file is the least that a search without index does."""

    index: Path
    name: str = "ripgrep"
    quality: Quality | None = None

    @cached_property
    def version(self) -> str:
        """Raises Unavailable."""
        if not shutil.which("rg"):
            raise Unavailable("ripgrep cannot be had here: there is no `rg` (Debian's package ripgrep)")
        return run(["rg", "--version"]).output.splitlines()[0]

    def search(self, root: Path, question: str) -> Cost:
        words = sorted(re.findall(r"\w+", question), key=len, reverse=True)[:_RIPGREP_WORDS]
        return run(["rg", "--ignore-case", "--count", "--regexp", "|".join(words), str(root)], fine=(0, 1))

    def warm(self, root: Path, questions: Path) -> None:
        return None


def available(peers: Sequence[Peer], say: Callable[[str], None]) -> tuple[list[Peer], dict[str, str]]:
    """Those that can be had, and of each its version or why it cannot be."""
    found, versions = [], {}
    for peer in peers:
        versions[peer.name], there = _version(peer)
        if there:
            found.append(peer)
        else:
            say(versions[peer.name])
    return found, versions


def _version(peer: Peer) -> tuple[str, bool]:
    try:
        return peer.version, True
    except Unavailable as error:
        return str(error), False


def _texts(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in _TRAINING_SUFFIXES and file.is_file())
