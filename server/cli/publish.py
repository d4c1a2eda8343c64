"""`meaning-lsp publish`: send a workspace's index to the organisation's, or take it out."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from ..settings import Settings
from ..terminal import Failure, ProgressBar, UsageError, note, print_line
from .workspace import folder, open_index, settings_of, told_errors, update, workers


def run(options: argparse.Namespace) -> int:
    """Publish a folder, or remove what was published."""
    settings = settings_of(options)
    if not settings.org_index:
        raise UsageError("where to? name the organisation's PostgreSQL by MEANING_ORG_INDEX=postgresql://host/database")
    with told_errors():
        return _remove(options, settings) if options.remove else _publish(folder(options.path), options, settings)


def _publish(root: Path, options: argparse.Namespace, settings: Settings) -> int:
    from ..org.names import NotAName, checked_name, default_name
    from ..org.publish import publish

    try:
        name = checked_name(options.name or default_name(root))
    except NotAName as error:
        raise UsageError(str(error)) from None
    with workers(root, options) as some, closing(open_index(root, options)) as index:
        report = update(index, some)
        if report.pending:
            raise Failure(f"{root}: another process updates the index, {report.pending} files are left; try again then")
        done = publish(index, settings.org_index, name, ProgressBar("publishing"), note)
    if options.json:
        print_line(json.dumps(asdict(done), ensure_ascii=False))
    else:
        print_line(
            f"{done.name}: {done.files} files, {done.units} units; {done.sent} files sent, {done.removed} removed"
            f" in {done.seconds:.1f} s"
        )
    return 0


def _remove(options: argparse.Namespace, settings: Settings) -> int:
    from ..org.publish import unpublish

    found = unpublish(settings.org_index, options.remove)
    if options.json:
        print_line(json.dumps({"name": options.remove, "removed": found}, ensure_ascii=False))
    elif found:
        print_line(f"{options.remove}: removed")
    if not found:
        raise Failure(f"{options.remove}: not published there")
    return 0
