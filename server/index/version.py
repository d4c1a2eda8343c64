"""Which code made a file's units: when it changes, files are read again, one by one, and answer until then.

What changes the form of what is stored, not its content alone, is another SCHEMA_VERSION.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_MAKERS = (_HERE.parent / "parse", _HERE / "words.py", _HERE / "prepare.py", _HERE / "preview.py")


@cache
def units_version() -> str:
    """A hash over the sources that turn a file into units and words."""
    digest = hashlib.blake2b(digest_size=8)
    for maker in _MAKERS:
        for file in sorted(maker.rglob("*")) if maker.is_dir() else [maker]:
            if file.suffix in (".py", ".scm"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
