"""Patterns of paths, as a query has them.

Known before anything is searched, and so apart from what needs numpy: a command's processes are forks, which are sound
and cheap as long as it has one thread, and numpy begins others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pathspec import GitIgnoreSpec

_GLOB = re.compile(r"[*?\[]")


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test of relative paths: True where one of the patterns matches.

    A pattern with `*`, `?` or `[` is a glob as in .gitignore (`*.py` at any depth, `src/**/test_*`). Any other has to
    begin at a part of the path, in any case: `http/` the folder, `retry` also retry_policy.py. Raises ValueError for a
    glob that is none.
    """
    globs = [pattern for pattern in patterns if _GLOB.search(pattern)]
    plain = [pattern.lower() for pattern in patterns if not _GLOB.search(pattern)]
    try:
        spec = GitIgnoreSpec.from_lines(globs)
    except (ValueError, re.error) as error:
        raise ValueError(f"not a glob ({error})") from None

    def matches(path: str) -> bool:
        lowered = "/" + path.lower()
        return any("/" + start.lstrip("/") in lowered for start in plain) or spec.match_file(path)

    return matches
