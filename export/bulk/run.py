"""A run: on a Ray of its own, on this machine, or on a cluster's."""

from __future__ import annotations

import json
import logging
import os
import pickle
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..errors import ExportError, one_line
from ..journal import TELL_SECONDS, clock, say
from .job import Job, Repository
from .parts import Parts, replacing
from .worker import Parser, Row, Vectoriser, Worker, listed

CLONE = str(Path(__file__).parents[2])
"""Where Ray's processes find this code."""

RETRIES = 2
"""Of a chunk whose process ended: for want of memory, say."""

OBJECT_STORE_BYTES = 256 << 20
"""For what processes hand to each other, on a Ray of our own; chunks are small."""


@dataclass
class Outcome:
    """What came of a run."""

    repositories: int = 0
    units: int = 0
    embedded: int = 0
    fetched: int = 0
    """From the shared cache."""
    kept: int = 0
    """From an earlier run."""
    started: float = 0.0
    """Seconds until the first chunk was done: Ray and the models come up."""
    seconds: float = 0.0
    failed: int = 0
    """Repositories that are not whole: they could not be read, or a part of them could not be embedded."""
    problems: list[str] = field(default_factory=list)
    """What was wrong, with them or with the shared cache."""

    def add(self, row: Row) -> None:
        """Count a row that is done; what is wrong is told once."""
        self.units += row["units"]
        self.embedded += row["embedded"]
        self.fetched += row["fetched"]
        self.kept += row["kept"]
        if row["problem"] and row["problem"] not in self.problems:
            self.problems.append(row["problem"])
            say(row["problem"])


def run(job: Job, repositories: Sequence[Repository], workers: int | None, address: str = "local") -> Outcome:
    """Embed what is not done yet. `workers`: how many models run, one for each core or card if None is said.

    Raises ExportError.
    """
    job.out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(job.out / "lock", timeout=0):
            _claim(job)
            return _follow(job, repositories, _rows(job, repositories, workers, address))
    except Timeout:
        raise ExportError(f"{job.out}: another run is writing there; wait for it, or choose another --out") from None


def _claim(job: Job) -> None:
    """One folder is for the vectors of one model."""
    file = job.out / "run.json"
    if file.exists():
        before = json.loads(file.read_text("utf-8"))["model"]
        if before != job.fingerprint:
            raise ExportError(f"{job.out}: holds vectors of {before}, not of {job.fingerprint}; choose another --out")
    else:
        with replacing(file) as path:
            path.write_text(json.dumps({"model": job.fingerprint}), encoding="utf-8")


def _follow(job: Job, repositories: Sequence[Repository], rows: Iterator[Row]) -> Outcome:
    """Count what comes, and mark the repositories that are whole."""
    outcome, begun = Outcome(), time.monotonic()
    said = begun
    by_name = {repository.name: repository for repository in repositories}
    done: dict[str, dict[str, int]] = {}
    for row in rows:
        outcome.seconds = round(time.monotonic() - begun, 2)
        outcome.started = outcome.started or outcome.seconds
        outcome.add(row)
        if row["failed"]:
            continue
        chunks = done.setdefault(row["repository"], {})
        chunks[row["chunk"]] = row["units"]
        if len(chunks) >= row["chunks"]:
            Parts(job, by_name[row["repository"]]).finish(done.pop(row["repository"]))
            outcome.repositories += 1
        if time.monotonic() - said >= TELL_SECONDS:
            said = time.monotonic()
            say(_line(outcome, len(repositories), said - begun))
    outcome.failed = len(repositories) - outcome.repositories
    return outcome


def _line(outcome: Outcome, whole: int, seconds: float) -> str:
    speed = outcome.units / seconds
    return f"{outcome.repositories}/{whole} repositories  {outcome.units} units  {speed:.0f}/s  {clock(seconds)}"


def _rows(job: Job, repositories: Sequence[Repository], workers: int | None, address: str) -> Iterator[Row]:
    """The rows of all chunks as they are done."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read when ray is imported: it would tell its makers of this run
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (CLONE, os.environ.get("PYTHONPATH"))))
    import ray
    import ray.data
    from ray.exceptions import RayError

    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    cores = (workers or os.cpu_count() or 1) + 1  # one to list repositories
    own = {"num_cpus": cores, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
    try:
        ray.init(address, **quiet, **(own if address == "local" else {}))
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(f"Ray at {address} cannot be used: {one_line(error)}") from None
    try:
        yield from _dataset(job, repositories, workers, ray.cluster_resources()).iter_rows()
    except RayError as error:
        raise ExportError(f"Ray gave up: {one_line(_first_cause(error))}") from None
    finally:
        ray.shutdown()


def _first_cause(error: BaseException) -> BaseException:
    """What was raised in a worker, out of all that Ray wraps around it."""
    while inner := getattr(error, "cause", None) or error.__cause__:
        error = inner
    return error


def _dataset(job: Job, repositories: Sequence[Repository], workers: int | None, has: Mapping[str, float]) -> Any:
    """The work, as Ray Data does it on a cluster that `has` so much of everything."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.max_errored_blocks = -1  # a chunk that ends its process, thrice, is left for another run
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    items = [{"task": pickle.dumps(repository)} for repository in repositories]
    chunks = (
        ray.data.from_items(items, override_num_blocks=len(items))
        .flat_map(listed, fn_args=(job,), num_cpus=1)
        .repartition(target_num_rows_per_block=1)  # a block is what one actor does, so that none waits for another
    )
    cores = max(1, int(has["CPU"]) - 1)
    if cards := _cards(job, has):
        parsed = chunks.map(Parser, num_cpus=1, compute=_pool(1, cores))
        return _mapped(parsed, Vectoriser, job, num_gpus=1, compute=_pool(workers or cards, workers or cards))
    return _mapped(chunks, Worker, job, num_cpus=1, compute=_pool(workers or cores, workers or cores))


def _pool(least: int, most: int) -> Any:
    from ray.data import ActorPoolStrategy

    # A chunk in hand and one to follow: more would wait for one actor while another has nothing to do.
    return ActorPoolStrategy(min_size=least, max_size=most, max_tasks_in_flight_per_actor=2)


def _mapped(rows: Any, step: type[Worker | Vectoriser], job: Job, **resources: Any) -> Any:
    with warnings.catch_warnings():  # from 2.64 on, `max_task_retries` has to be given in another way
        warnings.simplefilter("ignore")
        return rows.map(step, fn_constructor_args=(job,), max_task_retries=RETRIES, **resources)


def _cards(job: Job, has: Mapping[str, float]) -> int:
    """How many NVIDIA cards models are to run on."""
    device, cards = job.settings.device, int(has.get("GPU", 0))
    if device == "cuda" and not cards:
        raise ExportError('device "cuda": Ray sees no card here; set the device to "auto" or "cpu"')
    if device == "cpu" or not cards:
        return 0
    import onnxruntime

    return cards if "CUDAExecutionProvider" in onnxruntime.get_available_providers() else 0
