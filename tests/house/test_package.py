"""The wheel: what is in it, and that it works where it is installed, under its own name."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from server import __version__

from .test_imports import ROOT, module_name, sources

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for a build leaves folders behind, and old ones would find their way into the wheel."""
    copy = tmp_path_factory.mktemp("clone") / "copy"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for path in listed:
        if path and (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes((ROOT / path).read_bytes())
    out = tmp_path_factory.mktemp("dist")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), str(copy))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """`meaning-lsp` as installed from the wheel; its dependencies are those of this interpreter."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(binaries / "python")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", str(wheel))
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (packages / "of-the-tests.pth").write_text("\n".join(site.getsitepackages()))
    return str(binaries / "meaning-lsp")


def run(*command: str, cwd: Path | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert not done.returncode, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_wheel_holds_all_of_the_server_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {file.relative_to(ROOT) for file in sources("server")}
    wanted |= {
        file.relative_to(ROOT)
        for pattern in ("py.typed", "editors/**/*.lua", "parse/queries/*.scm", "search/*.json", "embed/default/*")
        for file in (ROOT / "server").glob(pattern)
    }
    assert names == {path.as_posix().replace("server/", "meaning_lsp/", 1) for path in wanted}
    assert any(name.endswith(".scm") for name in names)
    assert "meaning_lsp/embed/default/bundle.json" in names


def test_the_wheel_holds_the_licence(wheel: Path) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_every_package_of_the_server_is_named_in_the_build() -> None:
    packages = {module_name(file) for file in sources("server") if file.name == "__init__.py"}
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    missing = [name for name in packages if f'"{name.replace("server", "meaning_lsp", 1)}"' not in text]
    assert not missing


def test_the_installed_program_tells_its_version(program: str) -> None:
    assert run(program, "--version").split() == ["meaning-lsp", __version__]


def test_the_installed_program_answers_a_question(program: str, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "net.py").write_text("def retry_upload(file, attempts):\n    '''Try a failed upload again.'''\n    ...\n")
    (code / "dates.py").write_text("def parse_date(text):\n    '''A date from its ISO form.'''\n    ...\n")
    cache = str(tmp_path / "cache")
    out = run(program, "search", "where do we retry a failed upload?", str(code), "--json", "--cache-dir", cache)
    assert json.loads(out)["hits"][0]["path"] == "net.py"


def test_the_installed_package_is_not_called_server(program: str, tmp_path: Path) -> None:
    python = str(Path(program).with_name("python"))
    where = run(python, "-c", "import meaning_lsp; print(meaning_lsp.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(Path(python).parent.parent)
    missing = "import importlib.util; print(importlib.util.find_spec('server'))"
    assert run(python, "-I", "-c", missing, cwd=tmp_path).strip() == "None"
