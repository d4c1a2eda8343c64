"""`meaning-lsp index`: bring the index of a folder up to date, and tell what that took."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from dataclasses import asdict

from ..terminal import ProgressBar, complain, print_line
from .workspace import folder, open_index, told_errors, update, workers


def run(options: argparse.Namespace) -> int:
    """Update the index, and have the vectors of the refining model computed, too."""
    root = folder(options.path)
    with told_errors(), workers(root, options) as some, closing(open_index(root, options)) as index:
        from ..search.tiers import fill

        report = update(index, some)
        if left := fill(index, some, ProgressBar("refining", "texts")):
            why = "another process is at it, or files changed meanwhile"
            complain(f"{left} texts have no vector of the refining model: {why}", 0)
        if options.json:
            print_line(json.dumps(asdict(report)))
        else:
            print_line(
                f"{report.files} files, {report.units} units; {report.embedded} embedded, "
                + (f"{report.fetched} fetched, " if report.fetched else "")
                + f"{report.reused} reused, {report.removed} files removed in {report.seconds:.1f} s"
                + (f"; {report.pending} files are left to another process" if report.pending else "")
            )
    return 0
