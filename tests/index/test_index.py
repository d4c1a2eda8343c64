"""The index is the tree: after any update, whatever came before."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.index import index as index_module
from server.index import plan, postings, prepare, vectors, workers
from server.index.database import DATABASE, StoreError
from server.index.index import Index
from server.search.query import parse_query
from server.search.searcher import Searcher
from server.settings import Settings
from tests.embed.tiny import write_bundle

from .conftest import Open
from .content import content, full_text, neighbours, orphans


def function(name: str, *words: int) -> str:
    return f"def {name}():\n    return {' + '.join(f'w{word}' for word in words)}\n"


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def test_a_tree_is_indexed_once(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1) + "\n\n" + function("two", 2))
    write(root, "pkg/b.py", function("three", 3))
    index = open_index()
    first = index.update()
    assert (first.files, first.units, first.embedded, first.reused, first.pending) == (2, 3, 3, 0, 0)
    second = index.update()
    assert (second.files, second.units, second.embedded, second.reused) == (2, 3, 0, 3)


def test_one_edit_is_one_embedding(root: Path, open_index: Open) -> None:
    functions = [function(f"f{i}", i) for i in range(30)]
    write(root, "a.py", "\n\n".join(functions))
    index = open_index()
    index.update()
    functions[7] = function("f7", 7, 8)
    write(root, "a.py", "\n\n".join(functions))
    assert index.update().embedded == 1


def test_lines_above_embed_nothing_and_move_the_ranges(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1) + "\n\n" + function("two", 2))
    index = open_index()
    index.update()
    write(root, "a.py", "\n\n\n" + (root / "a.py").read_text())
    assert index.update().embedded == 0
    assert [row[8] for row in content(index)][-1] == 7


def test_a_moved_folder_embeds_nothing(root: Path, open_index: Open) -> None:
    for i in range(20):
        write(root, f"old/m{i}.py", function(f"f{i}", i))
    index = open_index()
    index.update()
    (root / "old").rename(root / "new")
    report = index.update()
    assert (report.embedded, report.removed, report.files) == (0, 20, 20)
    assert all(path.startswith("new/") for path, *_ in content(index))


def test_a_reverted_edit_embeds_nothing(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    write(root, "a.py", function("one", 2))
    index.update()
    write(root, "a.py", function("one", 1))
    assert index.update().embedded == 0


def test_unused_embeddings_are_bounded_and_the_oldest_go_first(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.index.index.SPARE_EMBEDDINGS", 3)
    write(root, "b.py", function("kept", 30))
    index = open_index()
    for word in range(10):
        write(root, "a.py", function("one", word))
        index.update()
    [(count,)] = index.store.rows("SELECT count(*) FROM embeddings")
    assert count == 2 + 2 + 3  # units, paths, spare
    write(root, "a.py", function("one", 8))
    assert index.update().embedded == 0
    write(root, "a.py", function("one", 0))
    assert index.update().embedded == 1
    assert neighbours(index).keys() == {"a.py:one", "b.py:kept"}


def test_an_edit_that_keeps_size_and_time_is_seen(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    before = (root / "a.py").stat()
    write(root, "a.py", function("one", 2))
    os.utime(root / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert index.update().embedded == 1


def test_a_deleted_file_leaves_nothing(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    write(root, "b.py", function("two", 2))
    index = open_index()
    index.update()
    (root / "a.py").unlink()
    report = index.update()
    assert (report.files, report.units, report.removed) == (1, 1, 1)
    assert not orphans(index)
    assert neighbours(index).keys() == {"b.py:two"}


def test_a_binary_file_is_known_and_has_no_units(root: Path, open_index: Open) -> None:
    write(root, "a.py", b"\0\1\2" * 100)
    index = open_index()
    report = index.update()
    assert (report.files, report.units) == (0, 0)
    assert content(index)[0][3]


def test_an_empty_tree_is_an_empty_index(open_index: Open) -> None:
    index = open_index()
    report = index.update()
    assert (report.files, report.units, report.pending) == (0, 0, 0)
    assert not neighbours(index)


def test_what_a_cancelled_update_wrote_stays(root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.index.plan.BATCH_UNITS", 4)
    for i in range(20):
        write(root, f"m{i}.py", function(f"f{i}", i))
    index = open_index()
    seen = [0]

    def progress(done: int, total: int) -> None:
        seen.append(done)

    first = index.update(progress, lambda: seen[-1] >= 6)
    assert 0 < first.files < 20
    assert first.pending == 20 - seen[-1]
    second = open_index().update()
    assert (second.files, second.pending) == (20, 0)
    assert second.embedded == 20 - first.embedded


def test_worker_processes_find_what_one_finds(
    root: Path, open_index: Open, tmp_path: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MUCH", 1)
    monkeypatch.setattr(workers, "WORTH_MORE", 1)
    for i in range(40):
        write(root, f"m{i}.py", "\n\n".join(function(f"g{i}_{j}", j) for j in range(20)))
    alone = Index.open(root, bundle, Settings(cache_dir=tmp_path / "other", threads=1))
    alone.update()
    index = open_index()
    with workers.Workers(2) as two:
        index.update(workers=two)
    assert content(index) == content(alone)


def test_vectors_in_a_file_are_those_in_memory(root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(40):
        write(root, f"m{i}.py", function(f"f{i}", i, (i * 7) % 40))
    index = open_index()
    index.update()
    in_memory = neighbours(index)
    monkeypatch.setattr(vectors, "TAIL_LIMIT", 10)
    assert index.vectors.compact()
    assert list(index.folder.glob("vectors-*.usearch"))
    assert neighbours(index) == pytest.approx(in_memory, abs=1e-3)
    assert neighbours(open_index()) == pytest.approx(in_memory, abs=1e-3)


def test_vectors_of_two_models_lie_side_by_side(root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(40):
        write(root, f"m{i}.py", function(f"f{i}", i))
    monkeypatch.setattr(vectors, "TAIL_LIMIT", 10)
    index = open_index()
    index.update()
    [of_one] = index.folder.glob("vectors-*.usearch")
    other = vectors.VectorIndex(index.store, index.folder, index.bundle, threads=1)
    monkeypatch.setattr(vectors, "PATH_WEIGHT", 0.25)  # other vectors under the same database, as another model's are
    assert other.compact()
    assert of_one in index.folder.glob("vectors-*.usearch")
    assert len([*index.folder.glob("vectors-*.usearch")]) == 2


def _with_main_files(root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index of 40 files, more than its tails hold: it has written its derived files."""
    for i in range(40):
        write(root, f"m{i}.py", function(f"f{i}", i))
    monkeypatch.setattr(vectors, "TAIL_LIMIT", 10)
    monkeypatch.setattr(postings, "TAIL_LIMIT", 10)
    index = open_index()
    index.update()
    return index


@pytest.mark.parametrize("kind", ["vectors-*.usearch", "vectors-*.f16", "postings-*.segment"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "deleted"])
def test_a_damaged_derived_file_is_told_and_loses_nothing(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch, damage: str, kind: str
) -> None:
    index = _with_main_files(root, open_index, monkeypatch)
    expected, words = neighbours(index), full_text(index)
    index.close()
    [file] = index.folder.glob(kind)
    data = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        file.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    else:
        file.unlink()
    again = open_index()
    assert neighbours(again) == pytest.approx(expected, abs=1e-3)
    assert full_text(again) == words
    assert any("damaged" in problem for problem in again.status().problems)
    again.update()
    assert not again.status().problems


def test_files_that_a_kill_left_are_gone_after_the_next_update(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = _with_main_files(root, open_index, monkeypatch)
    kept = sorted(index.folder.glob("*-*-*"))
    assert sorted(file.suffix for file in kept) == [".f16", ".segment", ".usearch"]
    for name in ("vectors-7-0badcafe.usearch", "vectors-4711.usearch.tmp", "vectors-7-a.f16", "postings-7-a.segment"):
        (index.folder / name).write_bytes(kept[0].read_bytes()[:100])
    open_index().update()
    assert sorted([*index.folder.glob("vectors-*"), *index.folder.glob("postings-*")]) == sorted(kept)


def test_what_lost_all_of_its_units_is_whole(root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit in ((vectors, "TAIL_LIMIT"), (postings, "TAIL_LIMIT"), (postings, "GONE_LIMIT")):
        monkeypatch.setattr(module, limit, 10)
    for i in range(40):
        write(root, f"m{i}.py", function(f"f{i}", i))
    index = open_index()
    index.update()
    for file in root.glob("*.py"):
        file.unlink()
    index.update()
    assert not index.problems
    assert not Searcher(index).search(parse_query("f3")).hits
    write(root, "n.py", function("f3", 3))
    index.update()
    assert not index.problems
    assert Searcher(index).search(parse_query("f3")).hits


def test_paths_are_as_near_in_the_main_file_as_in_the_database(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = np.linspace(-1, 1, open_index().bundle.dim, dtype=np.float32)
    for main_files in range(1, 3):  # the second is made of the first and what came
        for i in range(40):
            write(root, f"m{main_files}/n{i}.py", function(f"f{main_files * i}", i))
        index = open_index()
        monkeypatch.setattr(vectors, "TAIL_LIMIT", 10_000)
        index.update()
        files = [file for (file,) in index.store.rows("SELECT id FROM files ORDER BY id DESC")]
        from_database = index.paths.cosines(query, files)
        monkeypatch.setattr(vectors, "TAIL_LIMIT", 10)
        index.vectors.compact()
        cosines, here = index.vectors.path_cosines(query, np.array(files))
        assert here.all()
        assert cosines.any()
        assert np.allclose(cosines, from_database)
        assert np.allclose(index.paths.cosines(query, [*files, 10**6]), [*from_database, 0])
    assert len([*index.folder.glob("vectors-*")]) == 2


def test_another_model_is_embedded_beside_the_first(
    root: Path, open_index: Open, tmp_path: Path, settings: Settings
) -> None:
    for i in range(10):
        write(root, f"m{i}.py", function(f"f{i}", i))
    open_index().update()
    other = Bundle.load(write_bundle(tmp_path / "other", changed={"id": "other"}))
    assert Index.open(root, other, settings).update().embedded == 10
    assert len(neighbours(Index.open(root, other, settings))) == 10
    back = open_index()
    assert back.update().embedded == 0
    assert len(neighbours(back)) == 10


def test_a_file_that_is_no_database_is_kept_aside_and_told(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.close()
    for file in index.folder.glob(DATABASE + "*"):
        file.unlink()
    (index.folder / DATABASE).write_bytes(b"no database at all, but a diary" * 100)
    again = open_index()
    assert again.update().files == 1
    assert any("built anew" in problem for problem in again.status().problems)
    [aside] = index.folder.glob("*damaged*")
    assert aside.read_bytes().startswith(b"no database at all")


def test_an_index_of_a_newer_version_is_refused_and_untouched(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    index.store._db.execute("PRAGMA user_version = 99")
    index.close()
    before = (index.folder / DATABASE).read_bytes()
    with pytest.raises(StoreError, match="newer"):
        open_index()
    assert (index.folder / DATABASE).read_bytes() == before


def test_an_index_of_an_older_version_is_built_anew(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    index.store._db.execute("PRAGMA user_version = 0")
    index.close()
    again = open_index()
    assert again.update().files == 1
    assert again.status().problems == ()
    assert not [*index.folder.glob("*damaged*")]


def test_what_other_code_made_is_made_again_file_by_file_and_answers_until_then(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(root, f"{name}.py", function(name, 1))
    index = open_index()
    index.update()
    ids = index.store.rows("SELECT id FROM units ORDER BY id")
    made = index.store.rows("SELECT maker FROM files")
    for module in (index_module, plan, prepare):
        monkeypatch.setattr(module, "units_version", lambda: "another")
    index.update(within=["a.py"])
    assert index.store.rows("SELECT maker FROM files ORDER BY path") == [("another",), made[1]]
    report = index.update()
    assert index.store.rows("SELECT DISTINCT maker FROM files") == [("another",)]
    assert index.store.rows("SELECT id FROM units ORDER BY id") == ids
    assert (report.embedded, report.units) == (0, 2)


def test_the_index_is_its_owners_alone(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    assert index.folder.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in index.folder.iterdir())


def test_a_cache_folder_that_cannot_be_made_is_told(root: Path, bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create the index folder"):
        Index.open(root, bundle, Settings(cache_dir=tmp_path / "file" / "cache"))


def test_a_changed_ignore_file_is_taken_up(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    write(root, "gen/b.py", function("two", 2))
    index = open_index()
    index.update()
    write(root, ".gitignore", "gen/\n")
    index.update()
    assert {row[0] for row in content(index) if row[4]} <= {"a.py", ".gitignore"}
    (root / ".gitignore").unlink()
    assert index.update().embedded == 0
    assert "gen/b.py" in {row[0] for row in content(index)}


def test_settings_decide_what_is_indexed(root: Path, bundle: Bundle, settings: Settings) -> None:
    write(root, "a.py", function("one", 1))
    write(root, "big.py", function("two", 2) * 200)
    small = replace(settings, max_file_bytes=1_000, exclude=("a.*",))
    assert Index.open(root, bundle, small).update().files == 0
    assert Index.open(root, bundle, settings).update().files == 2


def test_the_workspace_may_be_deleted(root: Path, open_index: Open) -> None:
    write(root, "a.py", function("one", 1))
    index = open_index()
    index.update()
    shutil.rmtree(root)
    root.mkdir()
    assert index.update().units == 0


def test_a_search_among_some_units_finds_all_of_them(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(40):
        write(root, f"m{i}.py", function(f"f{i}", i, (i * 7) % 40))
    index = open_index()
    index.update()
    monkeypatch.setattr(vectors, "TAIL_LIMIT", 10)
    assert index.vectors.compact()
    for i in range(40, 45):  # these are in the tail
        write(root, f"m{i}.py", function(f"f{i}", i, 3))
    monkeypatch.setattr(vectors, "TAIL_LIMIT", 1_000)
    index.update()
    index.vectors.follow()
    query = np.full(index.bundle.dim, index.bundle.dim**-0.5, np.float32)
    units, cosines = index.vectors.search(query, 1_000)
    assert len(units) == 45
    assert np.array_equal(np.sort(-cosines), -cosines)
    some = units % 3 > 0
    found, scores = index.vectors.search_among(query, units[some], 1_000)
    assert dict(zip(found, scores, strict=True)) == pytest.approx(dict(zip(units[some], cosines[some], strict=True)))
    assert index.vectors.search_among(query, units[some], 5)[0].tolist() == found[:5].tolist()
    assert not len(index.vectors.search_among(query, np.empty(0, np.int64), 5)[0])
    assert index.vectors.cosines(query, units) == pytest.approx(cosines)
    assert index.vectors.cosines(query, np.array([units.max() + 1])).tolist() == [0]


def test_a_file_that_is_too_much_for_its_parser_is_named(root: Path, open_index: Open) -> None:
    write(root, "deep.scala", "a +\nb *\n" * 10_000)
    index = open_index()
    index.update()
    named = f"{root / 'deep.scala'}: too much for its parser; found as plain text"
    assert index.problems == [named]
    again = open_index()
    again.update()
    assert again.status().problems == (named,)  # as long as it is so
    assert again.problems == []  # and told once
    write(root, "deep.scala", "def shallow = 1\n")
    index.update()
    assert index.problems == []
    assert again.status().problems == ()


def test_what_changes_in_the_midst_of_an_update_is_not_written_over_by_what_was_read_before(
    root: Path, open_index: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.index.plan.BATCH_UNITS", 1)
    (root / "kept").mkdir()
    for path in ("a.py", "b.py", "kept/c.py", "d.py"):
        (root / path).write_text(f"def {path[-4]}():\n    return 1\n")
    changes = iter(["b.py", "kept"])

    def urgent() -> set[str]:
        """A file is edited and a folder deleted, after a worker has read both."""
        changed = next(changes, None)
        if changed == "b.py":
            (root / "b.py").write_text("def edited():\n    return 2\n")
        elif changed:
            shutil.rmtree(root / changed)
        return {changed} if changed else set()

    with workers.Workers(1) as one:
        report = open_index().update(workers=one, urgent=urgent)
    assert (report.files, report.pending) == (3, 0)
    assert [row[0] for row in open_index().store.rows("SELECT name FROM units ORDER BY name")] == ["a", "d", "edited"]
