"""An installation is broken in one way after the other; each is told, with what to do about it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from server import __version__
from server.cli import doctor
from server.cli.doctor import ERROR, OK, VARIABLES, WARNING, Finding, findings
from server.embed.bundle import resolve_model
from server.index.database import APPLICATION_ID, DATABASE
from server.index.folder import index_folder
from server.settings import Settings
from tests.agents.conftest import write

HOUSE = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "app")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache")


@pytest.fixture(autouse=True)
def _nothing_else_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    program = tmp_path / "bin" / "meaning-lsp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "meaning-lsp {__version__}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    plenty = tmp_path / "watches"
    plenty.write_text("500000\n")
    monkeypatch.setattr(doctor, "_INOTIFY", plenty)


def wrong(root: Path, settings: Settings) -> list[Finding]:
    found = [finding for finding in findings(root, settings) if finding.level != OK]
    assert all(finding.remedy for finding in found)
    return found


def only(found: list[Finding], level: str = ERROR) -> Finding:
    [finding] = found
    assert finding.level == level
    return finding


def test_nothing_is_wrong_with_a_sound_installation(root: Path, settings: Settings) -> None:
    found = list(findings(root, settings))
    assert [finding for finding in found if finding.level != OK] == []
    told = "\n".join(finding.what for finding in found)
    assert "grammars" in told
    assert "onnxruntime" in told
    assert "has no index yet" in told


def test_an_index_is_told_with_its_troubles(root: Path, settings: Settings, tmp_path: Path) -> None:
    environment = {**os.environ, "MEANING_CACHE_DIR": str(settings.cache_dir)}
    subprocess.run([sys.executable, "-m", "server", "index", str(root)], cwd=HOUSE, env=environment, check=True)
    assert any(f"{root}: 3 files, " in finding.what for finding in findings(root, settings))
    [database] = settings.cache_dir.glob("*/index.sqlite")
    database.write_bytes(b"no database at all" * 1000)
    assert "damaged" in only(wrong(root, settings), WARNING).what


def test_an_index_of_a_later_version_is_no_matter_of_this_installation(root: Path, settings: Settings) -> None:
    folder = index_folder(settings.cache_dir, root)
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute("PRAGMA user_version = 9999")
        database.execute("CREATE TABLE of_another_form (x)")
    finding = only(wrong(root, settings))
    assert "written by a newer meaning-lsp" in finding.what
    assert f"delete {folder}" in finding.remedy


def test_without_onnxruntime(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    runtime = only(wrong(root, settings))  # and not once more because the model cannot run
    assert "is not installed" in runtime.what
    assert "pip install 'meaning-lsp[cpu]'" in runtime.remedy


def test_with_both_onnxruntimes(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: "1.20")
    finding = only(wrong(root, settings))
    assert "both" in finding.what
    assert "uninstall" in finding.remedy


def test_a_package_is_missing_or_too_old(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metadata,
        "requires",
        lambda _: ["no-such-package<2,>=1", "numpy<1.0", "pytest>=1", 'mcp>=99; extra == "mcp"'],
    )
    missing, old = wrong(root, settings)
    assert missing.what == "no-such-package is not installed"
    assert missing.remedy.endswith("pip install 'no-such-package<2,>=1'")
    assert old.what == f"numpy is {metadata.version('numpy')}, and has to be <1.0"


def test_a_grammar_is_broken(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse_tree(data: bytes, language: object) -> None:
        if "go" in str(language):
            raise ImportError("cannot open shared object file")

    monkeypatch.setattr("server.parse.grammar.parse_tree", parse_tree)
    finding = next(iter(wrong(root, settings)))
    assert "grammar cannot be loaded (cannot open" in finding.what
    assert "--force-reinstall" in finding.remedy


def test_a_model_is_damaged_or_not_there(root: Path, settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "model"
    shutil.copytree(resolve_model("default"), broken)
    (broken / "tokenizer.json").write_text("{}")
    for model in (broken, tmp_path / "nowhere"):
        model_finding = only(wrong(root, Settings(cache_dir=settings.cache_dir, model=str(model))))
        assert str(model) in model_finding.what
        assert "MEANING_MODEL" in model_finding.remedy


def test_a_device_that_is_not_there_is_no_fault_of_the_model(root: Path, settings: Settings) -> None:
    finding = next(iter(wrong(root, replace(settings, device="cuda"))), None)
    if finding is None:
        pytest.skip("there is an NVIDIA card")
    assert "MEANING_DEVICE" in finding.remedy
    assert "reinstall" not in finding.remedy


@pytest.mark.parametrize("name", ["search/ranking.json", "parse/queries/go.scm"])
def test_a_file_of_the_package_is_damaged_or_not_there(
    name: str, root: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = installed(tmp_path / "site", [name, "__init__.py"])
    found = lambda package: metadata.Distribution.at(site / "meaning_lsp-0.1.0.dist-info")  # noqa: E731
    monkeypatch.setattr(metadata, "distribution", found)
    assert wrong(root, settings) == []
    (site / "meaning_lsp" / name).write_text("{")
    assert only(wrong(root, settings)).what == f"{site / 'meaning_lsp' / name}: is not as it was installed"
    (site / "meaning_lsp" / name).unlink()
    finding = only(wrong(root, settings))
    assert finding.what == f"{site / 'meaning_lsp' / name}: No such file or directory"
    assert "--force-reinstall" in finding.remedy


def installed(site: Path, names: list[str]) -> Path:
    """Some files of the package as pip leaves them, with the list of their hashes."""
    rows = []
    for name in names:
        copy = site / "meaning_lsp" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HOUSE / "server" / name, copy)
        digest = base64.urlsafe_b64encode(hashlib.sha256(copy.read_bytes()).digest()).decode().rstrip("=")
        rows.append(f"meaning_lsp/{name},sha256={digest},{copy.stat().st_size}\n")
    (site / "meaning_lsp-0.1.0.dist-info").mkdir()
    (site / "meaning_lsp-0.1.0.dist-info" / "RECORD").write_text("".join(rows))
    return site


def test_what_is_to_be_had_anew_comes_from_where_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package may be in no index of packages."""

    class Installed:
        def read_text(self, name: str) -> str:
            assert name == "direct_url.json"
            return json.dumps({"url": (tmp_path / "my wheels").as_uri()})

    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    assert doctor._reinstall().endswith(" --force-reinstall meaning-lsp")  # the folder is gone
    (tmp_path / "my wheels").mkdir()
    assert doctor._reinstall().endswith(f" --force-reinstall '{tmp_path}/my wheels'")


def test_the_cache_cannot_be_written(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = wrong(root, Settings(cache_dir=tmp_path / "file" / "cache"))[0]
    assert "no index can be written" in finding.what
    assert "MEANING_CACHE_DIR" in finding.remedy


def test_the_disk_is_full(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LITTLE_DISK", 10**18)
    assert "make room" in only(wrong(root, settings), WARNING).remedy


def test_few_folders_can_be_watched(root: Path, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "watches").write_text("8192\n")
    assert "max_user_watches" in only(wrong(root, settings), WARNING).remedy


def test_a_variable_is_misspelt(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANING_CACHE", "/somewhere")
    finding = only(wrong(root, settings), WARNING)
    assert "MEANING_CACHE is set" in finding.what
    assert "MEANING_CACHE_DIR" in finding.remedy


def test_editors_find_no_program_or_another_one(root: Path, settings: Settings, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "meaning-lsp"
    program.write_text("#!/bin/sh\necho meaning-lsp 0.0.1\n")
    finding = only(wrong(root, settings), WARNING)
    assert str(program) in finding.what
    assert "0.0.1" in finding.what


def test_what_nobody_thought_of_is_a_finding_and_the_rest_is_looked_at(
    root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[Finding]:
        raise RuntimeError("who would have thought")

    monkeypatch.setattr(doctor, "_sqlite", broken)
    assert only(wrong(root, settings)).what == "SQLite: who would have thought"


def test_a_sqlite_that_is_too_old_is_told(root: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert "older than 3.35" in only(wrong(root, settings)).what


@pytest.mark.parametrize("package", ["numpy", "tree_sitter", "tokenizers", "usearch", "watchdog", "onnxruntime"])
def test_it_runs_where_nothing_else_does(package: str, root: Path, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from server.__main__ import main; sys.exit(main())"
    environment = {**os.environ, "MEANING_CACHE_DIR": str(tmp_path / "cache")}

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *arguments, str(root)]
        return subprocess.run(command, cwd=HOUSE, env=environment, capture_output=True, text=True, check=False)

    done = ran("doctor")
    assert done.returncode == 1
    assert done.stderr == ""
    assert any(line.startswith("error ") for line in done.stdout.splitlines())
    assert "SQLite" in done.stdout
    if package not in ("usearch", "watchdog"):  # which a search of a small index has no need of
        search = ran("search", "cron")
        assert search.returncode == 1
        assert search.stderr.splitlines()[-1].startswith("meaning-lsp: ")
        assert "Traceback" not in search.stderr


def test_every_variable_that_the_server_reads_is_known() -> None:
    sources = [file.read_text("utf-8") for file in (HOUSE / "server").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r'"(MEANING_[A-Z_]*[A-Z])"', source)}
    assert read == VARIABLES
