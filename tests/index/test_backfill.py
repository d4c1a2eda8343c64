"""A further model's vectors come a little at a time, the useful ones first, and only of what is indexed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from server.embed.bundle import Bundle
from server.embed.embedder import Embedder
from server.embed.pace import Pace
from server.index import backfill as module
from server.index import embeddings
from server.index.backfill import LOCK, Backfill
from server.index.embeddings import Embeddings
from server.index.index import Index
from server.index.opening import writing
from server.index.vectors import Vectors
from server.index.workers import Workers
from server.settings import Settings
from tests.embed.tiny import write_bundle

from .conftest import Open


class Told(Pace):
    """Tells which texts were embedded, in their order."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self.texts: list[str] = []

    def embed_code(self, texts: Sequence[tuple[str, Sequence[int]]], seconds: float, least: int) -> list[Vectors]:
        found = super().embed_code(texts, seconds, least)
        self.texts += [text for text, _ in texts[: len(found)]]
        return found


class Filling:
    """An index that the first model has filled, and a second one that is going to."""

    def __init__(self, root: Path, settings: Settings, bundle: Bundle, workers: Workers) -> None:
        self.index = Index.open(root, bundle, settings)
        self.pace = Told(self.index.embedder)
        self.workers = workers
        self.lefts: list[int] = []

    def run(
        self,
        stopped: Callable[[], bool] = lambda: False,
        asked: Callable[[], Iterable[str]] = tuple,
        rank: Callable[[str], int] = lambda _: 0,
    ) -> bool:
        with ThreadPoolExecutor(1) as background:
            backfill = Backfill(self.index, self.pace, self.workers, background, stopped, asked, rank)
            return backfill.run(lambda: self.lefts.append(backfill.left))


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1) as workers:
        yield workers


@pytest.fixture
def other(tmp_path: Path) -> Bundle:
    return Bundle.load(write_bundle(tmp_path / "other", changed={"id": "tiny-2"}, seed=3))


@pytest.fixture
def filling(root: Path, settings: Settings, open_index: Open, other: Bundle, workers: Workers) -> Iterator[Filling]:
    for name in ("a", "b", "c"):
        (root / f"{name}.py").write_text(f"def {name}():\n    return 'w1 w2 {name}'\n")
    index = open_index()
    index.update()
    index.close()
    filling = Filling(root, settings, other, workers)
    yield filling
    filling.index.close()


def test_it_makes_the_vectors_that_an_update_would_make(
    filling: Filling, root: Path, settings: Settings, other: Bundle, tmp_path: Path
) -> None:
    assert filling.run()
    assert filling.lefts == sorted(filling.lefts, reverse=True)
    assert filling.index.update().embedded == 0
    fresh = Index.open(root, other, Settings(cache_dir=tmp_path / "fresh", threads=1))
    fresh.update()
    sql = "SELECT key, vectors FROM embeddings WHERE model = ? ORDER BY key"
    assert filling.index.store.rows(sql, (other.fingerprint,)) == fresh.store.rows(sql, (other.fingerprint,)) != []


def test_nothing_is_computed_twice(filling: Filling) -> None:
    assert filling.run()
    before = len(filling.pace.texts)
    assert filling.run()
    assert len(filling.pace.texts) == before


def test_what_it_has_done_stays_when_it_is_stopped(filling: Filling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 1)
    assert not filling.run(stopped=lambda: len(filling.lefts) > 1)
    done = len(filling.pace.texts)
    assert done
    assert filling.run()
    assert len(filling.pace.texts) == len(set(filling.pace.texts)) > done


def test_what_somebody_asked_for_goes_first_then_what_matters_most(
    filling: Filling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 1)
    assert filling.run(asked=lambda: ["no such file", "c.py"], rank=lambda path: int(path == "a.py"))
    functions = [
        text[text.index("def ")] + text[text.index("def ") + 4] for text in filling.pace.texts if "def" in text
    ]
    assert functions == ["dc", "db", "da"]


def test_a_file_that_changed_waits_for_the_update(filling: Filling, root: Path) -> None:
    (root / "b.py").write_text("def b():\n    return 'w9'\n")
    (root / "c.py").unlink()
    assert not filling.run()
    assert not any("w9" in text for text in filling.pace.texts)
    filling.index.update()
    assert filling.run()


def test_the_earlier_model_can_answer_as_long_as_it_knows_more(
    filling: Filling, root: Path, open_index: Open, bundle: Bundle
) -> None:
    assert filling.index.earlier_model() == bundle.folder
    (root / "c.py").write_text("def c():\n    return 'w9'\n")
    assert not filling.run()
    assert sum(filling.index.embeddings.missing().values()) == 2
    assert filling.index.earlier_model() == bundle.folder
    filling.index.update()
    assert filling.index.earlier_model() is None
    index = open_index()
    assert index.earlier_model() == filling.index.bundle.folder
    index.close()


def test_one_process_does_it(filling: Filling) -> None:
    with FileLock(filling.index.folder / LOCK):
        assert not filling.run()
    assert filling.pace.texts == []


def test_it_waits_for_who_writes_unless_it_is_stopped(filling: Filling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    with writing(filling.index.folder, 0):
        assert not filling.run(stopped=lambda: bool(filling.pace.texts))
    assert not filling.index.embeddings.known(row[0] for row in filling.index.store.rows("SELECT key FROM units"))


def test_vectors_of_models_of_long_ago_go(
    filling: Filling, bundle: Bundle, other: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "KEPT_MODELS", 2)
    assert filling.run()
    store = filling.index.store
    models = "SELECT DISTINCT model FROM embeddings ORDER BY 1"
    filling.index.embeddings.note_use(answers=False)
    assert store.rows(models) == [(bundle.fingerprint,), (other.fingerprint,)]
    third = Bundle.load(write_bundle(tmp_path / "third", changed={"id": "tiny-3"}))
    Embeddings(store, third).note_use(answers=True)
    assert store.rows(models) == [(other.fingerprint,)]
    assert store.rows("SELECT key FROM meta WHERE key LIKE 'vectors tiny-1 %'") == []


def test_equal_ids_of_other_weights_do_not_share_vectors(
    filling: Filling, bundle: Bundle, tmp_path: Path, root: Path, settings: Settings
) -> None:
    retrained = Bundle.load(write_bundle(tmp_path / "retrained", changed={"id": bundle.id}, seed=9))
    index = Index.open(root, retrained, settings)
    assert len(index.embeddings.missing()) == 3
    assert index.earlier_model() == bundle.folder
    index.close()


def test_missing_vectors_are_counted_where_one_asks(filling: Filling, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "e.py").write_text("def e():\n    return 'w1'\n\n\ndef f():\n    return 'w2'\n")
    (root / "d.py").write_text("def g():\n    return 'w3'\n")
    filling.index.update()
    of_two = Embeddings(filling.index.store, filling.index.bundle)
    assert of_two.missing() == {}
    filling.index.store.rows("SELECT 1")
    with filling.index.store.transaction():
        filling.index.store.write("DELETE FROM embeddings")
    assert of_two.missing() == {"a.py": 2, "b.py": 2, "c.py": 2, "d.py": 2, "d/e.py": 3}
    assert of_two.missing(["d"]) == {"d/e.py": 3}
    assert of_two.missing(["d.py", "a.py"]) == {"a.py": 2, "d.py": 2}
