"""The tables: one PostgreSQL schema for each model, so that vectors of two never mix and each has an index of its own.

`files` and `units` are what the workspaces have, `parts` the vectors (a long unit has several), `terms` in how many
units of a workspace a term is (in hexadecimal, as in `lexemes`). All that belongs to a file is written and deleted in
one transaction, which is why nothing here refers by a foreign key: PostgreSQL would look up every row again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..embed.bundle import Bundle
from ..index.vectors import PATH_WEIGHT
from .connect import OrgError, told

if TYPE_CHECKING:
    import psycopg

FORMAT = 2
"""Raised when a table changes its meaning; each format has schemas of its own."""

_PREFIX = "meaning_"
_CREATING = 0x6D6C7370
"""The advisory lock of who makes tables."""
_M, _EF_CONSTRUCTION = 16, 64
"""HNSW: pgvector's own defaults."""

_TABLES = """
CREATE TABLE workspaces (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, published timestamptz,
  pending int NOT NULL DEFAULT 0, units int NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0);
CREATE TABLE files (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workspace int NOT NULL, path_key bytea NOT NULL,
  path text NOT NULL, language text NOT NULL, mark bytea NOT NULL, digest bytea NOT NULL, units int NOT NULL,
  path_vector halfvec({dim}) NOT NULL, UNIQUE (workspace, path_key));
CREATE TABLE units (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workspace int NOT NULL, file bigint NOT NULL,
  language text NOT NULL, kind text NOT NULL, key bytea NOT NULL, name text NOT NULL, container text NOT NULL,
  start_line int NOT NULL, end_line int NOT NULL, name_line int NOT NULL, name_start int NOT NULL,
  name_end int NOT NULL, head text NOT NULL, preview text NOT NULL, terms bytea NOT NULL, length int NOT NULL,
  lexemes tsvector NOT NULL);
ALTER TABLE units ALTER COLUMN lexemes SET STORAGE MAIN;
CREATE INDEX ON units (file);
CREATE INDEX ON units (workspace);
CREATE INDEX ON units (lower(left(name, 200)));
CREATE INDEX ON units USING gin (lexemes) WITH (fastupdate = off);
CREATE TABLE parts (
  unit bigint NOT NULL, workspace int NOT NULL, file bigint NOT NULL, language text NOT NULL, kind text NOT NULL,
  combined halfvec({dim}) NOT NULL);
CREATE INDEX ON parts (unit);
CREATE INDEX ON parts (file);
CREATE INDEX ON parts (workspace);
CREATE INDEX ON parts USING hnsw (combined halfvec_cosine_ops) WITH (m = {m}, ef_construction = {ef});
CREATE TABLE terms (
  term text NOT NULL, workspace int NOT NULL, units int NOT NULL, PRIMARY KEY (term, workspace));
CREATE INDEX ON terms (workspace)
"""


@dataclass(frozen=True)
class Schema:
    """The schema of one model."""

    name: str
    model: str
    """The model's id, for people."""
    dim: int

    @classmethod
    def of(cls, bundle: Bundle) -> Schema:
        """That of a model, and of all else that its vectors' meaning hangs on."""
        meaning = f"{FORMAT} {bundle.fingerprint} {bundle.dim} {PATH_WEIGHT}"
        return cls(_PREFIX + hashlib.sha256(meaning.encode()).hexdigest()[:16], bundle.id, bundle.dim)

    def enter(self, connection: psycopg.Connection) -> None:
        """Let names mean this schema's tables, until the end of the transaction."""
        connection.execute("SELECT set_config('search_path', %s || ', public', true)", (self.name,))

    def exists(self, connection: psycopg.Connection) -> bool:
        """Whether somebody published with this model."""
        # By the table: what PostgreSQL remembers of names may be older than a lock that was waited for.
        return bool(connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (self.name,)).fetchall())

    def create(self, connection: psycopg.Connection, url: str) -> None:
        """Make the tables unless they are there. Raises OrgError."""
        if self.exists(connection):
            return
        with told(url), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
            if self.exists(connection):
                return
            self._want_pgvector(connection)
            connection.execute(f"CREATE SCHEMA {self.name}".encode())
            comment = f"COMMENT ON SCHEMA {self.name} IS 'meaning-lsp: {_quotable(self.model)}'"
            connection.execute(comment.encode())
            self.enter(connection)
            for statement in _TABLES.format(dim=self.dim, m=_M, ef=_EF_CONSTRUCTION).split(";\n"):
                connection.execute(statement.encode())

    def _want_pgvector(self, connection: psycopg.Connection) -> None:
        import psycopg

        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        except psycopg.Error as error:
            raise OrgError(
                "organisation index: pgvector is not there, and this user cannot bring it in; have an administrator"
                f" run CREATE EXTENSION vector in this database ({str(error).splitlines()[0]})"
            ) from None


def models(connection: psycopg.Connection) -> dict[str, str]:
    """Schema -> model id, of all models that somebody published with."""
    rows = connection.execute(
        "SELECT nspname, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace"
        " WHERE nspname ~ %s ORDER BY 1",
        (f"^{_PREFIX}[0-9a-f]{{16}}$",),
    ).fetchall()
    return {name: comment.removeprefix("meaning-lsp: ") for name, comment in rows}


def _quotable(text: str) -> str:
    """Text that may stand between quotes."""
    return "".join(char for char in text if char.isalnum() or char in " .-_/")
