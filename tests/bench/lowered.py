"""The server with its limits lowered, so that a small tree makes it do what a large one does: worker processes,
many transactions, vectors that are saved and compacted again and again.

    python -m tests.bench.lowered …     as python -m server
"""

from __future__ import annotations

import sys

from server.__main__ import main
from server.index import plan, vectors, workers

vectors.TAIL_LIMIT = 300
plan.BATCH_UNITS = 150
workers.MUCH = workers.WORTH_MORE = 50_000
workers._CHUNK_BYTES = 10_000

if __name__ == "__main__":
    sys.exit(main())
