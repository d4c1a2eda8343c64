"""Threads that share an index never wait for each other in a circle."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from server.embed.bundle import Bundle
from server.index.index import Index
from server.index.store import Store
from server.settings import Settings
from tests.embed.tiny import DIM, write_bundle


def test_a_search_in_a_snapshot_and_a_follower_do_not_lock_each_other_out(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path / "model"))
    (tmp_path / "code").mkdir()
    index = Index.open(tmp_path / "code", bundle, Settings(cache_dir=tmp_path / "cache", threads=1))
    follower = threading.Thread(target=index.vectors.follow, daemon=True)

    def search() -> None:
        with index.store.snapshot():
            follower.start()
            time.sleep(0.05)  # now it waits for the store, and must not have the vectors
            index.vectors.search(np.zeros(DIM, np.float32), 1)

    searcher = threading.Thread(target=search, daemon=True)
    searcher.start()
    searcher.join(5)
    follower.join(5)
    assert not searcher.is_alive()
    assert not follower.is_alive()
    index.close()


def test_many_may_open_a_new_index_at_the_same_time(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        with ThreadPoolExecutor(4) as threads:
            stores = list(threads.map(lambda _, folder=folder: Store.open(folder), range(4)))
        for store in stores:
            assert store.totals().units == 0
            store.close()


def test_who_makes_an_index_takes_no_log_from_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = Path.unlink

    def late(path: Path, missing_ok: bool = False) -> None:
        time.sleep(0.03)
        at_once(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", late)
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda _: Store.open(tmp_path), range(4)))
    for store in stores:
        store.close()
