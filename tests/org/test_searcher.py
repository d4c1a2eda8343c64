"""An answer out of the organisation's index: the one that the workspaces' own would give, or a clear word why not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder
from server.index.index import Index
from server.org import candidates
from server.org.connect import OrgError, Unanswered
from server.org.schema import Schema
from server.org.searcher import ANSWER_SECONDS, OrgSearcher
from server.search.answer import Hit, Query
from server.search.query import parse_query
from server.search.searcher import Cancelled, Searcher
from server.settings import Settings
from tests.embed.tiny import write_bundle
from tests.services.postgres import PASSWORD, Postgres
from tests.services.proxy import before

from .conftest import Send, Write, psycopg

UPLOADS = {
    "net/upload.py": '''"""w1 w2"""\n\ndef retry_upload(w3):\n    """w4 a failed upload w5."""\n    return w6\n\n'''
    "class Uploader:\n    def send(self):\n        return w7\n",
    "net/download.py": "def fetch(w8):\n    return w9\n\ndef retry_download():\n    w10 = w3\n",
    "tests/test_upload.py": "def test_retry():\n    assert retry_upload(w11)\n",
}
DATES = {
    "dates.go": "package dates\n\nfunc ParseDate() {\n\tw12()\n}\n",
    "net/upload.py": "def w13():\n    return w14\n",
}


@pytest.fixture
def both(write: Write, send: Send) -> list[Path]:
    roots = [write("uploads", UPLOADS), write("dates", DATES)]
    send(roots[0], "acme/uploads")
    send(roots[1], "acme/dates")
    return roots


def asked(searcher: OrgSearcher, text: str, **more: Any) -> tuple[Hit, ...]:
    return searcher.search(parse_query(text, repositories=(), **more)).answer.hits


@pytest.mark.parametrize("text", ["w3 upload", "retry_upload", "a failed w5", "w12", "Uploader w7", "w4 path:net/"])
@pytest.mark.parametrize("only", [None, "dense", "lexical"])
def test_one_repository_alone_answers_as_its_own_index(
    text: str, only: str | None, both: list[Path], searcher: OrgSearcher, settings: Settings, embedder: Embedder
) -> None:
    with closing(Index.open(both[0], embedder.bundle, settings, embedder)) as index:
        own = Searcher(index).search(parse_query(text, only=only)).hits
    found = asked(searcher, f"{text} repo:uploads", only=only)
    assert [(hit.path, hit.name, hit.selection, hit.preview) for hit in found] == [
        (hit.path, hit.name, hit.selection, hit.preview) for hit in own
    ]
    if only:  # else the repository's name, which is a folder of each path, has its say
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in own], abs=0.01)
    assert {hit.repository for hit in found} == {"acme/uploads"}


def test_all_repositories_are_searched_at_once(both: list[Path], searcher: OrgSearcher) -> None:
    answer = searcher.search(parse_query("retry_upload ParseDate", repositories=())).answer
    assert {hit.repository for hit in answer.hits} == {"acme/uploads", "acme/dates"}
    assert {(hit.repository, hit.path) for hit in answer.hits} >= {
        ("acme/uploads", "net/upload.py"),
        ("acme/dates", "net/upload.py"),
    }
    assert (answer.indexed, answer.pending) == (sum_of_units(both, searcher), 0)


def sum_of_units(_both: list[Path], searcher: OrgSearcher) -> int:
    with psycopg.connect(searcher.url) as connection:
        schema = Schema.of(searcher.embedder.bundle).name
        row = connection.execute(f"SELECT count(*) FROM {schema}.units".encode()).fetchone()
    return int(row[0])


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ("repo:acme/dates", {"acme/dates:dates.go", "acme/dates:net/upload.py"}),
        ("repo:*/DATES lang:go", {"acme/dates:dates.go"}),
        ("path:*.go", {"acme/dates:dates.go"}),
        ("path:net/up", {"acme/dates:net/upload.py", "acme/uploads:net/upload.py"}),
        ("path:net/*load.py repo:uploads", {"acme/uploads:net/upload.py", "acme/uploads:net/download.py"}),
        ("path:!*.py", set()),
        ("kind:class", {"acme/uploads:net/upload.py"}),
        ("kind:method lang:go", set()),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_filters_choose(
    filters: str, places: set[str], exact: bool, both: list[Path], searcher: OrgSearcher, monkeypatch: Any
) -> None:
    monkeypatch.setattr(candidates, "EXACT_UNITS", 10_000 if exact else -1)
    hits = asked(searcher, f"{filters} w3 upload w12", limit=50)
    assert {f"{hit.repository}:{hit.path}" for hit in hits} == places


def test_a_repository_that_is_not_there_is_told(both: list[Path], searcher: OrgSearcher) -> None:
    with pytest.raises(OrgError, match="no repository is called nothing: there are acme/dates, acme/uploads"):
        asked(searcher, "w3 repo:nothing")


def test_a_hit_in_a_folder_that_is_here_is_where_it_is_now(
    both: list[Path], searcher: OrgSearcher, write: Write
) -> None:
    write("uploads", {**UPLOADS, "net/upload.py": "# moved down\n\n" + UPLOADS["net/upload.py"]})
    found = searcher.search(parse_query("retry_upload", 1, repositories=()), folders={"acme/uploads": both[0]}).found
    assert [(each.root, each.hit.start_line, each.hit.name) for each in found] == [(both[0], 4, "retry_upload")]
    write("uploads", {})
    found = searcher.search(parse_query("retry_upload", 1, repositories=()), folders={"acme/uploads": both[0]}).found
    assert [(each.root, each.hit.start_line, each.hit.name) for each in found] == [(None, 2, "retry_upload")]


def test_another_model_is_told_which_there_are(both: list[Path], url: str, tmp_path: Path) -> None:
    other = Embedder(Bundle.load(write_bundle(tmp_path / "other", changed={"id": "another"}, seed=7)), 1)
    with (
        closing(OrgSearcher(url, other)) as searcher,
        pytest.raises(OrgError, match=r"nothing is published there for the model another .* but for tiny-1"),
    ):
        asked(searcher, "w3")


def test_an_empty_database_says_how_to_begin(searcher: OrgSearcher) -> None:
    with pytest.raises(OrgError, match="run `meaning-lsp publish`"):
        asked(searcher, "w3")


# -- a server that is down, slow, frozen or killed


def test_a_server_that_is_not_there_is_told_soon_and_without_a_password(embedder: Embedder) -> None:
    with closing(OrgSearcher("postgresql://me:secret-1@127.0.0.1:1/code", embedder)) as searcher:
        start = time.monotonic()
        with pytest.raises(OrgError, match=r"postgresql://me@127\.0\.0\.1:1/code") as caught:
            asked(searcher, "w3")
    assert time.monotonic() - start < 3
    assert "secret-1" not in str(caught.value)


def test_a_wrong_password_is_told_and_not_shown(postgres: Postgres, embedder: Embedder) -> None:
    with (
        closing(OrgSearcher(postgres.url.replace(PASSWORD, "wrong-pass"), embedder)) as searcher,
        pytest.raises(OrgError, match="password authentication failed") as caught,
    ):
        asked(searcher, "w3")
    assert "wrong-pass" not in str(caught.value)


def test_the_password_may_stand_in_the_environment(
    both: list[Path], url: str, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEANING_ORG_PASSWORD", PASSWORD)
    with closing(OrgSearcher(url.replace(f":{PASSWORD}", ""), embedder)) as searcher:
        assert asked(searcher, "w3")


def test_a_server_that_falls_silent_is_not_waited_for_long(
    both: list[Path], postgres: Postgres, url: str, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.org.searcher.ANSWER_SECONDS", 0.5)
    assert ANSWER_SECONDS < 10
    with before(postgres.port) as proxy:
        through = url.replace(f":{postgres.port}/", f":{proxy.port}/")
        with closing(OrgSearcher(through, embedder)) as searcher:
            assert asked(searcher, "w3")
            proxy.flows.clear()
            start = time.monotonic()
            with pytest.raises(Unanswered, match="no answer"):
                asked(searcher, "w3")
            assert time.monotonic() - start < 3
            proxy.flows.set()
            assert asked(searcher, "w3")


def test_a_killed_server_answers_again_when_it_is_back(
    both: list[Path], postgres: Postgres, searcher: OrgSearcher
) -> None:
    before_kill = asked(searcher, "w3 upload")
    postgres.kill()
    with pytest.raises(OrgError):
        asked(searcher, "w3 upload")
    postgres.start()
    assert asked(searcher, "w3 upload") == before_kill


def test_a_kill_in_the_midst_of_a_search_is_an_error_and_no_wrong_answer(
    both: list[Path], postgres: Postgres, searcher: OrgSearcher
) -> None:
    right = asked(searcher, "w3 upload")
    for delay in (0.0, 0.005, 0.01, 0.02):
        killer = threading.Timer(delay, postgres.kill)
        killer.start()
        try:
            while killer.is_alive():
                assert asked(searcher, "w3 upload") == right
        except OrgError:
            pass
        finally:
            killer.join()
            postgres.start()
    assert asked(searcher, "w3 upload") == right


def test_a_search_that_nobody_waits_for_ends(both: list[Path], searcher: OrgSearcher) -> None:
    with pytest.raises(Cancelled):
        searcher.search(Query("w3"), cancelled=lambda: True)


# -- rows that nobody of us wrote


@contextmanager
def at(searcher: OrgSearcher) -> Iterator[Any]:
    with psycopg.connect(searcher.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {Schema.of(searcher.embedder.bundle).name}, public".encode())
        yield connection


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE files SET path = '../../etc/passwd'",
        "UPDATE files SET path = '/etc/passwd'",
        "UPDATE files SET path = E'net/\\x1b[2Jupload.py'",
        "UPDATE workspaces SET name = E'a\\nb'",
        "UPDATE units SET kind = 'virus'",
        "UPDATE units SET start_line = -5",
        "UPDATE units SET end_line = start_line - 1",
        "UPDATE units SET name_start = -1",
        "UPDATE units SET preview = repeat('x', 1000000)",
        "UPDATE units SET terms = '\\x00'",
        "UPDATE parts SET combined = array_fill(0, ARRAY[8])::halfvec",
        "UPDATE units SET workspace = 12345; UPDATE parts SET workspace = 12345",
    ],
)
def test_what_nobody_of_us_can_have_published_is_left_out_and_told_once(
    spoil: str, write: Write, send: Send, url: str, embedder: Embedder
) -> None:
    send(write("uploads", UPLOADS))
    heard: list[str] = []
    with closing(OrgSearcher(url, embedder, heard.append)) as searcher:
        assert asked(searcher, "w3 upload")
        with at(searcher) as connection:
            for statement in spoil.split("; "):
                connection.execute(statement)
        assert asked(searcher, "w3 upload") == ()
        assert asked(searcher, "w3 upload") == ()
    assert len(heard) == 1
    assert "left out" in heard[0]


def test_tables_of_another_width_are_an_error_of_this_search(both: list[Path], searcher: OrgSearcher) -> None:
    with at(searcher) as connection:
        connection.execute("DROP TABLE parts")
        connection.execute(
            "CREATE TABLE parts (unit bigint, workspace int, file bigint, language text, kind text,"
            " combined halfvec(3))"
        )
        connection.execute("INSERT INTO parts SELECT id, workspace, file, language, kind, '[1,2,3]' FROM units")
    with pytest.raises(OrgError, match="dimensions"):
        asked(searcher, "w3")
    assert asked(searcher, "w3", only="lexical")


def test_vectors_keep_what_a_half_precision_number_keeps(
    both: list[Path], searcher: OrgSearcher, embedder: Embedder
) -> None:
    with at(searcher) as connection:
        [(text,)] = connection.execute("SELECT path_vector::text FROM files WHERE path = 'dates.go'").fetchall()
    [wanted] = embedder.embed_code([("dates", ())])
    assert np.array(text.strip("[]").split(","), np.float32) == pytest.approx(wanted[0], abs=1e-3)
