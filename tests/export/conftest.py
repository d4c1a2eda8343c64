"""What tests of training share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny matrices are not worth a second thread, and sums come in one order."""
    torch = pytest.importorskip("torch", reason="training needs the `export` extra")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
