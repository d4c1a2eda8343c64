"""python -m export.bulk REPOSITORY … --out DIR: embed the code of many repositories. Goes on where it was stopped.

Writes Parquet files (`export/bulk/parts.py` says what is in them) and, if MEANING_SHARED_CACHE names one, fills the
shared cache, so that whoever indexes this code has nothing to embed. At the end one JSON object tells what was done.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from server.embed.bundle import Bundle, resolve_model
from server.settings import DEVICES, SettingError, Settings

from ..command import told
from ..errors import ExportError
from ..journal import say
from .job import Job, repositories

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.bulk", description=__doc__)
    add = parser.add_argument
    add("repositories", nargs="*", type=Path, metavar="REPOSITORY", help="a folder of code")
    add("--list", type=Path, action="append", default=[], metavar="FILE", help="a file of such folders, one a line")
    add("--clones", type=Path, action="append", default=[], metavar="FOLDER", help="every clone in this folder")
    add("--out", type=Path, required=True, help="the folder for the Parquet files")
    add("--model", help="`default` or a bundle's folder; also MEANING_MODEL")
    add("--device", choices=DEVICES, help="what the model runs on; also MEANING_DEVICE")
    add("--workers", type=int, help="how many models run at once (default: one a core, or one a card)")
    add(
        "--address", default="local", help="a Ray cluster's, all of whose machines see the same folders (default: none)"
    )
    options = parser.parse_args(arguments)
    if options.workers is not None and options.workers < 1:
        parser.error("--workers: at least 1")
    try:
        return told("export.bulk", lambda: run(options), to_install="run `pip install -e '.[cpu,bulk]'` in the clone")
    except KeyboardInterrupt:
        say("export.bulk: stopped; the same command goes on from here")
        return INTERRUPTED


def run(options: argparse.Namespace) -> int:
    """Embeds; 1 if a repository is not whole."""
    from .run import run as run_job

    found = repositories(options.repositories, options.list, options.clones)
    if not found:
        raise ExportError("no repositories: give folders, --list or --clones")
    outcome = run_job(_job(options), found, options.workers, options.address)
    if outcome.failed:
        say(f"{outcome.failed} of {len(found)} repositories are not whole; the same command tries them again")
    print(json.dumps(asdict(outcome)), file=sys.stdout)  # noqa: T201
    return 1 if outcome.failed else 0


def _job(options: argparse.Namespace) -> Job:
    try:
        settings = Settings(threads=1)
        given = {"model": options.model, "device": options.device}
        settings = replace(settings, **{name: value for name, value in given.items() if value})
    except SettingError as error:
        raise ExportError(str(error)) from None
    bundle = Bundle.load(resolve_model(settings.model))
    return Job(options.out.resolve(), bundle.folder.resolve(), bundle.fingerprint, settings)


if __name__ == "__main__":
    sys.exit(main())
