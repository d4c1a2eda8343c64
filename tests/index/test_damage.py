"""A damaged index is told in one line, and heals with the next update; nothing that is read crashes a search."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.index.database import DATABASE, DamagedStore, _connect_read_only
from server.index.folder import DAMAGED, index_folder
from server.index.index import Index
from server.index.store import DISTRUSTED, Store
from server.search.query import parse_query
from server.search.searcher import Searcher
from server.settings import Settings

from .conftest import Open
from .content import content

PAGE = 4096


@pytest.fixture
def index(root: Path, open_index: Open) -> Index:
    for i in range(40):
        functions = (f"def f{i}_{j}(value):\n    return value + {i * j}\n" for j in range(5))
        (root / f"m{i}.py").write_text("\n\n".join(functions))
    index = open_index()
    index.update()
    return index


def execute(index: Index, sql: str, *values: object) -> None:
    """As a stray hand would."""
    with sqlite3.connect(index.store.path) as other:
        other.execute(sql, values)
    other.close()


def overwrite(index: Index) -> None:
    """Fill all pages but the first with nonsense, while the index is open."""
    execute(index, "PRAGMA wal_checkpoint(TRUNCATE)")
    size = index.store.path.stat().st_size
    with index.store.path.open("rb+") as file:
        file.seek(PAGE)
        file.write(b"\xa5" * (size - PAGE))


def drop_table(index: Index) -> None:
    execute(index, "DROP TABLE units")


def shorten_a_vector(index: Index) -> None:
    execute(index, "UPDATE embeddings SET vectors = substr(vectors, 2)")


def empty_the_vectors(index: Index) -> None:
    execute(index, "UPDATE embeddings SET vectors = x''")


def spoil_a_vector(index: Index) -> None:
    execute(index, "UPDATE embeddings SET vectors = ?", np.full(index.bundle.dim, np.nan, np.float16).tobytes())


def lose_the_units(index: Index) -> None:
    execute(index, "DELETE FROM units")


def spoil_a_name(index: Index) -> None:
    execute(index, "UPDATE files SET path = CAST(x'ff' AS TEXT) || id")


def flip(index: Index, table: str, column: str, value: str, name: str) -> None:
    """One value of what belongs to a function becomes another that makes as much sense."""
    of_unit = {
        "units": "id IN (SELECT id FROM units WHERE name = ?)",
        "terms": "unit IN (SELECT id FROM units WHERE name = ?)",
        "files": "id IN (SELECT file FROM units WHERE name = ?)",
        "embeddings": "key IN (SELECT key FROM units WHERE name = ?)",
    }
    execute(index, f"UPDATE {table} SET {column} = {value} WHERE {of_unit[table]}", name)


FLIPS = [
    ("units", "name", "'f3_3'"),
    ("units", "start_line", "start_line + 4"),
    ("units", "name_end", "name_end - 1"),
    ("units", "preview", "replace(preview, 'def', 'dex')"),
    ("units", "file", "file + 1"),
    ("terms", "terms", "CAST(substr(terms, 1, length(terms) - 2) || x'0700' AS BLOB)"),
    ("files", "path", "'n3.py'"),
    ("files", "language", "'lua'"),
    ("embeddings", "vectors", "CAST(substr(vectors, 3) || x'0000' AS BLOB)"),
]
DAMAGES = [overwrite, drop_table, shorten_a_vector, empty_the_vectors, spoil_a_vector, lose_the_units, spoil_a_name]
DAMAGES += [partial(flip, table=table, column=column, value=value, name="f3_2") for table, column, value in FLIPS]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_error_and_heals(index: Index, open_index: Open, damage: Callable[[Index], None]) -> None:
    sound = content(index)
    damage(index)
    reader = open_index()
    with pytest.raises(DamagedStore, match=DATABASE):
        Searcher(reader).search(parse_query("f3_2"))
    writer = open_index()
    assert writer.update().pending == 0
    assert any("built anew" in problem for problem in writer.status().problems)
    assert content(writer) == sound
    assert not (writer.folder / DISTRUSTED).exists()


@pytest.mark.parametrize(("table", "column", "value"), FLIPS)
def test_a_server_finds_what_flipped_before_anybody_asks_for_it(
    index: Index, open_index: Open, table: str, column: str, value: str
) -> None:
    sound = content(index)
    flip(index, table, column, value, "f7_1")
    server = open_index()
    server.update(urgent=tuple)
    if (table, column) != ("files", "path"):  # which is a file that came and one that went
        assert any("not as it was stored" in problem for problem in server.status().problems)
    assert content(server) == sound


def test_a_sound_index_is_verified_in_silence(index: Index, open_index: Open) -> None:
    server = open_index()
    assert server.update(urgent=tuple).embedded == 0
    assert server.status().problems == ()


def test_a_nonsensical_count_is_damage(index: Index, open_index: Open) -> None:
    execute(index, "UPDATE meta SET value = '-?' WHERE key = 'pending'")
    with pytest.raises(DamagedStore, match="pending"):
        open_index().status()
    assert open_index().update().files == 40


def test_an_open_index_heals_too(index: Index) -> None:
    overwrite(index)
    assert index.update().files == 40
    assert Searcher(index).search(parse_query("f3_2")).hits


def test_damage_is_kept_once(index: Index) -> None:
    for _ in range(3):
        overwrite(index)
        index.update()
    assert [file.name for file in index.folder.glob("*damaged*")] == [DAMAGED]


def test_what_another_process_began_anew_is_followed_and_not_distrusted(index: Index, open_index: Open) -> None:
    overwrite(index)
    open_index().update()
    assert index.store.replaced()
    index.store.damaged("it is the old one that is damaged")
    assert not index.store.distrusted
    assert index.update().embedded == 0
    assert not index.store.replaced()


def test_an_emptied_cache_is_filled_again(index: Index) -> None:
    shutil.rmtree(index.folder)
    assert index.store.replaced()
    report = index.update()
    assert (report.files, report.embedded > 0) == (40, True)


def test_a_new_database_takes_no_memory_from_one_that_was_deleted_alone(index: Index, open_index: Open) -> None:
    memory = Path(f"{index.store.path}-shm")
    before = memory.stat().st_ino
    index.store.path.unlink()
    assert open_index().status().files == 0
    assert memory.stat().st_ino != before
    assert index.status().files == 40


def test_a_reader_without_rights_sees_what_stands_in_the_log(index: Index) -> None:
    log = Path(f"{index.store.path}-wal")
    assert log.stat().st_size > 0
    reader = Store(_connect_read_only(index.store.path), index.store.path, "it is read-only")
    assert reader.totals() == index.store.totals()


def test_a_cache_in_the_workspace_is_not_indexed(root: Path, bundle: Bundle) -> None:
    (root / "a.py").write_text("def f():\n    pass\n")
    index = Index.open(root, bundle, Settings(cache_dir=root / "cache", threads=1))
    for _ in range(2):
        index.update()
    assert {row[0] for row in content(index)} == {"a.py"}


def test_a_workspace_of_a_long_name_has_an_index(tmp_path: Path, bundle: Bundle, settings: Settings) -> None:
    root = tmp_path / ("ä" * 125)
    root.mkdir()
    (root / "a.py").write_text("def f():\n    pass\n")
    assert Index.open(root, bundle, settings).update().files == 1
    assert len(index_folder(tmp_path, root).name.encode()) < 200
