"""What the commands share: the folder that was named, its index, and an update of it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..settings import Settings, user_path
from ..terminal import Failure, ProgressBar, UsageError, complain

if TYPE_CHECKING:
    from ..embed.bundle import Bundle
    from ..index.index import Index
    from ..index.report import IndexReport
    from ..index.workers import Workers

PATIENCE = 60.0
"""Seconds that a command waits while another process updates the index, before it goes on with what is there."""

MAX_WORKERS = 8
"""Processes that prepare files; the one that writes could not keep up with more."""


def folder(path: str) -> Path:
    """The folder that was named, links resolved. Raises Failure."""
    root = Path(path)
    try:
        if not root.exists():
            raise Failure(f"{path}: no such folder")
        if not root.is_dir():
            raise Failure(f"{path}: a file; give the folder that holds it, and --path to search in it alone")
        next(os.scandir(root), None)
        return root.resolve()
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def open_index(root: Path, options: argparse.Namespace) -> Index:
    """The folder's index. Raises UsageError, ModelError or StoreError."""
    from ..index.index import Index

    settings = settings_of(options)
    return Index.open(root, bundle_of(settings.model), settings)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings, with what was typed over the environment."""
    given = {"cache_dir": options.cache_dir and user_path(options.cache_dir), "model": options.model}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def bundle_of(model: str) -> Bundle:
    """The bundle of a model. Raises UsageError for a name that names none, ModelError for one that is not sound."""
    from ..embed.bundle import Bundle, BundleError, resolve_model

    try:
        found = resolve_model(model)
    except BundleError as error:
        raise UsageError(str(error)) from None
    return Bundle.load(found)


def update(index: Index, some: Workers) -> IndexReport:
    """Bring the index up to date, with a progress bar, and tell in one line what was wrong. Raises as its update."""
    report = index.update(ProgressBar(), workers=some, patience=PATIENCE)
    if problems := index.problems:
        more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
        complain(f"{problems[-1]}{more}", 0)
    return report


def workers(root: Path, options: argparse.Namespace) -> Workers:
    """The processes that prepare files. Where there is no index yet they are on their way at once, so that they come
    to be while all else is imported."""
    from ..index.folder import is_indexed
    from ..index.workers import Workers

    some = Workers(min(os.cpu_count() or 1, MAX_WORKERS))
    if not is_indexed(settings_of(options).cache_dir.absolute(), root):
        some.begin()
    return some


class told_errors:  # noqa: N801  (a context manager that reads like a function)
    """Turns the errors that parts of the server raise for the user into a Failure."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return  # Ctrl-C may have come in the middle of the very imports that follow

        from ..embed.bundle import ModelError
        from ..index.database import StoreError
        from ..org.connect import OrgError

        if isinstance(error, (ModelError, StoreError, OrgError)):
            raise Failure(str(error)) from None
