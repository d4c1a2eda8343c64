"""A connection to the organisation's database, bounded in time, and its errors as the user is to read them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..settings import ORG_SCHEMES, redacted

if TYPE_CHECKING:
    import psycopg

USER, PASSWORD = "MEANING_ORG_USER", "MEANING_ORG_PASSWORD"
"""Environment variables that hold where the URL names none; PostgreSQL's own (PGUSER, PGPASSWORD, …) and `.pgpass` hold
as well."""

CONNECT_SECONDS = 2
"""The least that psycopg allows."""

_LIVENESS: Mapping[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server that vanished without a word is noticed within half a minute, though nobody set a limit."""


class OrgError(Exception):
    """The organisation index cannot be asked or written: one line that says where, why, and what to do."""


class Unanswered(OrgError):
    """It took too long."""


def connect(url: str) -> psycopg.Connection:
    """A new connection, each statement of which is a transaction of its own. Raises OrgError."""
    with told(url):
        import psycopg

        credentials = _credentials(url)
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            prepare_threshold=None,  # a pooler between may hand each statement to another server
            application_name="meaning-lsp",
            **{**_LIVENESS, **credentials},
        )


def _credentials(url: str) -> dict[str, Any]:
    """Those of the environment that the URL has not. Raises OrgError for what is no URL of PostgreSQL."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        if not url.startswith(ORG_SCHEMES):
            raise psycopg.ProgrammingError
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # whose text may hold any part of the URL
        raise OrgError(f"{_place(url)}: not a URL postgresql://user@host/database?option=value") from None
    wanted = {"user": os.environ.get(USER), "password": os.environ.get(PASSWORD)}
    return {name: value for name, value in wanted.items() if value and not given.get(name)}


@contextmanager
def told(url: str) -> Iterator[None]:
    """What psycopg raises as an OrgError, on one line and without a password."""
    try:
        import psycopg
    except ImportError as error:
        raise OrgError(
            f"organisation index: {error.name or 'a library'} is not installed; run `pip install 'meaning-lsp[shared]'`"
        ) from None
    try:
        yield
    except psycopg.errors.QueryCanceled:
        raise Unanswered(f"{_place(url)}: no answer in time; ask again, or narrow it by `repo:`") from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise OrgError(f"{_place(url)}: this user may not do that ({_line(url, error)})") from None
    except psycopg.Error as error:
        raise OrgError(f"{_place(url)}: {_line(url, error)}") from None


def _place(url: str) -> str:
    return f"organisation index {redacted(url)}"


def _line(url: str, error: Exception) -> str:
    """The first lines of an error, those that say what, without the secret."""
    text = " ".join((str(error) or type(error).__name__).split())
    for secret in (_secret(url), os.environ.get(PASSWORD)):
        text = text.replace(secret, "***") if secret else text
    return text[:500]


def _secret(url: str) -> str | None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    with suppress(psycopg.Error):
        return str(conninfo_to_dict(url).get("password") or "") or None
    return None


@contextmanager
def deadline(connection: psycopg.Connection, url: str, seconds: float) -> Iterator[None]:
    """Whatever is done inside ends by then, though the server be frozen: its time-outs hold only while it lives, and
    PostgreSQL's library has none. The connection is lost then. Raises Unanswered."""
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise Unanswered(f"{_place(url)}: no answer within {seconds:g} s") from None
        raise error
    finally:
        timer.cancel()
