"""The data files that came with this version."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DamagedInstallation(OSError):
    """A file that came with this version is not there, or not as it was."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


@contextmanager
def shipped(path: Path) -> Iterator[None]:
    """While that file is read, and made sense of. Raises DamagedInstallation for whatever is wrong with it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        file, why = (error.filename, error.strerror) if isinstance(error, OSError) else (None, None)
        told = f"not as it was shipped ({why or ' '.join(str(error).split())}); install meaning-lsp again"
        raise DamagedInstallation(errno.EIO, told, str(file or path)) from error
