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

from .semble_warm import resident_mb, searches


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
        opened_s = time.perf_counter() - begin
        figures = searches(questions, lambda question: searcher.search(parse_query(question)), opened_s)
        print(json.dumps(figures | {"imports_mb": imported, "units": index.status().units}))


if __name__ == "__main__":
    main()
