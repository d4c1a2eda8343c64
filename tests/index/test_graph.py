"""The graph finds what is nearest, from wherever one asks, and after it was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from server.index.graph import NARROW, NARROWEST, WIDEST, Graph, Vectors, _in_8_bits, _view

DIM = 64
WANTED = 10


def of_length_one(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    """In heaps, as code is: 100 subjects of 40."""
    draw = np.random.default_rng(0)
    heaps = np.repeat(draw.normal(size=(100, DIM)), 40, axis=0)
    return of_length_one((heaps + draw.normal(size=heaps.shape)).astype(np.float32))


@pytest.fixture(scope="module")
def graph(vectors: Vectors) -> Graph:
    graph = Graph(DIM)
    graph.add(np.arange(len(vectors)) * 256, vectors, threads=1)
    return graph


def recall(graph: Graph, vectors: Vectors) -> float:
    """Of the WANTED nearest of all, among twice as many that the graph gives, for questions far from all of them."""
    questions = of_length_one(np.random.default_rng(1).normal(size=(50, DIM)).astype(np.float32))
    nearest = np.argsort(-questions @ vectors.T, axis=1)[:, :WANTED]
    found = [graph.search(question, 2 * WANTED) // 256 for question in questions]
    return float(np.mean([np.isin(exact, near).mean() for exact, near in zip(nearest, found, strict=True)]))


def test_hardly_anything_near_is_missed(graph: Graph, vectors: Vectors) -> None:
    assert recall(graph, vectors) > 0.99


def test_a_saved_graph_answers_alike_and_grows(graph: Graph, vectors: Vectors, tmp_path: Path) -> None:
    graph.save(tmp_path / "graph")
    assert recall(Graph.mapped(tmp_path / "graph", DIM), vectors) == recall(graph, vectors)
    grown = Graph.loaded(tmp_path / "graph", DIM)
    grown.add(np.array([7]), -vectors[:1], threads=1)
    assert len(grown) == len(vectors) + 1
    assert grown.search(-vectors[0], 1).tolist() == [7]


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph").write_bytes(b"no graph" * 100)
    with pytest.raises((OSError, ValueError, RuntimeError)):
        Graph.mapped(tmp_path / "graph", DIM)


def test_all_of_8_bits_is_used(vectors: Vectors) -> None:
    small = _in_8_bits(vectors)
    assert (np.abs(small).max(axis=1) == 127).all()
    cosines = np.sum(of_length_one(small.astype(np.float32)) * vectors, axis=1)
    assert cosines.min() > 0.9999
    assert not _in_8_bits(np.zeros(DIM, np.float32)).any()


def test_more_vectors_are_searched_more_widely() -> None:
    views = [_view(size) for size in (0, NARROW, 4 * NARROW, 10**9)]
    assert views == [NARROWEST, NARROWEST, 2 * NARROWEST, WIDEST]
