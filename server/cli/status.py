"""`meaning-lsp status`: what the index of a folder holds."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..terminal import PROGRAM, print_line
from .workspace import bundle_of, folder, open_index, settings_of, told_errors

if TYPE_CHECKING:
    from ..index.index import Status


def run(options: argparse.Namespace) -> int:
    """Tell it; no index is made by looking."""
    root = folder(options.path)
    with told_errors():
        status = asdict(_status_of(root, options))
        if options.json:
            print_line(json.dumps(status, ensure_ascii=False))
        else:
            for name, value in status.items():
                print_line(f"{name:9} {'; '.join(value) or 'none' if name == 'problems' else value}")
    return 0


def _status_of(root: Path, options: argparse.Namespace) -> Status:
    from ..index.database import DATABASE
    from ..index.folder import index_folder
    from ..index.index import Status

    settings = settings_of(options)
    index_at = index_folder(settings.cache_dir.absolute(), root)
    if not (index_at / DATABASE).exists():
        nothing = f"no index yet: run `{PROGRAM} index {root}`, or search"
        return Status(str(root), str(index_at), 0, 0, 0, bundle_of(settings.model).id, (nothing,))
    with closing(open_index(root, options)) as index:
        return index.status()
