"""`publish` and `search --scope org`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.__main__ import main
from tests.embed.tiny import write_bundle
from tests.services.postgres import PASSWORD, Postgres

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def code(tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Path:
    postgres.start()
    monkeypatch.setenv("MEANING_ORG_INDEX", postgres.database())
    monkeypatch.setenv("MEANING_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MEANING_MODEL", str(write_bundle(tmp_path / "bundle")))
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("def w1():\n    return w2\n")
    return folder


def test_what_is_published_is_found_and_what_is_removed_is_not(
    code: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["publish", str(code), "--name", "acme/code"]) == 0
    assert main(["search", "w1", "--scope", "org"]) == 0
    told = capfdbinary.readouterr().out.decode()
    assert "acme/code: 1 files, 1 units; 1 files sent, 0 removed" in told
    assert "acme/code:a.py:1-2  function w1\n" in told
    assert main(["search", "w1", "--scope", "org", "--repo", "code", "--json"]) == 0
    [hit] = json.loads(capfdbinary.readouterr().out)["hits"]
    assert (hit["repository"], hit["path"], hit["start_line"], hit["name"]) == ("acme/code", "a.py", 1, "w1")
    assert main(["publish", "--remove", "acme/code"]) == 0
    assert main(["search", "w1", "--scope", "org"]) == 0
    assert capfdbinary.readouterr().out.decode() == "acme/code: removed\nnothing found: the index is empty\n"
    assert main(["publish", "--remove", "acme/code"]) == 1


def test_a_batch_goes_on_after_a_line_that_is_no_query(
    code: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "queries").write_text("w1\nlang:nonsense w1\nw2 repo:code\n")
    assert main(["publish", str(code)]) == 0
    capfdbinary.readouterr()
    assert main(["search", "--batch", str(tmp_path / "queries"), "--scope", "org"]) == 1
    answers = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert ["error" in answer for answer in answers] == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["search", "w1", "--repo", "x"], "only with --scope org"),
        (["search", "w1", "--scope", "org", "--open"], "not with --scope org"),
        (["search", "w1", "--scope", "org", "--no-index"], "not with --scope org"),
        (["search", "w1", "somewhere", "--scope", "org"], "--repo"),
        (["publish", ".", "--name", "a b"], "a name has"),
    ],
)
def test_wrong_usage(arguments: list[str], told: str, code: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert told in capfd.readouterr().err


def test_without_an_index_it_is_told_how_to_name_one(
    code: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MEANING_ORG_INDEX")
    assert main(["search", "w1", "--scope", "org"]) == 2
    assert main(["publish", str(code)]) == 2
    assert capfd.readouterr().err.count("MEANING_ORG_INDEX=postgresql://") == 2


@pytest.mark.parametrize(
    "url",
    ["mysql://me:secret-1@db/code", "postgresql://me:secret-1@127.0.0.1:1/code", "postgresql://me:secret-1@[/code"],
)
def test_an_index_that_cannot_be_reached_is_told_without_its_password(
    url: str, code: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEANING_ORG_INDEX", url)
    assert main(["search", "w1", "--scope", "org"]) in (1, 2)
    assert main(["publish", str(code)]) in (1, 2)
    told = capfd.readouterr().err
    assert told.count("\n") == 2
    assert "secret-1" not in told


def test_who_may_only_read_searches_and_is_told_that_he_may_not_publish(
    code: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import os

    assert main(["publish", str(code)]) == 0
    url = os.environ["MEANING_ORG_INDEX"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'".encode())
        connection.execute("GRANT pg_read_all_data TO reader")
    monkeypatch.setenv("MEANING_ORG_INDEX", url.replace("//meaning:", "//reader:"))
    assert main(["search", "w1", "--scope", "org"]) == 0
    (code / "b.py").write_text("def w3():\n    return w4\n")
    assert main(["publish", str(code)]) == 1
    assert "this user may not do that" in capfd.readouterr().err
