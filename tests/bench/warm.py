"""Searches inside of one process, the index warm, as one JSON object.

    python -m tests.bench.warm ROOT QUESTIONS CACHE [MODEL]

QUESTIONS is a file, one a line. `first_answer_s` counts from the process's first line; `resident_mb` is read after the
last answer, `imports_mb` before the index is opened.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from .semble_warm import resident_mb


def main() -> None:
    """Measure and print."""
    begin = time.perf_counter()
    from server.embed.bundle import Bundle, resolve_model
    from server.index.index import Index
    from server.search.query import parse_query
    from server.search.searcher import Searcher
    from server.settings import Settings

    root, questions, cache, *model = sys.argv[1:]
    imported = resident_mb()
    settings = replace(Settings(), cache_dir=Path(cache), model=model[0] if model else Settings().model)
    with closing(Index.open(Path(root), Bundle.load(resolve_model(settings.model)), settings)) as index:
        searcher = Searcher(index)
        opened = time.perf_counter()
        took = []
        for question in Path(questions).read_text("utf-8").splitlines():
            start = time.perf_counter()
            searcher.search(parse_query(question))
            took.append((time.perf_counter() - start) * 1000)
        figures = {
            "open_s": opened - begin,
            "first_answer_s": opened - begin + took[0] / 1000,
            "took_ms": took,
            "imports_mb": imported,
            "resident_mb": resident_mb(),
            "units": index.status().units,
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
