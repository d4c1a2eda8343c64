"""The command line: what it prints, and what it says of mistakes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from server.__main__ import main
from server.embed.bundle import resolve_model
from server.index.database import DATABASE
from server.index.folder import index_folder
from tests.embed.tiny import write_bundle

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
    assert first.keys() == {"files", "units", "embedded", "fetched", "reused", "removed", "seconds", "pending"}
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


def test_status_of_a_folder_without_an_index_says_so_and_makes_none(run: Run, root: Path, cache: Path) -> None:
    status, out, err = run("status", "--json", root)
    assert (status, err) == (0, "")
    assert json.loads(out)["files"] == 0
    assert "no index yet" in json.loads(out)["problems"][0]
    assert not list(cache.rglob(DATABASE))


def test_no_index_searches_what_is_there(run: Run, root: Path) -> None:
    status, out, err = run("search", "--no-index", "cron", root)
    assert (status, out) == (1, "")
    assert "no index yet" in one_line(err)
    run("index", root)
    (root / "app/new.py").write_text("def brand_new():\n    pass\n")
    _, out, _ = run("search", "--no-index", "--json", "brand_new", root)
    assert "brand_new" not in {hit["name"] for hit in json.loads(out)["hits"]}


def test_options_stand_anywhere(run: Run, root: Path) -> None:
    before = run("search", "--limit", 1, "split a cron expression", root)[1]
    assert before.startswith("app/cron.py:")
    assert run("search", "split a cron expression", "--limit", 1, root)[1] == before
    assert run("search", "split a cron expression", root, "--limit", 1)[1] == before


def test_a_batch_is_split_at_the_ends_of_lines_alone(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").write_bytes("one\fpage\r\ntwo\u2028parts\n".encode())
    _, out, _ = run("search", "--batch", tmp_path / "queries", root)
    assert [json.loads(line)["query"] for line in out.split("\n")[:-1]] == ["one\fpage", "two\u2028parts"]


def test_a_terminal_is_not_commanded_by_what_is_found(run: Run, root: Path) -> None:
    (root / "evil\n\x1b[2J.py").write_text("def evil(a='\x1b[2J'):\n    pass\n")
    _, out, _ = run("search", "evil", root)
    assert r"evil\n\x1b[2J.py:1-2" in out.splitlines()[0]
    assert "\x1b" not in out


def test_a_user_without_a_home_is_told_what_to_do(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert run("index", root)[0] == 0
    monkeypatch.setattr(Path, "expanduser", homeless)
    monkeypatch.setattr(Path, "home", homeless)
    assert run("index", root, "--cache-dir", root.parent / "cache")[0] in (0, 2)
    monkeypatch.delenv("MEANING_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    status, _, err = run("status", root)
    assert status == 2
    assert "MEANING_CACHE_DIR" in one_line(err)


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
        (["search", "x", "ROOT", "--model", ""], 2, "no model"),
        (["search", "x", "ROOT", "--model", "m" * 5_000], 2, "no model"),
        (["search", "x", "ROOT", "--model", "~no-such-user/m"], 2, "no model"),
        (["search", "x", "ROOT", "--cache-dir", "~no-such-user/c"], 2, "no home folder"),
        (["search", "x", "ROOT", "--cache-dir", "c" * 5_000], 1, "--cache-dir"),
        (["search", "x", "ROOT", "--path", "*[z-a]"], 2, "not a glob"),
        (["search", "x", "--json", "ROOT", "ROOT"], 2, "unrecognized"),
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


def test_damage_that_a_search_meets_is_mended_by_it(run: Run, root: Path, cache: Path) -> None:
    run("index", root)
    database = index_folder(cache, root) / DATABASE
    pages = database.read_bytes()
    database.write_bytes(pages[:4096] + b"\xa5" * (len(pages) - 4096))
    assert one_line(run("search", "--no-index", "cron", root)[2])
    status, out, err = run("search", "split a cron expression", root)
    assert status == 0
    assert "parse_fields" in out
    assert "built anew" in one_line(err)


def _shell(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `meaning-lsp` with its streams as a shell's redirections leave them."""
    words = [sys.executable, "-m", "server", *map(str, arguments)]
    return subprocess.run(["sh", "-c", f'"$@" {command}', "sh", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no shell, no full device")
@pytest.mark.parametrize(
    ("redirection", "status", "message"),
    [
        ("<&-", 0, ""),
        (">&-", 1, "cannot write the answer"),
        ("2>&-", 0, ""),
        (">&- 2>&-", 1, ""),
        ("<&- >&- 2>&-", 1, ""),
        (">/dev/full", 1, "cannot write the answer"),
        ("2>/dev/full", 0, ""),
        (">/dev/full 2>/dev/full", 1, ""),
    ],
)
def test_streams_that_are_closed_or_full(root: Path, cache: Path, redirection: str, status: int, message: str) -> None:
    done = _shell(redirection, "search", "split a cron expression", root)
    assert done.returncode == status
    assert message in (one_line(done.stderr) if done.stderr else "")
    assert bool(done.stdout) == (status == 0)


@pytest.mark.parametrize("arguments", [["search", "--batch", "-"], []])
def test_a_closed_input_is_an_empty_one(root: Path, cache: Path, arguments: list[str]) -> None:
    done = _shell("<&-", *arguments, *([root] if arguments else []))
    assert done.returncode == (0 if arguments else 1)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_folder_that_is_gone_is_told(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    here = Path(__file__).parents[2]
    command = f'cd "{tmp_path}/gone" && rmdir ../gone && PYTHONPATH="{here}" "{sys.executable}" -m server search x'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be read" in one_line(done.stderr)


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


def test_nothing_is_kept_or_sent_for_the_makers_of_a_library(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kept = ("HOME", "XDG_CACHE_HOME", "MEANING_CACHE_DIR", "ORT_DISABLE_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    words = [sys.executable, "-m", "server", "search", "cron", str(root)]
    subprocess.run(words, env={**environment, "HOME": str(home)}, check=True, capture_output=True)
    assert {file.name for file in home.rglob("*") if file.is_file()} >= {DATABASE}
    assert [folder.name for folder in (home / ".cache").iterdir()] == ["meaning-lsp"]


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
    assert process.returncode == 130, err.decode()
    assert "interrupted" in one_line(err.decode())
    before = _files(database)
    assert 0 < before < 400
    _, out, _ = run("index", "--json", root)
    report = json.loads(out)
    assert (report["files"], report["pending"]) == (400, 0)
    assert report["reused"] > 0


def test_control_c_that_an_import_turns_into_another_error_is_still_one(
    run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr("server.cli.index.open_index", broken_off)
    before = signal.getsignal(signal.SIGINT)
    try:
        status, _, err = run("index", root)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a second one disturbs nothing
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 130
    assert "interrupted" in one_line(err)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
@pytest.mark.parametrize("delay", [0.0, 0.3, 0.6, 1.0])
def test_control_c_reaches_the_workers_too_and_is_one_line(cache: Path, tmp_path: Path, delay: float) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for i in range(300):
        functions = (f"def step_{i}_{j}(value):\n    return value + {i * j}\n" for j in range(200))
        (root / f"m{i}.py").write_text("\n\n".join(functions))
    process = _started_apart("index", root)
    database = index_folder(cache, root) / DATABASE
    while not database.exists():
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as people do
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert "interrupted" in one_line(err.decode())


def test_an_interrupt_in_what_a_library_of_c_runs_ends_with_the_status_too(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import ctypes, sys\n"
        "from server.terminal import Interrupt\n"
        "run = ctypes.pythonapi.PyRun_String\n"
        "run.restype = ctypes.py_object\n"
        "names = {'__builtins__': __builtins__, 'hear': Interrupt()._hear}\n"
        "try:\n"
        "    run(b'hear()', 257, ctypes.py_object(names), ctypes.py_object(names))\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run([sys.executable, "-m", "interrupted"], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 130


def _started_apart(*arguments: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "server", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def _files(database: Path) -> int:
    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
        try:
            return int(connection.execute("SELECT count(*) FROM files").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


@pytest.fixture
def better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A better model, named in the environment."""
    better = write_bundle(tmp_path / "better", changed={"id": "tiny-better"})
    monkeypatch.setenv("MEANING_REFINE_MODEL", str(better))
    return better


@pytest.mark.usefixtures("better")
def test_an_index_holds_the_better_models_vectors_too(run: Run, root: Path, cache: Path) -> None:
    assert run("index", root)[0] == 0
    [database] = cache.glob("*/index.sqlite")
    with closing(sqlite3.connect(database)) as db:
        counts = dict(db.execute("SELECT model, count(*) FROM embeddings GROUP BY model"))
    assert sum(model.startswith("tiny-better ") for model in counts) == 1
    assert len(counts) == 2
    assert len(set(counts.values())) == 1
    assert json.loads(run("search", "split a cron expression", root, "--json")[1])["model"] != "tiny-better"


@pytest.mark.usefixtures("better")
def test_what_another_process_refines_is_left_to_it_and_told(run: Run, root: Path, cache: Path) -> None:
    assert run("index", root)[0] == 0
    [folder] = cache.glob("*/")
    (root / "more.py").write_text("def more(): ...\n")
    with FileLock(folder / "backfill.lock"):
        status, _, err = run("index", root)
    assert status == 0
    assert "no vector of the refining model" in err
    assert "refining" not in run("index", root)[2]


def test_a_better_model_that_is_no_model_is_told(run: Run, root: Path, better: Path) -> None:
    (better / "tokenizer.json").write_text("{}")
    status, _, err = run("search", "split a cron expression", root)
    assert status == 1
    assert str(better) in one_line(err)
    assert run("search", "cron", root, "--only", "lexical")[0] == 0


def test_a_device_that_is_none_is_told(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANING_DEVICE", "tpu")
    status, _, err = run("search", "split a cron expression", root)
    assert status == 2
    assert one_line(err) == "meaning-lsp: MEANING_DEVICE: 'tpu' is none of auto, cpu, cuda\n"
