"""A question finds the right unit, where it stands now."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from server.embed.bundle import Bundle, resolve_model
from server.index.index import Index
from server.index.stamp import FINE_SETTLED_NS
from server.search.answer import Hit
from server.search.candidates import DENSE, NO_TERMS, gather
from server.search.filters import allowed_units
from server.search.query import parse_query
from server.search.searcher import Cancelled, Searcher
from server.settings import Settings

FILES = {
    "net/retry.py": '''def retry_with_backoff(call, attempts):
    """Call again after a failure, waiting longer each time."""
    for attempt in range(attempts):
        try:
            return call()
        except OSError:
            sleep(2 ** attempt)
''',
    "net/upload.go": """package net

// Upload sends a file to the server in chunks.
func Upload(path string, chunkSize int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return send(file, chunkSize)
}
""",
    "cron.py": '''class CronExpression:
    """A schedule in five fields: minute, hour, day, month, weekday."""

    def __init__(self, text):
        self.fields = parse_fields(text)

    def next_run(self, now):
        """The next time the schedule fires."""
        return min(field.after(now) for field in self.fields)


def parse_fields(text):
    """Split a cron expression into its fields."""
    return text.split()
''',
    "tests/test_cron.py": """def test_parse_fields():
    assert parse_fields("* * * * *") == ["*"] * 5
""",
}


@pytest.fixture(autouse=True)
def time_for_changed_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other things than the hurry are tested, a machine that is busy leaves no hit out."""
    monkeypatch.setattr("server.search.present.PATIENCE", 60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / "w" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "w" / path).write_text(text)
    return tmp_path / "w"


@pytest.fixture
def searcher(root: Path, tmp_path: Path) -> Iterator[Searcher]:
    bundle = Bundle.load(resolve_model("default"))
    index = Index.open(root, bundle, Settings(cache_dir=tmp_path / "cache", threads=1))
    index.update()
    yield Searcher(index)
    index.close()


def names(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.name for hit in hits]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("try again after an error", "retry_with_backoff"),
        ("send a file in pieces", "Upload"),
        ("split a cron expression", "parse_fields"),
        ("when does the schedule fire next", "next_run"),
        ("CronExpression", "CronExpression"),
        ("parse_fields", "parse_fields"),
        ("cronexpression", "CronExpression"),
    ],
)
def test_a_question_finds_its_function(searcher: Searcher, question: str, name: str) -> None:
    assert names(searcher.search(parse_query(question)).hits)[0] == name


@pytest.mark.parametrize("only", ["dense", "lexical"])
def test_either_side_answers_alone(searcher: Searcher, only: str) -> None:
    hits = searcher.search(parse_query("split a cron expression into fields", only=only)).hits
    assert "parse_fields" in names(hits)[:2]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("lang:go file", {"net/upload.go"}),
        ("path:net/ file", {"net/upload.go", "net/retry.py"}),
        ("kind:class schedule", {"cron.py"}),
        ("lang:go kind:class file", set()),
        ("path:nowhere/ file", set()),
    ],
)
def test_filters_leave_only_what_they_name(searcher: Searcher, question: str, expected: set[str]) -> None:
    assert {hit.path for hit in searcher.search(parse_query(question)).hits} == expected


def test_the_answer_says_what_it_rests_on(searcher: Searcher) -> None:
    answer = searcher.search(parse_query("cron", limit=2))
    assert len(answer.hits) == 2
    assert answer.indexed == searcher.index.store.totals().units > 5
    assert answer.pending == 0
    assert answer.model == searcher.index.bundle.id
    assert answer.took_ms > 0


def test_a_hit_names_its_place(searcher: Searcher, root: Path) -> None:
    hit = searcher.search(parse_query("parse_fields")).hits[0]
    line, first, last = hit.selection
    assert (root / hit.path).read_text().splitlines()[line][first:last] == "parse_fields"
    assert hit.preview == "def parse_fields(text)"


def test_a_hit_from_a_file_that_changed_stands_where_it_is_now(searcher: Searcher, root: Path) -> None:
    before = searcher.search(parse_query("parse_fields")).hits[0]
    file = root / "cron.py"
    file.write_text("import os\n\n\n" + file.read_text())
    after = searcher.search(parse_query("parse_fields")).hits[0]
    assert (after.start_line, after.selection[0]) == (before.start_line + 3, before.selection[0] + 3)


def test_a_hit_that_is_gone_is_not_given(searcher: Searcher, root: Path) -> None:
    (root / "net/retry.py").unlink()
    (root / "cron.py").write_text("x = 1\n")
    found = searcher.search(parse_query("try again after an error", limit=100)).hits
    assert {hit.path for hit in found} == {"net/upload.go", "tests/test_cron.py"}


def test_in_a_hurry_files_that_changed_are_left_out_unless_they_were_read_before(
    searcher: Searcher, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "cron.py").write_text("import os\n\n" + FILES["cron.py"])
    time.sleep(2 * FINE_SETTLED_NS / 1e9)  # A file that was changed this very moment is read each time.
    moved = searcher.search(parse_query("parse_fields")).hits[0]
    assert moved.start_line == 13
    (root / "net/retry.py").write_text("import os\n\n" + FILES["net/retry.py"])
    monkeypatch.setattr("server.search.present.PATIENCE", -1)
    assert searcher.search(parse_query("parse_fields")).hits[0] == moved
    found = {hit.path for hit in searcher.search(parse_query("retry with backoff")).hits}
    assert "net/upload.go" in found
    assert "net/retry.py" not in found


def test_code_like_the_one_at_the_cursor(searcher: Searcher) -> None:
    answer = searcher.similar("cron.py", 12, 3)
    assert answer.hits
    assert ("cron.py", "parse_fields") not in [(hit.path, hit.name) for hit in answer.hits]
    assert searcher.similar("nowhere.py", 0, 3).hits == ()


def test_a_search_that_nobody_waits_for_stops(searcher: Searcher) -> None:
    with pytest.raises(Cancelled):
        searcher.search(parse_query("cron"), lambda: True)


def test_an_update_beside_it_is_seen(searcher: Searcher, root: Path, tmp_path: Path) -> None:
    (root / "new.py").write_text("def resize_image(picture):\n    return picture.scale(2)\n")
    Index.open(root, searcher.index.bundle, searcher.index.settings).update()
    assert names(searcher.search(parse_query("make an image bigger resize")).hits)[0] == "resize_image"


def test_an_update_in_the_midst_of_a_search_leaves_no_hit_at_a_wrong_place(searcher: Searcher, root: Path) -> None:
    file = root / "cron.py"
    other = Index.open(root, searcher.index.bundle, searcher.index.settings)

    def shift() -> bool:
        """Called between the steps of the search."""
        file.write_text("import os\n\n\n" + file.read_text())
        other.update()
        return False

    hit = searcher.search(parse_query("parse_fields"), shift).hits[0]
    assert file.read_text().splitlines()[hit.start_line] == "def parse_fields(text):"


def _to_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _to_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _to_link(file: Path) -> None:
    outside = file.parents[2] / "outside.py"
    shutil.move(file, outside)
    file.symlink_to(outside)


def _to_binary(file: Path) -> None:
    file.write_bytes(b"\0" + file.read_bytes())


@pytest.mark.parametrize("change", [_to_pipe, _to_folder, _to_link, _to_binary, Path.unlink])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_what_is_no_text_file_any_more_has_no_hits(
    searcher: Searcher, root: Path, change: Callable[[Path], None]
) -> None:
    change(root / "net/retry.py")
    assert "net/retry.py" not in {hit.path for hit in searcher.search(parse_query("retry with backoff")).hits}


def test_twins_in_a_changed_file_keep_their_places(searcher: Searcher, root: Path) -> None:
    twin = "#ifdef A\nint beat(void) {\n  return tick(1);\n}\n#endif\n"
    (root / "twins.c").write_text(twin + "int between(void) { return 2; }\n" + twin)
    searcher.index.update()

    def places() -> set[int]:
        return {hit.start_line for hit in searcher.search(parse_query("beat", limit=50)).hits if hit.name == "beat"}

    before = places()
    assert len(before) == 2
    (root / "twins.c").write_text("\n" + (root / "twins.c").read_text())
    assert places() == {line + 1 for line in before}


def test_a_filter_reaches_a_name_that_many_bear(searcher: Searcher, root: Path) -> None:
    for i in range(120):
        (root / f"m{i:03}.py").write_text(f"def run():\n    return {i}\n")
    (root / "z").mkdir()
    (root / "z/last.py").write_text("def run():\n    return 'last'\n")
    searcher.index.update()
    allowed = allowed_units(searcher.index.store, parse_query("path:z/ run"))
    searcher.index.postings.follow()
    found = gather(searcher.index, replace(NO_TERMS, identifiers=("run",)), None, allowed)
    assert [found.paths[file] for file in found.files.tolist()] == ["z/last.py"]


def test_what_was_edited_many_times_hides_nothing(searcher: Searcher, root: Path) -> None:
    question = parse_query("call again after a failure", only="dense")
    before = {hit.name for hit in searcher.search(question).hits}
    for number in range(DENSE + 10):
        (root / "net/retry.py").write_text(FILES["net/retry.py"].replace("range(attempts)", f"range({number})"))
        searcher.index.update(within=["net/retry.py"])
        searcher.index.vectors.follow()
    hits = searcher.search(question).hits
    assert hits[0].name == "retry_with_backoff"
    assert {hit.name for hit in hits} == before
