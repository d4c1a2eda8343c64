"""Many repositories at once: what is done is not done again, and is what an index would have."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder
from server.index.index import Index
from server.settings import Settings
from tests.embed.tiny import write_bundle
from tests.services.missing import missing
from tests.services.redis import Redis

pq = pytest.importorskip("pyarrow.parquet")

from export.bulk import job as module  # noqa: E402
from export.bulk.job import Job, Repository, chunks_of, repositories  # noqa: E402
from export.bulk.parts import Parts  # noqa: E402
from export.bulk.worker import Row, Worker, listed  # noqa: E402
from export.errors import ExportError  # noqa: E402

FILES, UNITS_EACH = 60, 3
UNITS = FILES * UNITS_EACH
ROOT = Path(__file__).parents[2]


def write_repository(folder: Path, seed: int = 0) -> Path:
    for number in range(FILES):
        code = (f"def f{seed}_{number}_{i}():\n    return w{number % 40} + w{i}\n" for i in range(UNITS_EACH))
        path = folder / f"w{number % 7}" / f"w{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(code))
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle.load(write_bundle(tmp_path / "bundle"))


@pytest.fixture
def job(tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.delenv("MEANING_SHARED_CACHE", raising=False)
    monkeypatch.setattr(module, "CUT", 8)
    settings = Settings(cache_dir=tmp_path / "cache", threads=1, model=str(bundle.folder))
    return Job(tmp_path / "out", bundle.folder, bundle.fingerprint, settings)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository("team/one", write_repository(tmp_path / "one"))


def work(job: Job, repository: Repository) -> dict[str, int]:
    """All that a run does for a repository, in this process; the figures of its chunks together."""
    worker = Worker(job)
    rows = [worker(row) for row in listed({"task": pickle.dumps(repository)}, job)]
    assert not any(row["failed"] for row in rows)
    Parts(job, repository).finish({row["chunk"]: row["units"] for row in rows})
    return {name: sum(row[name] for row in rows) for name in ("units", "embedded", "fetched", "kept")}


def result(job: Job) -> list[Row]:
    tables = [pq.read_table(path).to_pylist() for path in sorted(job.out.glob("parts/*/*.parquet"))]
    return sorted((row for rows in tables for row in rows), key=lambda row: (row["path"], row["start_line"]))


def test_the_rows_are_what_an_index_has(job: Job, repository: Repository) -> None:
    assert work(job, repository) == {"units": UNITS, "embedded": UNITS, "fetched": 0, "kept": 0}
    index = Index.open(repository.root, Bundle.load(job.model), job.settings)
    index.update()
    stored = index.store.rows(
        "SELECT f.path, u.start_line, u.end_line, u.name, u.container, u.kind, f.language, u.key, e.vectors"
        " FROM units u JOIN files f ON f.id = u.file JOIN embeddings e ON e.key = u.key ORDER BY f.path, u.start_line"
    )
    columns = ("path", "start_line", "end_line", "name", "container", "kind", "language", "key")
    rows = result(job)
    assert [tuple(row[column] for column in columns) for row in rows] == [row[:-1] for row in stored]
    found = [np.array(row["vectors"], np.float32).astype(np.float16).tobytes() for row in rows]
    assert found == [row[-1] for row in stored]
    assert {(row["repository"], row["model"]) for row in rows} == {("team/one", job.fingerprint)}


def test_what_is_done_is_not_done_again(job: Job, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    work(job, repository)
    monkeypatch.setattr(Embedder, "embed_code", None)
    assert work(job, repository) == {"units": UNITS, "embedded": 0, "fetched": 0, "kept": UNITS}
    assert len(result(job)) == UNITS


def test_what_was_written_before_a_kill_is_kept(job: Job, repository: Repository) -> None:
    worker = Worker(job)
    rows = listed({"task": pickle.dumps(repository)}, job)
    done = sum(worker(row)["units"] for row in rows[:2])
    figures = work(job, repository)
    assert (figures["kept"], figures["embedded"]) == (done, UNITS - done)
    assert done > 0


def test_half_a_file_is_never_taken_for_a_whole_one(job: Job, repository: Repository) -> None:
    work(job, repository)
    part = next(job.out.glob("parts/*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-100])
    assert work(job, repository)["embedded"] > 0
    assert len(result(job)) == UNITS


def test_an_edit_embeds_what_it_changed(job: Job, repository: Repository) -> None:
    work(job, repository)
    edited = repository.root / "w3" / "w3.py"
    edited.write_text(edited.read_text().replace("f0_3_1", "other"))
    (repository.root / "w4" / "w4.py").unlink()
    figures = work(job, repository)
    assert (figures["units"], figures["embedded"]) == (UNITS - UNITS_EACH, 1)
    assert len(result(job)) == UNITS - UNITS_EACH
    assert not list(job.out.rglob("stale"))


def test_a_file_that_comes_leaves_most_chunks_as_they_were(job: Job, repository: Repository) -> None:
    before = {chunk.digest for chunk in chunks_of(repository, job)}
    (repository.root / "w3" / "new.py").write_text("def new(): return w1\n")
    after = {chunk.digest for chunk in chunks_of(repository, job)}
    assert len(before) > 2
    assert len(after - before) <= 2


def test_a_repository_that_is_not_whole_has_no_mark(job: Job, repository: Repository) -> None:
    work(job, repository)
    [mark] = job.out.glob("done/*.json")
    assert sum(json.loads(mark.read_text())["units"].values()) == UNITS
    (repository.root / "new.py").write_text("def new(): return w1\n")
    listed({"task": pickle.dumps(repository)}, job)
    assert not mark.exists()


def test_who_indexes_it_afterwards_computes_nothing(job: Job, repository: Repository, redis_server: Redis) -> None:
    redis_server.client().flushall()
    shared = Settings(**{**vars(job.settings), "shared_cache": redis_server.url})
    first = Job(job.out, job.model, job.fingerprint, shared)
    assert work(first, repository)["embedded"] == UNITS
    index = Index.open(repository.root, Bundle.load(job.model), shared)
    report = index.update()
    assert (report.embedded, report.fetched) == (0, UNITS)
    assert "embedder" not in vars(index)
    second = Job(job.out.with_name("other"), job.model, job.fingerprint, shared)
    assert work(second, repository)["fetched"] == UNITS
    assert result(second) == result(first)


def test_what_cannot_be_read_is_told(job: Job, tmp_path: Path) -> None:
    [row] = listed({"task": pickle.dumps(Repository("gone", tmp_path / "gone"))}, job)
    assert row["failed"]
    assert str(tmp_path / "gone") in row["problem"]


def test_a_chunk_that_fails_is_told_and_left_for_another_run(
    job: Job, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(job)
    first, *others = listed({"task": pickle.dumps(repository)}, job)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Parts, "write", full)
        row = worker(first)
    assert (row["failed"], row["units"]) == (1, 0)
    assert "No space left" in row["problem"]
    assert all(worker(row)["units"] for row in others)
    assert work(job, repository)["embedded"] == worker(first)["units"]


def test_repositories_are_named_in_three_ways(tmp_path: Path) -> None:
    clones = tmp_path / "clones"
    for name in ("b", "owner/a", "host/owner/c", "b/inner", "much/too/far/down"):
        (clones / name / ".git").mkdir(parents=True)
    (clones / "no clone").mkdir()
    (lines := tmp_path / "list").write_text(f"# those of others\n{tmp_path}/x\n\nclones/b\n")
    found = repositories([tmp_path / "y"], [lines], [clones])
    assert [each.name for each in found] == [
        f"{tmp_path}/y",
        f"{tmp_path}/x",
        "clones/b",
        "b",
        "host/owner/c",
        "owner/a",
    ]
    assert found[2].root == clones / "b"
    assert len({each.id for each in found}) == len(found)
    with pytest.raises(ExportError, match="cannot be listed"):
        repositories([], [tmp_path / "missing"], [])


# -- on Ray


@pytest.fixture
def environment(tmp_path: Path, bundle: Bundle) -> Iterator[dict[str, str]]:
    """Ray's own files lie in a folder of a short name, as its sockets want it."""
    try:
        import ray.data  # noqa: F401
    except ImportError:
        missing("no Ray here: pip install 'ray[data]'")
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEANING_")}
        cache = {"MEANING_CACHE_DIR": str(tmp_path / "cache"), "MEANING_MODEL": str(bundle.folder)}
        yield kept | cache | {"RAY_TMPDIR": folder}


def command(out: Path, *options: object) -> list[str]:
    return [sys.executable, "-m", "export.bulk", *map(str, options), "--out", str(out)]


@pytest.mark.slow
def test_two_workers_on_two_repositories(tmp_path: Path, environment: dict[str, str]) -> None:
    one, two = (write_repository(tmp_path / name, seed) for seed, name in enumerate(("one", "two")))
    line = command(tmp_path / "out", one, two, tmp_path / "gone", "--workers", 2)
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    figures = json.loads(done.stdout)
    assert done.returncode == 1
    assert (figures["repositories"], figures["units"], figures["embedded"]) == (2, 2 * UNITS, 2 * UNITS)
    problem, summary = done.stderr.splitlines()[-2:]
    assert f"{tmp_path}/gone" in problem
    assert summary == "1 of 3 repositories are not whole; the same command tries them again"
    assert len(list(tmp_path.glob("out/done/*.json"))) == 2
    names = {
        row["repository"] for path in tmp_path.glob("out/parts/*/*.parquet") for row in pq.read_table(path).to_pylist()
    }
    assert names == {str(one), str(two)}


@pytest.mark.slow
def test_a_run_that_was_stopped_or_killed_goes_on(tmp_path: Path, environment: dict[str, str]) -> None:
    many = [write_repository(tmp_path / f"r{seed}", seed) for seed in range(24)]
    line = command(tmp_path / "out", *many, "--workers", 1)

    def ended(by: signal.Signals, parts: int) -> tuple[int, str]:
        pipe = subprocess.PIPE
        running = subprocess.Popen(line, cwd=ROOT, env=environment, text=True, stdout=pipe, stderr=pipe)
        while len(_parts(tmp_path)) < parts:
            assert running.poll() is None, running.communicate()
            time.sleep(0.005)
        running.send_signal(by)
        told = running.communicate()[1]
        return running.returncode, told

    status, told = ended(signal.SIGINT, parts=2)
    assert (status, told.splitlines()[-1]) == (130, "export.bulk: stopped; the same command goes on from here")
    before = _parts(tmp_path)
    assert ended(signal.SIGKILL, parts=len(before) + 2)[0] == -signal.SIGKILL
    before |= _parts(tmp_path)
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["repositories"] == len(many)
    assert figures["units"] == figures["embedded"] + figures["kept"] == len(many) * UNITS
    assert figures["kept"] > 0
    assert {path: stamp for path, stamp in _parts(tmp_path).items() if path in before} == before


def _parts(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("out/parts/*/*.parquet")}


@pytest.mark.slow
def test_one_folder_is_for_one_run_and_one_model(
    tmp_path: Path, repository: Repository, environment: dict[str, str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text('{"model": "another"}')

    def told() -> str:
        line = command(out, repository.root)
        done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        [problem] = done.stderr.splitlines()
        return problem

    assert "holds vectors of another" in told()
    from filelock import FileLock

    with FileLock(out / "lock"):
        assert "another run" in told()
