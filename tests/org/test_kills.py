"""kill -9 of who publishes, or of the database, at any moment: the same command again ends as if nothing was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from server.embed.bundle import Bundle
from server.org import publish as publishing
from server.org.connect import OrgError
from server.org.schema import models
from server.settings import Settings
from tests.house.test_imports import ROOT
from tests.services.postgres import Postgres

from .conftest import Send, Write, contents, psycopg

FILES = {
    f"folder{n % 7}/file{n}.py": "".join(f"def w{n}_{m}():\n    return w{n + m}\n\n" for m in range(10))
    for n in range(40)
}
LATER = {
    path.replace("folder3", "moved"): text.replace("return w1", "return not w1")
    for path, text in FILES.items()
    if "folder5" not in path
}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "BATCH_UNITS", 25)


def program(arguments: list[str], url: str, settings: Settings, model: Path) -> subprocess.Popen[bytes]:
    """The command line with batches as small as these tests'."""
    code = "import server.org.publish as p, sys; p.BATCH_UNITS = 25; from server.__main__ import main; sys.exit(main())"
    environment = {"MEANING_ORG_INDEX": url, "MEANING_MODEL": str(model), "MEANING_CACHE_DIR": str(settings.cache_dir)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_publisher_that_is_killed_goes_on_where_it_was(
    postgres: Postgres, url: str, write: Write, send: Send, settings: Settings, bundle: Bundle
) -> None:
    model = bundle.folder
    draw = random.Random(5)
    root = write("many", FILES)
    for round_, files in enumerate([FILES, LATER, FILES, LATER]):
        write("many", files)
        for _ in range(2):
            running = program(["publish", str(root)], url, settings, model)
            time.sleep(0.5 + draw.random() * 1.2)
            running.send_signal(signal.SIGKILL)
            running.wait()
        done = program(["publish", str(root)], url, settings, model)
        assert done.wait(60) == 0
        fresh = postgres.database()
        send(root, to=fresh)
        assert contents(url) == contents(fresh), round_


def test_a_database_that_is_killed_loses_nothing_that_it_had(
    postgres: Postgres, url: str, write: Write, send: Send
) -> None:
    root = write("many", FILES)
    failed = 0
    for delay in (0.05, 0.15, 0.3):
        write("many", LATER if delay == 0.15 else FILES)
        killer = threading.Timer(delay, postgres.kill)
        killer.start()
        try:
            send(root)
        except OrgError:
            failed += 1
        killer.join()
        postgres.start()
    assert failed
    send(root)
    fresh = postgres.database()
    send(root, to=fresh)
    assert contents(url) == contents(fresh)


def test_each_file_is_there_whole_while_it_is_published(url: str, write: Write, send: Send) -> None:
    root = write("many", FILES)
    send(root)
    write("many", LATER)
    torn: list[object] = []
    over = threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            [schema] = models(connection)
            connection.execute(f"SET search_path = {schema}, public".encode())
            while not over.is_set():
                torn.extend(
                    connection.execute(
                        "SELECT f.path FROM files f WHERE units <> (SELECT count(*) FROM units u WHERE u.file = f.id)"
                        " OR units > (SELECT count(*) FROM parts p WHERE p.file = f.id)"
                    )
                )

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        send(root)
    finally:
        over.set()
        watcher.join()
    assert not torn


def test_two_publishers_of_one_workspace_take_turns(
    postgres: Postgres, url: str, write: Write, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = write("one", FILES), write("other", LATER)
    errors: list[BaseException] = []

    def go(root: Path) -> None:
        try:
            send(root, "same")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=go, args=(root,)) for root in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    whole = []
    for root in (one, other):
        fresh = postgres.database()
        send(root, "same", to=fresh)
        whole.append(contents(fresh))
    assert contents(url) in whole


def test_who_waits_too_long_for_his_turn_is_told(
    url: str, write: Write, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write("one", {"a.py": "def w1():\n    return w2\n"})
    send(root)
    monkeypatch.setattr(publishing, "TURN_SECONDS", 0.1)
    with psycopg.connect(url, autocommit=True) as connection:
        [schema] = models(connection)
        with publishing._turn(connection, f"{schema} one", lambda: None), pytest.raises(OrgError, match="another"):
            send(root)
    assert send(root).sent == 0
