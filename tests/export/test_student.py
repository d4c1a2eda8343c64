"""A tiny corpus, a tiny student, its bundle: what training, torch and onnxruntime have to agree on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the `export` extra")
ort = pytest.importorskip("onnxruntime", reason="running a bundle needs the `cpu` extra")

from export.asked import WAYS, Data, last_words, prepare  # noqa: E402
from export.beginning import Said, begin, principal, reduced  # noqa: E402
from export.bundle import graph, quantise, write_bundle  # noqa: E402
from export.metrics import held_out_mrr, reciprocal_ranks  # noqa: E402
from export.pairs import Row, encode, thinned  # noqa: E402
from export.student import PLACES, Bags, Student, contrastive, fresh  # noqa: E402
from export.train_student import Recipe, embed, encode_batch, endless_batches, main, rate, train, train_once  # noqa: E402
from server.embed.bundle import Bundle  # noqa: E402
from server.embed.embedder import Embedder  # noqa: E402
from server.index.vectors import combine  # noqa: E402

VERBS = ["open", "close", "parse", "send", "remove", "sort", "merge", "encode"]
NOUNS = ["file", "socket", "tree", "image", "queue", "token", "user", "matrix"]
RECIPE = Recipe(
    runs=1,
    steps=60,
    query_dropout=0.1,
    code_dropout=0.1,
    path_dropout=0.1,
    batch=32,
    neighbours=4,
    ways=(0.7, 0.1, 0.1, 0.1),
    learning_rate=2e-2,
    warm_up=5,
)


def rows() -> list[Row]:
    """A query and its code for every verb and noun. They share no word: code speaks backwards here."""
    return [
        Row(
            "python",
            f"pypi-{noun}",
            f"{verb} the {noun}",
            f"{noun[::-1]}.{verb[::-1]}()",
            f"{verb}_{noun}",
            f"site-packages/{noun}/{verb}ing.py",
        )
        for verb in VERBS
        for noun in NOUNS
    ]


@pytest.fixture(scope="module")
def data() -> Data:
    return prepare(rows(), seed=0)


@pytest.fixture(scope="module")
def student(data: Data) -> Student:
    return train(data, RECIPE)


def bags(*texts: list[int]) -> Bags:
    """One entry for each token: what `encode` packs, unpacked."""
    flat = [(text, place, word) for text in texts for place, word in enumerate(text)]
    return Bags(
        ids=torch.tensor([word for _, _, word in flat]),
        places=torch.tensor([max(i for i, start in enumerate(PLACES) if start <= place) for _, place, _ in flat]),
        counts=torch.ones(len(flat)),
        totals=torch.tensor([float(text.count(word)) for text, _, word in flat]),
        offsets=torch.tensor(np.cumsum([0, *map(len, texts)])[:-1]),
    )


def padded(*texts: list[int], width: int) -> dict[str, np.ndarray]:
    ids = np.zeros((len(texts), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def run(student: Student, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(graph(student).SerializeToString(), providers=["CPUExecutionProvider"])
    (vectors,) = session.run(["vector"], feed)
    return np.asarray(vectors)


def odd_student() -> Student:
    """Untrained, but with weights that no two words or places share and a mix of both poolings."""
    student = fresh(torch.linspace(0.001, 0.9, 50), dim=16)
    with torch.no_grad():
        student.mix.copy_(torch.tensor([0.7, 0.4]))
        student.place_logits.copy_(torch.linspace(1, -1, len(PLACES)))
    return student


def test_training_learns_to_find_each_code_by_its_question(data: Data, student: Student) -> None:
    untrained = fresh(data.frequencies)
    before, after = (
        held_out_mrr(embed(model, data.queries["doc"]), embed(model, data.codes)) for model in (untrained, student)
    )
    assert before < 0.3
    assert after > 0.99


def test_training_is_repeatable(data: Data, student: Student) -> None:
    again = train(data, RECIPE)
    assert torch.equal(again.table, student.table)


def test_onnxruntime_agrees_with_torch() -> None:
    student = odd_student()
    texts = [[3, 4, 5], [7], [9, 9, 9, 2, 2, 40], [*range(2, 50)]]
    expected = student(bags(*texts)).detach().numpy()
    found = run(student, padded(*texts, width=48))
    assert np.abs(found - expected).max() < 0.01  # int8 rows
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_padding_and_neighbours_change_nothing() -> None:
    student = odd_student()
    alone = run(student, padded([3, 4, 4], width=3))
    beside = run(student, padded([3, 4, 4], [*range(2, 30)], width=64))
    assert np.allclose(alone[0], beside[0], atol=1e-6)


def test_a_repeated_word_counts_more_but_less_than_so_many_words() -> None:
    student = odd_student()
    a, b, mixed = (run(student, padded(text, width=9))[0] for text in ([3], [4], [3] * 8 + [4]))
    assert a @ mixed > b @ mixed
    plain_mean = 8 * a + b
    assert a @ mixed < a @ (plain_mean / np.linalg.norm(plain_mean))


def test_an_empty_text_gives_a_finite_vector() -> None:
    assert np.isfinite(run(odd_student(), padded([], width=4))).all()


def test_quantising_loses_at_most_half_a_step() -> None:
    table = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    table[3] = 0
    integers, scales = quantise(table)
    assert integers.dtype == np.int8
    assert (np.abs(integers * scales[:, None] - table) <= scales[:, None] * 0.501).all()


def test_a_bundle_is_read_by_the_embedder_and_finds_its_code(tmp_path: Path, data: Data, student: Student) -> None:
    identity = write_bundle(tmp_path, student, data.tokenizer, {"source": "a test", "licence": "Apache-2.0"})
    embedder = Embedder(Bundle.load(tmp_path), threads=1)
    pairs = rows()
    codes = np.concatenate(embedder.embed_code([(row.code, []) for row in pairs]))
    queries = embedder.embed_queries([row.query for row in pairs])
    assert embedder.id == identity
    assert held_out_mrr(queries, codes) > 0.99


def test_a_bundle_is_named_by_its_content(tmp_path: Path, data: Data, student: Student) -> None:
    facts = {"source": "a test", "licence": "Apache-2.0"}
    first, same = (write_bundle(tmp_path / name, student, data.tokenizer, facts) for name in "ab")
    other = write_bundle(tmp_path / "c", fresh(data.frequencies, seed=9), data.tokenizer, facts)
    assert first == same != other


def test_the_command_line_goes_from_corpus_to_bundle(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, part in (("train", rows()[8:]), ("valid", rows()[:8])):
        lines = (json.dumps(vars(row)) for row in part)
        (corpus / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (corpus / "counts.json").write_text(json.dumps({"train": {"python": 56}}))
    assert main(["--corpus", str(corpus), "--out", str(tmp_path / "bundle"), "--steps", "5"]) == 0
    said = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    assert said["training"]["docstring_code_pairs"] == {"python": 56}
    assert Bundle.load(tmp_path / "bundle").dim == 256


def test_the_loss_is_lower_when_the_right_code_is_nearest() -> None:
    vectors = torch.eye(4)
    assert contrastive(vectors, vectors, 0.05) < contrastive(vectors, vectors.flip(0), 0.05)


def test_every_pair_is_seen_once_an_epoch() -> None:
    batches = endless_batches(np.arange(64) % 8, Recipe(batch=16, neighbours=4))
    epoch = np.concatenate([next(batches) for _ in range(4)])
    assert sorted(epoch) == list(range(64))


def test_few_pairs_make_a_batch_though_they_fill_no_other_group_of_neighbours() -> None:
    assert len(next(endless_batches(np.zeros(100, dtype=np.int64), Recipe(batch=1_024, neighbours=64)))) == 64


def test_neighbours_in_a_batch_are_of_one_package() -> None:
    packages = np.arange(64) % 8
    batch = next(endless_batches(packages, Recipe(batch=16, neighbours=4)))
    assert all(len(set(group)) == 1 for group in packages[batch].reshape(-1, 4))
    assert len(set(packages[batch])) > 1


def test_pairs_are_asked_in_every_way_and_keep_their_code(data: Data, student: Student) -> None:
    pairs = np.arange(len(data))
    by_doc, codes = encode_batch(student, data, pairs, recipe_of("doc"), np.random.default_rng(0))
    assert torch.allclose(by_doc, student(data.queries["doc"].bags(pairs)), atol=1e-6)
    assert torch.allclose(codes, student(data.codes.bags(pairs)), atol=1e-6)
    by_name, nameless = encode_batch(student, data, pairs, recipe_of("name"), np.random.default_rng(0))
    assert torch.allclose(by_name, student(data.queries["name"].bags(pairs)), atol=1e-6)
    assert torch.allclose(nameless, student(data.nameless.bags(pairs)), atol=1e-6)
    mixed, _ = encode_batch(student, data, pairs, Recipe(query_dropout=0, paths=0), np.random.default_rng(0))
    known = {tuple(np.round(v, 4)) for way in WAYS for v in embed(student, data.queries[way])}
    assert {tuple(np.round(v, 4)) for v in mixed.detach().numpy()} <= known


def recipe_of(way: str, paths: float = 0) -> Recipe:
    ways = tuple(float(way == each) for each in WAYS)
    return Recipe(ways=ways, query_dropout=0, code_dropout=0, path_dropout=0, paths=paths)


def test_code_is_weighed_with_its_path_as_in_the_index(data: Data, student: Student) -> None:
    pairs = np.arange(len(data))
    _, placed = encode_batch(student, data, pairs, recipe_of("doc", paths=1), np.random.default_rng(0))
    expected = combine(embed(student, data.codes), embed(student, data.paths))
    assert np.allclose(placed.detach().numpy(), expected, atol=1e-5)


def test_of_a_path_its_end_counts() -> None:
    assert last_words("usr/lib/python3/dist-packages/app/io/reader.py") == "dist-packages app io reader"
    assert last_words("") == ""


@pytest.fixture(scope="module")
def said(data: Data) -> Said:
    """What a model might say that knows of each word its neighbours in the vocabulary."""
    words = torch.randn(len(data.frequencies), 256, generator=torch.Generator().manual_seed(1)) / 16
    pairs = np.arange(0, len(data), 2)
    knows = Student(words, torch.zeros(len(words)))
    return Said(words, pairs, knows(data.queries["doc"].bags(pairs)).detach())


def test_a_student_begins_with_what_is_said_of_words_and_of_doc_comments(data: Data, said: Said) -> None:
    student = fresh(data.frequencies)
    assert begin(student, data, said, seed=0, steps=0) == 0
    assert torch.equal(student.table, said.words)
    before, after = fresh(data.frequencies), fresh(data.frequencies)
    begin(before, data, said, seed=0, steps=0)
    begin(after, data, said, seed=0, steps=100)
    questions = data.queries["question"].bags(said.pairs)
    untold, told = ((each(questions) * said.docs).sum(dim=1).mean().item() for each in (before, after))
    assert untold < 0.3
    assert told > 0.6


def test_training_goes_on_from_there(data: Data, said: Said) -> None:
    student = fresh(data.frequencies, seed=RECIPE.seed)
    begin(student, data, said, RECIPE.seed)
    found = train(data, replace(RECIPE, steps=1, learning_rate=0.0), said)
    assert torch.equal(found.table, student.table)


def test_the_student_is_the_mean_of_its_runs(data: Data) -> None:
    recipe = replace(RECIPE, steps=3)
    each = [fresh(data.frequencies) for _ in range(2)]
    for seed, one in enumerate(each):
        train_once(one, data, replace(recipe, seed=seed))
    mean = train(data, replace(recipe, runs=2))
    assert not torch.allclose(each[0].table, each[1].table)
    for found, *values in zip(mean.parameters(), *(one.parameters() for one in each), strict=True):
        assert torch.allclose(found, torch.stack(values).mean(dim=0), atol=1e-6)


def test_reduced_vectors_keep_who_is_near_whom() -> None:
    random = np.random.default_rng(0)
    groups = random.normal(size=(4, 24))[np.arange(40) % 4]
    vectors = (groups + 0.1 * random.normal(size=(40, 24))).astype(np.float32)
    found = reduced(vectors, principal(vectors, 8))
    assert found.shape == (40, 8)
    assert principal(found[:5], 20).shape == (20, 8)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    nearest = (found @ found.T - 2 * np.eye(40)).argmax(axis=1)
    assert (nearest % 4 == np.arange(40) % 4).all()


def test_the_learning_rate_rises_and_falls() -> None:
    recipe = Recipe(steps=100, warm_up=10)
    rates = [rate(step, recipe) for step in range(101)]
    assert rates[0] < rates[10] > rates[50] > rates[100] > 0


def test_bags_count_words_and_never_are_empty(data: Data) -> None:
    texts = encode(["open open file", "→"], data.tokenizer, 10)
    bag = texts.bags(np.array([0, 1]))
    words = [data.tokenizer.id_to_token(word) for word in bag.ids.tolist()]
    assert dict(zip(words, bag.counts.tolist(), strict=True)) == {"open": 2, "file": 1, "[UNK]": 1}


def test_bags_tell_stretches_of_a_text_apart_and_total_them(data: Data) -> None:
    bag = encode(["open file tree user open open"], data.tokenizer, 10).bags(np.array([0]))
    opens = [
        (place, count, total)
        for word, place, count, total in zip(
            *(t.tolist() for t in (bag.ids, bag.places, bag.counts, bag.totals)), strict=True
        )
        if data.tokenizer.id_to_token(word) == "open"
    ]
    assert opens == [(0, 1, 3), (1, 2, 3)]


def test_thinned_bags_lose_their_share_and_none_is_empty(data: Data) -> None:
    whole = data.codes.bags(np.arange(len(data.codes)))
    bag = thinned(whole, 0.5, np.random.default_rng(0))
    assert len(whole.ids) * 0.4 < len(bag.ids) < len(whole.ids)
    assert len(bag.offsets) == len(whole.offsets)
    assert set(bag.text_of.tolist()) == set(range(len(data.codes)))
    first = whole.ids[whole.offsets]
    assert torch.equal(bag.ids[bag.offsets], first)


def test_a_tie_counts_against_the_query() -> None:
    same = np.ones((2, 1), dtype=np.float32)
    assert reciprocal_ranks(same, same, np.arange(2), limit=10).tolist() == [0.5, 0.5]
