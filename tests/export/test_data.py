"""Pairs: what is read and refused, what is held out, which batches they make, and which negatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from export.data import Batches, Example, held_out, read_data, without
from export.errors import ExportError
from export.negatives import NONE, mine

from . import pairs


def examples(*languages: str) -> list[Example]:
    return [Example(**row) for language in languages or ("python",) for row in pairs.rows(language)]


def test_lines_give_their_pairs_in_order(tmp_path: Path) -> None:
    path = pairs.write(tmp_path / "made.jsonl", [*pairs.rows(), *pairs.rows()])
    assert read_data([path]) == examples()


def test_language_and_source_may_be_left_out(tmp_path: Path) -> None:
    (example,) = read_data([pairs.write(tmp_path / "mine.jsonl", [{"query": "q", "code": "c"}])])
    assert example.group == ("mine", "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "made.jsonl:2: not JSON"),
        ("[1]", "made.jsonl:2: list instead of an object"),
        ('{"query": "q"}', "made.jsonl:2: `code` is missing"),
        ('{"query": "  ", "code": "c"}', 'made.jsonl:2: `query` is "  "'),
        ('{"query": "q", "code": 7}', "made.jsonl:2: `code` is 7"),
        ('{"query": "q", "code": "c", "language": null}', "made.jsonl:2: `language` is null"),
    ],
)
def test_a_bad_line_is_told_by_its_number(line: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text('{"query": "q", "code": "c"}\n' + line + "\n")
    with pytest.raises(ExportError) as problem:
        read_data([path])
    assert told in str(problem.value)


def test_what_is_no_text_or_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe")
    for name, told in (("x.jsonl", "not UTF-8"), ("y.jsonl", "No such file")):
        with pytest.raises(ExportError, match=told):
            read_data([tmp_path / name])


def test_a_folder_gives_what_its_doc_comments_say(tmp_path: Path) -> None:
    code = tmp_path / "app"
    (code / "tests").mkdir(parents=True)
    body = "    total = price * count\n    return total - rebate(total)\n"
    text = f'def bill(price, count):\n    """Compute what a customer has to pay."""\n{body}'
    (code / "bill.py").write_text(text)
    (code / "copy.py").write_text(text)  # A near-duplicate.
    (code / "tests" / "test_bill.py").write_text(text.replace("bill", "test"))
    (example,) = read_data([code])
    assert example.query == "Compute what a customer has to pay"
    assert "total - rebate" in example.code
    assert "customer" not in example.code
    assert example.group == ("app", "python")


def test_a_folder_without_doc_comments_has_no_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    with pytest.raises(ExportError, match="no pairs; give one JSON object a line"):
        read_data([tmp_path])


def test_what_is_held_out_is_not_trained_on_nor_is_its_near_duplicate() -> None:
    some = examples()
    copies = [Example(e.query + " twice", e.code.replace("\n", "\n\n"), e.language, e.source) for e in some]
    train, valid = held_out([*some, *copies], most=3)
    assert len(valid) == 3
    assert not {e.code_key for e in train} & {e.code_key for e in valid}
    assert held_out([*copies, *some], most=3)[1] == valid
    assert not without(valid, valid)


def test_batches_are_of_one_language_and_hold_every_example_once_an_epoch() -> None:
    some = [*examples("python", "go"), *(Example(**row) for row in pairs.rows("go", "other")[:5])]
    batches = Batches(some, 16, seed=1)
    epoch = [batches.at(step) for step in range(batches.epoch_steps)]
    assert all(len({some[number].group for number in batch}) == 1 for batch in epoch)
    assert sorted(np.concatenate(epoch)) == list(range(len(some)))
    assert len({some[batch[0]].group for batch in epoch[:3]}) > 1  # The groups are mixed.


def test_the_order_is_of_the_seed_and_new_every_epoch() -> None:
    some = examples()
    one, same, other = (Batches(some, 16, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.at(7), same.at(7))
    assert not np.array_equal(one.at(0), other.at(0))
    assert not np.array_equal(one.at(0), one.at(one.epoch_steps))


def test_no_two_pairs_of_a_kind_cannot_be_contrasted() -> None:
    with pytest.raises(ExportError, match="nothing to tell a pair from"):
        Batches([examples("go")[0], examples("python")[0]], 16, seed=0)


def test_negatives_are_the_nearest_wrong_answers() -> None:
    codes = ["alpha one", "beta two", "gamma three", "delta four"]
    some = [Example(f"query {at}", text, "python", "s") for at, text in enumerate(codes)]
    near = np.array([[0.9, 0.5, 0.7, 0.1]] * 4, dtype=np.float32)
    found = mine(some, range(4), 2, lambda texts: near, lambda texts: np.eye(4, dtype=np.float32))
    assert [found[at].tolist() for at in range(4)] == [[2, 1], [0, 2], [0, 1], [0, 2]]


def test_duplicates_of_the_positive_and_other_languages_never_are_negatives() -> None:
    some = [
        Example("open it", "def open_it(path): return open(path)", "python", "s"),
        Example("other words", "def open_it(path):\n    return open( path )", "python", "s"),  # Its near-duplicate.
        Example("Open  it", "with path as stream: yield stream.read()", "python", "s"),  # Another answer to it.
        Example("close it", "def close_it(path): path.close(); del path", "python", "s"),
        Example("close it in go", "func closeIt(f File) error { return f.Close() }", "go", "s"),
    ]

    def same(texts: object) -> np.ndarray:
        return np.ones((len(texts), 1), dtype=np.float32)  # type: ignore[arg-type]

    found = mine(some, range(5), 3, same, same)
    assert found[0].tolist() == [3, NONE, NONE]
    assert found[1].tolist() == [2, 3, NONE]
    assert found[4].tolist() == [NONE] * 3


def test_only_what_is_asked_for_is_mined() -> None:
    def same(texts: object) -> np.ndarray:
        return np.ones((len(texts), 1), dtype=np.float32)  # type: ignore[arg-type]

    found = mine(examples(), [3, 8, 11], 2, same, same)
    assert {number: other.tolist() for number, other in found.items()} == {3: [8, 11], 8: [3, 11], 11: [3, 8]}
