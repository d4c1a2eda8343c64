"""The index tells the truth whatever happens: the programs of tests/bench that prove it at length, in short."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import disk, history
from tests.bench.disk import Damage, Disk, may_mount
from tests.bench.kills import Kills
from tests.bench.made_up import write_tree
from tests.bench.several import LATEST, Several

COMMITS = 12


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commits that add, change, move and delete."""
    repo = tmp_path / "repository"
    write_tree(repo, 300)
    commands = ["init --quiet", "add .", "commit --quiet -m 0"]
    files = sorted(path.relative_to(repo) for path in repo.rglob("*.*"))
    for number in range(1, COMMITS):
        commands += [f"mv {files[number]} moved_{number}{files[number].suffix}"] if number % 3 == 0 else []
        commands += [f"rm --quiet {files[-number]}"] if number % 4 == 0 else []
        commands += [f"mv {files[0].parent} folder_{number}"] if number == COMMITS - 1 else []
        commands += [f"commit --quiet --allow-empty -m {number}"]
    for command in commands:
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *command.split()], cwd=repo, check=True)
    return repo


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_history_is_followed(repository: Path, tmp_path: Path) -> None:
    figures = history.walk(repository, tmp_path, COMMITS, every=9, seed=0)
    assert figures["failures"] == []
    assert figures["steps"] > figures["commits"] == COMMITS  # a stash and a rebase are among them
    assert figures["compared"] > 0
    assert figures["searches"] > 0


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    bench = Kills(tmp_path, functions=600, seed=0)
    for moment in (bench.at_a_save, bench.at_start, bench.the_command, bench.at_work, bench.at_an_edit, bench.a_worker):
        moment()
    bench.settle()
    assert bench.failures == []
    assert len(bench.first_answers) >= 3


@pytest.mark.slow
def test_several_servers_share_one_index(tmp_path: Path) -> None:
    bench = Several(tmp_path, servers=2, functions=200, seed=0)
    try:
        bench.first_index()
        bench.followed()
        bench.killed()
        bench.followed()
        bench.end()
    finally:
        for server in bench.servers:
            server.kill()
    assert bench.failures == []
    assert max(bench.behind) < LATEST


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return Disk(tmp_path_factory.mktemp("disk"), functions=400, seed=0)


DAMAGES: list[tuple[Damage, str, bool]] = [
    (disk.overwrite, "database", False),
    (disk.truncate, "vectors", False),
    (disk.delete, "database", True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "target", "running"), DAMAGES)
def test_damage_heals(damaged: Disk, damage: Damage, target: str, running: bool) -> None:
    damaged.trial(damage, target, running)
    assert damaged.failures == []


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [Disk.full_later, Disk.read_only])
def test_a_disk_that_refuses_is_told_once_and_heals(
    damaged: Disk, trouble: Callable[[Disk, Path], None], tmp_path: Path
) -> None:
    if not may_mount(tmp_path / "disk"):
        pytest.skip("this user may not mount disks")
    trouble(damaged, tmp_path / "disk")
    assert damaged.failures == []
