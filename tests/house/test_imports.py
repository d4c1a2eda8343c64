"""Who may import whom, held by reading the source; and that the server's process stays light, held by asking one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BELOW: dict[str, frozenset[str]] = {
    "installation": frozenset(),
    "settings": frozenset(),
    "workspace": frozenset({"settings"}),
    "parse": frozenset({"installation", "settings"}),
    "embed": frozenset({"settings"}),
    "shared": frozenset({"embed", "settings"}),
    "index": frozenset({"shared", "workspace", "parse", "embed", "settings"}),
    "search": frozenset({"index", "shared", "workspace", "parse", "embed", "installation", "settings"}),
    "org": frozenset({"search", "index", "workspace", "parse", "embed", "settings"}),
    "terminal": frozenset({"search"}),
    "lsp": frozenset({"org", "search", "index", "shared", "workspace", "parse", "embed", "settings"}),
    "agents": frozenset({"lsp", "org", "search", "index", "shared", "workspace", "parse", "embed", "settings"}),
    "cli": frozenset(
        {"terminal", "agents", "lsp", "org", "search", "index", "shared", "workspace", "parse", "embed", "settings"}
    ),
}
"""A part of the server -> the parts that it may import. `__main__` may import every one, and none imports it."""
EXPORT_MAY = ("server.embed.bundle", "server.parse")
ALSO_MAY = {
    # It does what an index does to the same files, by the same code, or their keys and vectors would not be the same:
    # which files there are, their units and keys in a process that may crash, their vectors, and the shared cache.
    "export.bulk": (
        "server.embed",
        "server.index.prepare",
        "server.index.version",
        "server.index.workers",
        "server.settings",
        "server.shared",
        "server.workspace.discover",
    ),
    # A student learns paths as the index has their words, weighed as the index weighs them.
    "export.asked": ("server.index.prepare",),
    "export.train_student": ("server.index.vectors",),
    # Ranking is fitted on the candidates and the features that a search has, of an index that the server made.
    "export.fit_ranking": ("server.index", "server.search", "server.settings"),
    # Where the fitted weights ship.
    "export.models": ("server.search.rank",),
}
"""By module or package: what it shares with the server, so that neither has it twice, and why."""
HEAVY = frozenset({"torch", "transformers", "onnx", "export"})
"""Never in the server's process. (onnxruntime is another thing than onnx.)"""


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[str]:
    """The absolute names of all modules that a file imports, wherever in it; of `from a import b`, `a.b`."""
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += node.module.split(".") if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


@pytest.mark.parametrize("file", sources("server"), ids=module_name)
def test_imports_in_the_server_run_one_way(file: Path) -> None:
    part = module_name(file).partition(".")[2].partition(".")[0]
    if part in ("", "__main__"):
        return
    for name in imports(file):
        root, _, rest = name.partition(".")
        if root == "server" and (other := rest.partition(".")[0]) not in (part, "__version__"):
            assert other in BELOW[part], f"{module_name(file)} imports {name}"


@pytest.mark.parametrize("file", sources("server"), ids=module_name)
def test_the_server_names_itself_relatively_and_nothing_heavy(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    absolute = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    assert not absolute & (HEAVY | {"server", "meaning_lsp", "tests"})


@pytest.mark.parametrize("file", sources("export"), ids=module_name)
def test_export_knows_bundles_and_units_and_nothing_else_of_the_server(file: Path) -> None:
    module = module_name(file)
    also = (names for part, names in ALSO_MAY.items() if f"{module}.".startswith(f"{part}."))
    may = EXPORT_MAY + tuple(name for names in also for name in names)
    for name in imports(file):
        if name.partition(".")[0] == "server":
            assert f"{name}.".startswith(tuple(f"{each}." for each in may)), f"{module} imports {name}"


def test_the_whole_server_in_a_process_brings_in_nothing_heavy() -> None:
    modules = [name for file in sources("server") if (name := module_name(file)) != "server.__main__"]
    program = f"""
import importlib, json, sys
for name in {modules!r}:
    importlib.import_module(name)
import server.__main__
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert not HEAVY & set(json.loads(done.stdout))


def test_a_command_has_one_thread_when_it_begins_its_processes() -> None:
    """They are forks then, which costs a tenth of what others do; numpy, for one, begins threads."""
    program = """
import sys
import server.cli.search, server.cli.workspace, server.index.folder, server.index.workers, server.search.query
from server.index.workers import _has_one_thread
assert _has_one_thread() or sys.platform != "linux"
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]


def test_a_graph_may_be_opened_before_the_model_is_loaded() -> None:
    program = """
from server.index.graph import Graph
Graph(256)
import onnxruntime
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_import_server_is_all_but_free() -> None:
    program = "import sys; before = set(sys.modules); import server; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["server"]
