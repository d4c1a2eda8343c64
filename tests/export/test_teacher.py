"""A tiny teacher: it learns both directions, what it samples is repeatable and taken up again, and it scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="teachers need the `export` extra")
pytest.importorskip("transformers", reason="teachers need the `export` extra")

from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: E402

from export.data import Example, read_data  # noqa: E402
from export.errors import ExportError  # noqa: E402
from export.hub import CheckpointError  # noqa: E402
from export.journal import read_log  # noqa: E402
from export.samples import Order, enlarged, read_samples, round_trip, write_samples  # noqa: E402
from export.teacher import CHECKPOINT, main  # noqa: E402
from export.teaching import Size, new_teacher  # noqa: E402
from export.writer import (  # noqa: E402
    DOCUMENT,
    FEW_SHOT,
    IMPLEMENT,
    SEARCH,
    Sampling,
    Writer,
    load_writer,
    save_writer,
)

from .cut_short import failing_at  # noqa: E402
from .pairs import NOUNS, VERBS, rows, write  # noqa: E402

STEPS = ["--steps", "120", "--batch", "16", "--learning-rate", "1e-2", "--dim", "32", "--layers", "1"]
QUICK = [*STEPS, "--precision", "fp32", "--threads", "1", "--vocabulary", "300"]
CALM = Sampling(temperature=0.1, top_p=0.9, most_tokens=24)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "made.jsonl", rows())


@pytest.fixture(scope="module")
def taught(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder."""
    out = tmp_path_factory.mktemp("taught") / "run"
    assert main(["train", "--pairs", str(data), "--valid", str(data), "--out", str(out), *QUICK]) == 0
    return out


@pytest.fixture(scope="module")
def teacher(taught: Path) -> Writer:
    return load_writer(str(taught / CHECKPOINT))


@pytest.fixture(scope="module")
def examples(data: Path) -> list[Example]:
    return read_data([data])


def causal(teacher: Writer) -> Writer:
    """An untrained causal model with the teacher's words."""
    size = teacher.tokenizer.get_vocab_size()
    config = Qwen2Config(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    return Writer(Qwen2ForCausalLM(config).eval(), teacher.tokenizer, FEW_SHOT, "tiny", max_source=32)


def about(text: str) -> tuple[str, str]:
    """The verb and the noun that a text has in it."""
    verb = next((word for word in VERBS if word in text), "")
    return verb, next((word for word in NOUNS if word in text), "")


def test_a_teacher_learns_to_say_what_a_function_does_and_to_write_one(
    teacher: Writer, examples: list[Example]
) -> None:
    languages = [each.language for each in examples]
    asked = teacher.questions(DOCUMENT, [each.code for each in examples], languages)
    said = [texts[0] for texts in teacher.sample(DOCUMENT, asked, 1, CALM, seed=0)]
    todo = teacher.questions(IMPLEMENT, [each.query for each in examples], languages)
    wrote = [texts[0] for texts in teacher.sample(IMPLEMENT, todo, 1, CALM, seed=0)]
    meant = [about(each.query) for each in examples]
    assert np.mean([about(text) == right for text, right in zip(said, meant, strict=True)]) > 0.7
    assert np.mean([about(text) == right for text, right in zip(wrote, meant, strict=True)]) > 0.7


def test_the_right_answer_is_the_likeliest(taught: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(taught / CHECKPOINT), "--pairs", str(data), "--threads", "1"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["by"] for line in told] == ["p(code | query)", "p(query | code)"]
    assert all(line["figures"]["mrr"] > 0.7 and line["figures"]["functions"] == 48 for line in told)


def test_one_question_read_once_gives_the_scores_of_the_pairs(teacher: Writer, examples: list[Example]) -> None:
    (question,) = teacher.questions(IMPLEMENT, [examples[3].query], ["python"])
    answers = teacher.answers(IMPLEMENT, [each.code for each in examples], 64)
    one_by_one = [teacher.log_probabilities([question], [answer])[0] for answer in answers]
    assert np.allclose(teacher.log_probabilities_of_all(question, answers), one_by_one, atol=1e-3)
    assert np.allclose(teacher.log_probabilities([question] * len(answers), answers), one_by_one, atol=1e-3)


def test_a_causal_model_scores_its_answer_alone(teacher: Writer) -> None:
    model = causal(teacher)
    questions = model.questions(SEARCH, ["def open_file(file): pass", "x"], ["python", "python"])
    answers = model.answers(SEARCH, ["open the file", "merge"], 24)
    together = model.log_probabilities(questions, answers)
    ids = torch.tensor([questions[0] + answers[0]])
    with torch.no_grad():
        likely = model.model(ids).logits.log_softmax(-1)
    start = len(questions[0])
    by_hand = sum(likely[0, start - 1 + at, token].item() for at, token in enumerate(answers[0]))
    assert together[0] == pytest.approx(by_hand, abs=1e-4)


def test_a_causal_model_is_asked_with_the_whole_prompt_around_long_code(teacher: Writer) -> None:
    model = causal(teacher)
    (tokens,) = model.questions(SEARCH, ["file " * 500], ["python"])
    text = teacher.tokenizer.decode(tokens)
    assert text.startswith("f u n c")
    assert text.endswith("f o r t h i s")
    assert 32 <= text.count("file") < 40


def test_a_causal_model_that_reads_a_question_once_writes_what_it_would_have_written(teacher: Writer) -> None:
    model = causal(teacher)
    questions = model.questions(SEARCH, ["def open_file(file): pass", "merge"], ["python", "python"])
    sure = Sampling(temperature=1e-4, most_tokens=8)  # No chance is left.
    found = model.sample(SEARCH, questions, 2, sure, seed=0)
    for question, texts in zip(questions, found, strict=True):
        ids = list(question)
        for _ in range(8):
            with torch.no_grad():
                ids.append(int(model.model(torch.tensor([ids])).logits[0, -1].argmax()))
        text = teacher.tokenizer.decode(ids[len(question) :], skip_special_tokens=True).strip()
        assert texts == [text, text]


def test_what_a_causal_model_writes_ends_where_its_prompt_says(teacher: Writer) -> None:
    model = replace(causal(teacher), prompts=replace(FEW_SHOT, end="open"))
    questions = model.questions(SEARCH, ["a", "b b b"], ["go", "go"])
    found = model.sample(SEARCH, questions, 3, Sampling(most_tokens=12), seed=4)
    assert [len(texts) for texts in found] == [3, 3]
    assert not any("open" in text for texts in found for text in texts)


def test_samples_are_of_the_seed_and_in_both_directions(
    teacher: Writer, examples: list[Example], tmp_path: Path
) -> None:
    order = Order(2, sampling=Sampling(most_tokens=16), batch=16)
    for name in ("a", "b"):
        write_samples(teacher, examples, order, tmp_path / name)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    write_samples(teacher, examples, replace(order, seed=1), tmp_path / "c")
    assert (tmp_path / "a").read_text() != (tmp_path / "c").read_text()
    samples = read_samples(tmp_path / "a")
    by_source = {
        source: [s for s in samples if s.example.source == source]
        for source in ("sampled document", "sampled implement")
    }
    codes, queries = {each.code for each in examples}, {each.query for each in examples}
    assert {s.example.code for s in by_source["sampled document"]} == codes
    assert {s.example.query for s in by_source["sampled implement"]} == queries
    assert {s.turn for s in samples} == {0, 1}


@pytest.mark.parametrize("kept", [0, 700, 5_000])
def test_sampling_that_was_killed_goes_on_and_ends_the_same(
    teacher: Writer, examples: list[Example], tmp_path: Path, kept: int
) -> None:
    order = Order(2, sampling=Sampling(most_tokens=16), batch=16)
    path = tmp_path / "samples.jsonl"
    write_samples(teacher, examples, order, path)
    whole = path.read_text()
    path.write_text(whole[:kept])
    write_samples(teacher, examples, order, path)
    assert path.read_text() == whole


def test_other_settings_do_not_go_on_with_a_file(teacher: Writer, examples: list[Example], tmp_path: Path) -> None:
    order = Order(1, sampling=Sampling(most_tokens=4))
    write_samples(teacher, examples[:4], order, tmp_path / "samples.jsonl")
    with pytest.raises(ExportError, match="another run"):
        write_samples(teacher, examples[:4], replace(order, seed=5), tmp_path / "samples.jsonl")


def test_the_first_turns_of_many_samples_are_fewer_samples(
    teacher: Writer, examples: list[Example], tmp_path: Path
) -> None:
    order = Order(4, (DOCUMENT, SEARCH, IMPLEMENT), Sampling(most_tokens=8))
    write_samples(teacher, examples[:6], order, tmp_path / "samples.jsonl")
    samples = read_samples(tmp_path / "samples.jsonl")
    sizes = [len(enlarged(examples[:6], samples, count, DOCUMENT)) for count in (0, 1, 4)]
    assert sizes[0] == 6
    assert 12 < sizes[1] <= 18
    assert sizes[1] < sizes[2] <= 6 + 2 * 24
    searched = enlarged([], samples, 4, SEARCH)
    assert {each.query for each in searched} != {each.query for each in enlarged([], samples, 4, DOCUMENT)}


class Words:
    """An encoder that knows one thing: a text's first letter."""

    name = "words"

    def queries(self, texts: list[str]) -> np.ndarray:
        return np.stack([np.eye(26, dtype=np.float32)[ord(text[0]) - ord("a")] for text in texts])

    codes = queries


def test_a_round_trip_keeps_the_queries_that_find_their_function(tmp_path: Path) -> None:
    pairs = [("a query", "a code"), ("wrong", "b code"), ("another", "a code"), ("c", "c code")]
    lines = [
        {"query": query, "code": code, "language": "go", "source": "sampled document", "row": at, "turn": 0, "batch": 0}
        for at, (query, code) in enumerate(pairs)
    ]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    kept = round_trip(read_samples(path), Words(), among=3, top=1)  # type: ignore[arg-type]
    assert [sample.example.query for sample in kept] == ["a query", "another", "c"]


def test_the_command_line_samples_and_filters(taught: Path, data: Path, tmp_path: Path) -> None:
    from export.distill import main as distill

    out, kept = tmp_path / "samples.jsonl", tmp_path / "kept.jsonl"
    assert main(["sample", str(taught / CHECKPOINT), "--pairs", str(data), "--out", str(out), "--samples", "1"]) == 0
    common = ["--pairs", str(data), "--valid", str(data), "--steps", "30", "--batch", "48", "--learning-rate", "0.02"]
    assert distill([*common, "--out", str(tmp_path / "run")]) == 0
    by = str(tmp_path / "run" / "bundle")
    assert main(["filter", str(out), "--by", by, "--top", "5", "--out", str(kept)]) == 0
    assert 0 < len(read_samples(kept)) < len(read_samples(out))


def test_a_teacher_that_was_killed_goes_on_and_ends_the_same(taught: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["train", "--pairs", str(data), "--valid", str(data), "--out", str(out), *QUICK, "--save-minutes", "0"]
    with failing_at(70):
        main(command)
    assert main(command) == 0
    for name in ("model.safetensors", "tokenizer.json"):
        assert (out / CHECKPOINT / name).read_bytes() == (taught / CHECKPOINT / name).read_bytes()


def test_a_causal_model_learns_further_and_keeps_its_prompts(teacher: Writer, data: Path, tmp_path: Path) -> None:
    save_writer(causal(teacher), tmp_path / "model")
    command = ["train", "--teacher", str(tmp_path / "model"), "--pairs", str(data), "--valid", str(data), *QUICK]
    assert main([*command, "--steps", "10", "--validate-every", "1", "--out", str(tmp_path / "run")]) == 0
    told = [row["valid_query_nll"] for row in read_log(tmp_path / "run") if "valid_query_nll" in row]
    assert told[-1] < told[0] - 0.03
    again = load_writer(str(tmp_path / "run" / CHECKPOINT))
    assert again.causal
    assert again.prompts == FEW_SHOT


def test_a_model_with_a_missing_tensor_is_refused_by_name(taught: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    save_writer(load_writer(str(taught / CHECKPOINT)), folder)
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.final_layer_norm.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"encoder\.final_layer_norm\.weight is missing"):
        load_writer(str(folder))


def test_code_of_others_is_never_run(taught: Path, tmp_path: Path) -> None:
    folder = tmp_path / "remote"
    save_writer(load_writer(str(taught / CHECKPOINT)), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "theirs", "auto_map": {"AutoConfig": "code.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(CheckpointError, match="no model of transformers"):
        load_writer(str(folder))


def test_a_teacher_is_saved_with_its_prompts(teacher: Writer, examples: list[Example], tmp_path: Path) -> None:
    made = replace(new_teacher(examples, Size(16, 1, 2, 200), 0), max_source=17)
    save_writer(made, tmp_path / "saved")
    again = load_writer(str(tmp_path / "saved"))
    assert (again.prompts, again.max_source) == (made.prompts, 17)
