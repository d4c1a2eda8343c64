"""python -m tests.bench.bulk CLONES: how much faster bulk embedding is with more workers.

CLONES is a folder whose folders are repositories. Each round runs one worker, then several, into new folders; speed is
that from the first chunk to the last, since Ray takes the same seconds to come up however much there is to do. Prints
one JSON object: units/s of each run, the median of the rounds' ratios, and the machine's load before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bulk", description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    repositories = sorted(path for path in options.clones.iterdir() if path.is_dir())
    load = [os.getloadavg()[0]]
    one, several = [], []
    for _ in range(options.rounds):
        one.append(speed(repositories, 1))
        several.append(speed(repositories, options.workers))
        load.append(os.getloadavg()[0])
    ratio = statistics.median(many / single for single, many in zip(one, several, strict=True))
    figures = {"workers": options.workers, "one": one, "several": several, "ratio": round(ratio, 2), "load": load}
    print(json.dumps(figures | {"cores": os.cpu_count()}))


def speed(repositories: list[Path], workers: int) -> float:
    """Units a second."""
    with tempfile.TemporaryDirectory() as out:
        program = [sys.executable, "-m", "export.bulk", *map(str, repositories)]
        command = [*program, "--out", out, "--workers", str(workers)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    figures = json.loads(done.stdout)
    seconds: float = figures["seconds"] - figures["started"]
    units: float = figures["units"]
    return round(units / seconds, 1)


if __name__ == "__main__":
    main()
