"""Incremental equals fresh, for as many steps as there is time for: the long run of tests/index/test_incremental.py.

    python -m tests.bench.fuzz [--steps N] [--seed N]

Prints one JSON object; a failure is made small first, and told as the steps that lead to it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.index.machine import Workspace

STEPS = 10_000
EXAMPLE_STEPS = 50
"""Of one workspace; then another is begun with."""


def main() -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fuzz", description="incremental equals fresh")
    parser.add_argument("--steps", type=int, default=STEPS, help="what happens in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="to see the same again")
    options = parser.parse_args()
    start = time.monotonic()
    failures = _run(options.steps, options.seed)
    seconds = round(time.monotonic() - start, 1)
    counts = dict(sorted(Workspace.happened.items()))
    told = {"seed": options.seed, "seconds": seconds, **counts}
    print(json.dumps({**told, "failures": failures}, indent=2))
    return int(bool(failures))


def _run(steps: int, chosen: int) -> list[str]:
    many = settings(
        max_examples=max(1, steps // EXAMPLE_STEPS),
        stateful_step_count=EXAMPLE_STEPS,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(chosen)(Workspace), settings=many)
    except BaseException as error:
        return ["".join(traceback.format_exception(error))]
    return []


if __name__ == "__main__":
    sys.exit(main())
