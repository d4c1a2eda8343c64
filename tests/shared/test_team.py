"""What one member embedded no other has to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from server.embed.bundle import Bundle
from server.embed.pace import Pace
from server.index.backfill import Backfill
from server.index.buffers import Buffers
from server.index.index import Index
from server.index.workers import Workers
from server.workspace.overlay import Buffer
from tests.embed.tiny import write_bundle
from tests.index.content import content
from tests.services.redis import Redis

from .conftest import FILES, UNITS_EACH, Team, embedded

pytestmark = pytest.mark.usefixtures("patient")

UNITS = FILES * UNITS_EACH


def test_a_second_clone_computes_no_embedding(team: Team, url: str) -> None:
    first, second = team.member(url), team.member(url)
    report = first.update()
    assert (report.embedded, report.fetched, report.reused) == (UNITS, 0, 0)
    report = second.update()
    assert (report.embedded, report.fetched, report.reused) == (0, UNITS, 0)
    assert embedded(second) == 0
    assert content(second) == content(first)
    assert (first.problems, second.problems) == ([], [])


def test_a_second_clone_does_not_even_load_the_model(team: Team, empty_redis: Redis) -> None:
    team.member(empty_redis.url).update()
    second = team.member(empty_redis.url)
    del second.embedder
    second.update()
    assert "embedder" not in vars(second)


def test_members_who_begin_together_end_alike(team: Team, url: str) -> None:
    members = [team.member(url) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        # An index belongs to the thread that updates it.
        both = list(threads.map(lambda index: (index.update(), index.close()), members))
    assert all(report.embedded + report.fetched == UNITS for report, _ in both)
    third = team.member(url)
    assert third.update().embedded == 0
    assert third.problems == []


def test_what_one_has_changed_alone_is_computed(team: Team, empty_redis: Redis) -> None:
    team.member(empty_redis.url).update()
    second = team.member(empty_redis.url)
    (second.root / "w1" / "w1.py").write_text("def other(): return w1 + w2 + w3\n")
    report = second.update()
    assert (report.embedded, report.fetched) == (1, UNITS - UNITS_EACH)


def test_models_do_not_mix(team: Team, url: str, tmp_path: Path) -> None:
    team.member(url).update()
    other = Bundle.load(write_bundle(tmp_path / "other", seed=5))
    assert team.member(url, other).update().fetched == 0


def test_an_edit_is_given_but_not_asked_for(team: Team, empty_redis: Redis) -> None:
    index = team.member(empty_redis.url)
    index.update()
    (index.root / "w1" / "w1.py").write_text("def other(): return w1 + w2 + w3\n")
    before, asked = empty_redis.client().dbsize(), _asked(empty_redis)
    assert index.update(within=["w1/w1.py"], urgent=tuple).embedded == 1
    index.shared.flush()
    assert (empty_redis.client().dbsize(), _asked(empty_redis)) == (before + 1, asked)


def _asked(server: Redis) -> int:
    return int(server.client().info("commandstats").get("cmdstat_mget", {}).get("calls", 0))


def test_what_is_not_saved_is_not_sent(team: Team, empty_redis: Redis) -> None:
    index = team.member(empty_redis.url)
    index.update()
    before = empty_redis.client().dbsize()
    private = Buffer("def private(): return w1 + w2 + w3 + w4\n")
    with Workers(1) as workers:
        buffers = Buffers(index, workers, lambda: {"w1/w1.py": private})
        buffers.follow()
        assert buffers.speaking_for() == {"w1/w1.py"}
    index.shared.flush()
    assert empty_redis.client().dbsize() == before


def test_a_second_tier_is_fetched_too(team: Team, empty_redis: Redis, tmp_path: Path) -> None:
    better = Bundle.load(write_bundle(tmp_path / "better", seed=5))

    def filled() -> Index:
        index = team.member(empty_redis.url)
        index.update()
        with closing(index):
            second = Index.open(index.root, better, index.settings, team.member("", better).embedder)
        with Workers(1) as workers, ThreadPoolExecutor(1) as background:
            assert Backfill(second, Pace(second.embedder), workers, background, lambda: False).run(lambda: None)
        second.shared.flush()
        return second

    first, second = filled(), filled()
    assert (embedded(first), embedded(second)) == (UNITS + FILES, 0)
    assert content(first) == content(second)


@pytest.mark.slow
def test_from_the_command_line_by_the_environment(team: Team, url: str, tmp_path: Path) -> None:
    def index(member: Index) -> dict[str, object]:
        command = [sys.executable, "-m", "server", "index", "--json", str(member.root), "--cache-dir", str(tmp_path)]
        environment = {"MEANING_SHARED_CACHE": url, "MEANING_MODEL": str(team.bundle.folder)}
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        report: dict[str, object] = json.loads(done.stdout)
        return report

    first, second = index(team.member("")), index(team.member(""))
    assert (first["embedded"], first["fetched"]) == (UNITS, 0)
    assert (second["embedded"], second["fetched"]) == (0, UNITS)
