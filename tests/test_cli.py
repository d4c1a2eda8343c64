"""The command line: what it prints, and what it says of mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.__main__ import main
from server.embed.bundle import resolve_model
from server.index.folder import index_folder
from server.index.store import DATABASE

Run = Callable[..., tuple[int, str, str]]
"""Arguments -> exit status, stdout, stderr."""

CODE = {
    "app/retry.py": '''def retry_with_backoff(call, attempts):
    """Call again after a failure, waiting longer each time."""
    for attempt in range(attempts):
        call()
''',
    "app/cron.py": '''class CronExpression:
    """A schedule in five fields."""


def parse_fields(text):
    """Split a cron expression into its fields."""
    return text.split()
''',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in CODE.items():
        file = tmp_path / "work" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "work"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEANING_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def run(cache: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # argparse, after --help and --version
            status = int(end.code or 0)
        out, err = capfd.readouterr()
        return status, out, err

    return run


def one_line(err: str) -> str:
    """The one line that a mistake is told in."""
    assert err.count("\n") == 1, err
    assert err.startswith("meaning-lsp: ")
    assert "Traceback" not in err
    return err


def test_a_question_is_answered_with_places(run: Run, root: Path) -> None:
    status, out, err = run("search", "split a cron expression", root)
    assert (status, err) == (0, "")
    assert out.startswith("app/cron.py:5-7  function parse_fields\n    def parse_fields(text)\n")


def test_json_has_the_keys_that_scripts_rely_on(run: Run, root: Path) -> None:
    status, out, _ = run("search", "--json", "--limit", 1, "split a cron expression", root)
    answer = json.loads(out)
    assert status == 0
    assert answer.keys() == {"query", "model", "took_ms", "indexed", "pending", "hits"}
    assert answer["query"] == "split a cron expression"
    [hit] = answer["hits"]
    score = hit.pop("score")
    assert isinstance(score, float)
    assert hit == {
        "path": "app/cron.py",
        "start_line": 5,
        "end_line": 7,
        "name": "parse_fields",
        "container": "",
        "kind": "function",
        "language": "python",
        "preview": "def parse_fields(text)",
    }


def test_a_batch_gives_a_line_for_a_line(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("split a cron expression\n\nlang:klingon x\nkind:class schedule\n")
    status, out, err = run("search", "--batch", tmp_path / "queries", root)
    answers: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert [answer["query"] for answer in answers] == [
        "split a cron expression",
        "",
        "lang:klingon x",
        "kind:class schedule",
    ]
    assert answers[0]["hits"][0]["name"] == "parse_fields"
    assert "empty" in answers[1]["error"]
    assert "klingon" in answers[2]["error"]
    assert answers[3]["hits"][0]["name"] == "CronExpression"
    assert (status, err) == (1, "")


def test_filters_are_arguments_too(run: Run, root: Path) -> None:
    _, out, _ = run("search", "--json", "--kind", "class", "--lang", "python", "--path", "app/", "retry", root)
    assert {hit["name"] for hit in json.loads(out)["hits"]} == {"CronExpression"}


def test_index_reports_what_it_did(run: Run, root: Path) -> None:
    _, out, _ = run("index", "--json", root)
    first = json.loads(out)
    assert first.keys() == {"files", "units", "embedded", "reused", "removed", "seconds", "pending"}
    assert (first["files"], first["units"], first["embedded"]) == (2, 3, 3)
    _, out, _ = run("index", "--json", root)
    assert json.loads(out)["embedded"] == 0


def test_a_second_search_embeds_no_code(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("search", "cron", root)

    def embed_code(*_: object) -> None:
        raise AssertionError("code was embedded again")

    monkeypatch.setattr("server.embed.embedder.Embedder.embed_code", embed_code)
    assert run("search", "cron", root)[0] == 0


def test_status_tells_what_is_there(run: Run, root: Path) -> None:
    run("index", root)
    _, out, _ = run("status", "--json", root)
    status = json.loads(out)
    assert (status["files"], status["units"], status["pending"], status["problems"]) == (2, 3, 0, [])
    assert status["root"] == str(root)


def test_no_index_searches_what_is_there(run: Run, root: Path) -> None:
    status, out, err = run("search", "--no-index", "cron", root)
    assert (status, out) == (1, "")
    assert "no index yet" in one_line(err)
    run("index", root)
    (root / "app/new.py").write_text("def brand_new():\n    pass\n")
    _, out, _ = run("search", "--no-index", "--json", "brand_new", root)
    assert "brand_new" not in {hit["name"] for hit in json.loads(out)["hits"]}


def test_version_and_help_are_there(run: Run) -> None:
    assert run("--version")[1].startswith("meaning-lsp ")
    assert "search" in run("--help")[1]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["search", "x", "/no/such/place"], 1, "no such folder"),
        (["search", "x", "FILE"], 1, "a file"),
        (["index", "/no/such/place"], 1, "no such folder"),
        (["status", "FILE"], 1, "a file"),
        (["search", "x", "a\0b"], 1, "no such folder"),
        (["search"], 2, "QUERY"),
        (["search", "", "ROOT"], 2, "empty"),
        (["search", "  \t", "ROOT"], 2, "empty"),
        (["search", "x", "ROOT", "--lang", "pyton"], 2, "did you mean python"),
        (["search", "x", "ROOT", "--kind", "klass"], 2, "did you mean class"),
        (["search", "lang:pyton x", "ROOT"], 2, "did you mean python"),
        (["search", "x", "ROOT", "--limit", "0"], 2, "limit"),
        (["search", "x", "ROOT", "--limit", "many"], 2, "limit"),
        (["search", "x", "ROOT", "--only", "both"], 2, "dense"),
        (["search", "x", "ROOT", "--model", "gpt"], 2, "gpt"),
        (["search", "x", "ROOT", "--model", "/no/such/model"], 2, "/no/such/model"),
        (["search", "--batch", "/no/such/file", "ROOT"], 1, "/no/such/file"),
        (["search", "--batch", "FILE", "ROOT", "ROOT"], 2, "instead of QUERY"),
        (["find", "x"], 2, "find"),
        (["search", "x", "ROOT", "--frobnicate"], 2, "frobnicate"),
        (["--tcp", "0"], 2, "port"),
        (["--tcp", "x"], 2, "port"),
    ],
)
def test_a_mistake_is_one_line_and_the_right_status(
    run: Run, root: Path, cache: Path, arguments: list[str], status: int, message: str
) -> None:
    places = {"ROOT": str(root), "FILE": str(root / "app/cron.py")}
    found, out, err = run(*(places.get(argument, argument) for argument in arguments))
    assert (found, out) == (status, "")
    assert message in one_line(err)
    assert not list(cache.glob("*/*.sqlite")) or "search" not in arguments


def test_a_very_long_query_is_answered(run: Run, root: Path) -> None:
    status, _, err = run("search", "cron " * 20_000, root)
    assert (status, err) == (0, "")


@pytest.mark.parametrize("damage", ["hash", "missing", "format", "json"])
def test_a_broken_bundle_is_one_line(run: Run, root: Path, tmp_path: Path, damage: str) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for file in resolve_model("default").iterdir():
        (bundle / file.name).write_bytes(file.read_bytes())
    if damage == "hash":
        (bundle / "tokenizer.json").write_bytes((bundle / "tokenizer.json").read_bytes() + b" ")
    elif damage == "missing":
        (bundle / "tokenizer.json").unlink()
    elif damage == "format":
        text = json.loads((bundle / "bundle.json").read_text())
        (bundle / "bundle.json").write_text(json.dumps({**text, "format": 99}))
    else:
        (bundle / "bundle.json").write_text("{")
    status, out, err = run("search", "x", root, "--model", bundle)
    assert (status, out) == (1, "")
    assert str(bundle) in one_line(err)


def test_a_cache_folder_that_is_a_file_is_one_line(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    status, _, err = run("search", "x", root, "--cache-dir", tmp_path / "file")
    assert status == 1
    assert "--cache-dir" in one_line(err)
    assert (tmp_path / "file").read_text() == "mine"


def test_an_index_that_is_no_database_is_built_anew_and_told(run: Run, root: Path, cache: Path) -> None:
    run("index", root)
    folder = index_folder(cache, root)
    for file in folder.iterdir():
        file.unlink()
    (folder / DATABASE).write_bytes(b"not a database" * 1000)
    status, out, err = run("search", "split a cron expression", root)
    assert status == 0
    assert "parse_fields" in out
    assert "built anew" in one_line(err)
    assert run("search", "cron", root)[2] == ""


def test_an_empty_folder_has_no_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    status, out, err = run("search", "anything", tmp_path / "empty")
    assert (status, out, err) == (0, "nothing found: the index is empty\n", "")


def _started(*arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "server", *map(str, arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_without_onnxruntime_the_missing_extra_is_named(root: Path, cache: Path) -> None:
    blocked = "import sys; sys.modules['onnxruntime'] = None; from server.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", blocked, "search", "x", root], capture_output=True, text=True)
    assert done.returncode == 1
    assert "meaning-lsp[cpu]" in one_line(done.stderr)


def test_a_closed_pipe_is_no_failure(root: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("cron\n" * 500)
    process = _started("search", "--batch", tmp_path / "queries", root)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""


def test_an_interrupted_index_goes_on_from_there(run: Run, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for i in range(400):
        functions = (f"def step_{i}_{j}(value):\n    return value + {i * j}\n" for j in range(25))
        (root / f"m{i}.py").write_text("\n\n".join(functions))
    process = _started("index", root)
    database = index_folder(cache, root) / DATABASE
    deadline = time.monotonic() + 60
    while _files(database) == 0:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in one_line(err.decode())
    before = _files(database)
    assert 0 < before < 400
    _, out, _ = run("index", "--json", root)
    report = json.loads(out)
    assert (report["files"], report["pending"]) == (400, 0)
    assert report["reused"] > 0


def _files(database: Path) -> int:
    import sqlite3

    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM files").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0
