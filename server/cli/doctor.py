"""What is wrong with an installation, and what to do about it.

Nothing but the standard library is imported until a check needs it, and a check that fails in a way that nobody thought
of is a finding, too: this has to run where nothing else does.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .. import __version__
from ..settings import SHARED_KEY, SHARED_PASSWORD, SHARED_USER, Settings
from ..terminal import PROGRAM, print_line, shown
from .workspace import folder as folder_of
from .workspace import settings_of

OK, WARNING, ERROR = "ok", "warning", "error"

PYTHONS = ((3, 10), (3, 14))
"""From, and up to but not including."""
OLDEST_SQLITE = (3, 35)
"""The first with RETURNING."""
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
VARIABLES = frozenset(
    {"MEANING_CACHE_DIR", "MEANING_MODEL", "MEANING_REFINE_MODEL", "MEANING_DEVICE", "MEANING_SHARED_CACHE"}
    | {SHARED_USER, SHARED_PASSWORD, SHARED_KEY}
    | {"MEANING_ORG_INDEX", "MEANING_ORG_USER", "MEANING_ORG_PASSWORD"}
)
LITTLE_DISK = 500_000_000
"""Bytes: a large workspace's index, and its rebuilding beside it."""
FEW_WATCHES = 16_384
"""inotify watches, one a folder, which all programs of a user share."""
VERSION_SECONDS = 20
NEEDS = {
    "modules": {"packages", "files"},
    "grammars": {"packages", "files"},
    "model": {"packages", "files", "onnxruntime", "modules"},
    "index": {"packages", "files", "onnxruntime", "modules", "SQLite", "model"},
}
"""What is not looked at while something that it needs is broken: it would tell the same fault in other words."""
PARTS = ("..search.searcher", "..lsp.server", "usearch.index", "watchdog.observers")
"""Modules that bring in all the others, and those that are imported when they are first needed."""

_INOTIFY = Path("/proc/sys/fs/inotify/max_user_watches")
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[.*?\])?\s*([^;]*)")
_BOUND = re.compile(r"(>=|<=|==|<|>|!=)\s*([\d.]+)")
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: str
    """OK, WARNING (works, but not as well as it could) or ERROR."""
    what: str
    remedy: str = ""
    """What to do about it."""


def run(options: argparse.Namespace) -> int:
    """Tell every finding; 1 if one is an error."""
    levels = []
    for finding in findings(folder_of(options.path), settings_of(options)):
        print_line(f"{finding.level:8} {shown(finding.what)}")
        if finding.remedy:
            print_line(f"{'':8} -> {shown(finding.remedy)}")
        levels.append(finding.level)
    return int(ERROR in levels)


def findings(root: Path, settings: Settings) -> Iterator[Finding]:
    """All that was looked at, for a workspace folder, in the order in which one thing needs the other."""
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "Python": _python,
        "packages": _packages,
        "files": _files,
        "onnxruntime": _runtime,
        "modules": _modules,  # after onnxruntime, which crashes where usearch is loaded before it (2.26 and 1.32)
        "SQLite": _sqlite,
        "grammars": _grammars,
        "model": lambda: _model(settings),
        "cache": lambda: _cache(settings),
        "index": lambda: _index(root, settings),
        "watching": _watching,
        "environment": _environment,
        "program": _program,
        "agents": _agents,
    }
    broken = set[str]()
    for name, check in checks.items():
        if broken.isdisjoint(NEEDS.get(name, ())):
            for finding in _guarded(name, check):
                if finding.level == ERROR:
                    broken.add(name)
                yield finding


def _guarded(name: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:
        yield Finding(ERROR, f"{name}: {error or type(error).__name__}", _reinstall())


def _reinstall() -> str:
    """All packages anew, in the versions that are right. (Without an extra: which onnxruntime is there stays.)"""
    return f"{_python_shown()} -m pip install --force-reinstall {_source()}"


def _source() -> str:
    """Where this installation came from, as pip takes it: a folder or a wheel if it is still there, else the name."""
    try:
        recorded = metadata.distribution("meaning-lsp").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        recorded = None
    url = urlsplit(json.loads(recorded)["url"]) if recorded else urlsplit("")
    path = url2pathname(url.path)
    return shlex.quote(path) if url.scheme == "file" and Path(path).exists() else "meaning-lsp"


def _python_shown() -> str:
    """This interpreter, as one types it."""
    return f'"{sys.executable}"' if " " in sys.executable else sys.executable


def _python() -> Iterator[Finding]:
    version, machine = platform.python_version(), f"{platform.system()} {platform.machine()}"
    fits = PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]
    remedy = f"install it with Python {PYTHONS[0][0]}.{PYTHONS[0][1]} to {PYTHONS[1][0]}.{PYTHONS[1][1] - 1}"
    what = f"{PROGRAM} {__version__}, Python {version} on {machine}, {sys.executable}"
    yield Finding(OK, what) if fits else Finding(ERROR, what, remedy)


def _packages() -> Iterator[Finding]:
    try:
        requirements = [each for each in metadata.requires("meaning-lsp") or () if "extra ==" not in each]
    except metadata.PackageNotFoundError:
        yield Finding(OK, "runs from a clone: which versions of packages it gets is up to you")
        return
    wrong = [found for each in requirements if (found := _requirement_problem(each))]
    for package, problem in wrong:
        yield Finding(ERROR, problem, f"{_python_shown()} -m pip install '{package}'")
    if not wrong:
        yield Finding(OK, f"all {len(requirements)} packages that it needs are there")


def _files() -> Iterator[Finding]:
    """Whether the package's own files (code, queries, weights, the model) are those that were installed."""
    damaged = []
    try:
        record = metadata.distribution("meaning-lsp").read_text("RECORD") or ""
    except metadata.PackageNotFoundError:
        return
    recorded = [
        (name, sha256) for name, sha256, _ in csv.reader(record.splitlines()) if name.startswith("meaning_lsp/")
    ]
    for name, sha256 in recorded:
        path = Path(str(metadata.distribution("meaning-lsp").locate_file(name)))
        if sha256 and (problem := _damage(path, sha256.removeprefix("sha256="))):
            damaged.append(Finding(ERROR, f"{path}: {problem}", _reinstall()))
    yield from damaged
    if recorded and not damaged:
        yield Finding(OK, "its own files are as they were installed")


def _damage(path: Path, sha256: str) -> str | None:
    """What is wrong with a file that has this hash, in base64 without padding, when it is whole."""
    try:
        seen = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
    except OSError as error:
        return error.strerror or str(error)
    return None if seen == sha256 else "is not as it was installed"


def _modules() -> Iterator[Finding]:
    """Whether what is there can be loaded: a wheel of another platform, a file that is missing."""
    broken = dict[str, None]()
    for part in PARTS:
        try:
            import_module(part, __package__)
        except ImportError as error:  # noqa: PERF203
            broken[str(error)] = None
    for problem in broken:
        yield Finding(ERROR, problem, _reinstall())
    if not broken:
        yield Finding(OK, "all of its modules can be loaded")


def _requirement_problem(requirement: str) -> tuple[str, str] | None:
    """What to install and what is wrong, if something is, about a requirement such as `numpy<3,>=2.1`."""
    matched = _REQUIREMENT.match(requirement)
    assert matched
    name, bounds = matched[1], matched[2].strip()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name}{bounds}", f"{name} is not installed"
    if all(_COMPARE[sign](*_comparable(version, bound)) for sign, bound in _BOUND.findall(bounds)):
        return None
    return f"{name}{bounds}", f"{name} is {version}, and has to be {bounds}"


def _comparable(version: str, bound: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = [[int(part) for part in re.findall(r"\d+", each.partition("+")[0])] for each in (version, bound)]
    length = max(map(len, numbers))
    first, second = (tuple(each + [0] * (length - len(each))) for each in numbers)
    return first, second


def _runtime() -> Iterator[Finding]:
    there = {name: version for name in RUNTIMES if (version := _version(name))}
    if len(there) == len(RUNTIMES):
        both = " and ".join(RUNTIMES)
        yield Finding(
            ERROR,
            f"{both} are both installed, and write over one another's files",
            f"{_python_shown()} -m pip uninstall -y {' '.join(RUNTIMES)}, and then install one of them anew",
        )
        return
    try:
        import_module("numpy")  # without which onnxruntime writes a traceback of its own
        runtime = import_module("onnxruntime")
    except ImportError as error:
        missing = "onnxruntime is not installed" if not there else f"onnxruntime cannot be loaded ({error})"
        remedy = f"{_python_shown()} -m pip install 'meaning-lsp[cpu]', or [gpu] for an NVIDIA card"
        yield Finding(ERROR, missing, remedy)
        return
    runs_on = "an NVIDIA card" if "CUDAExecutionProvider" in runtime.get_available_providers() else "the processor"
    yield Finding(OK, f"{next(iter(there), 'onnxruntime')} {runtime.__version__}, for {runs_on}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _sqlite() -> Iterator[Finding]:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        what = f"SQLite {sqlite3.sqlite_version} of this Python is older than {'.'.join(map(str, OLDEST_SQLITE))}"
        yield Finding(ERROR, what, "use a Python from python.org, your distribution, conda or uv")
    else:
        yield Finding(OK, f"SQLite {sqlite3.sqlite_version}")


def _grammars() -> Iterator[Finding]:
    from ..parse import LANGUAGES
    from ..parse.grammar import parse_tree

    loaded = 0
    for language in LANGUAGES:
        if language.grammar is None:
            continue
        try:
            parse_tree(b"", language)
            loaded += 1
        except Exception as error:
            yield Finding(ERROR, f"{language.name}: its grammar cannot be loaded ({error})", _reinstall())
    if loaded:
        yield Finding(OK, f"{loaded} grammars")


def _model(settings: Settings) -> Iterator[Finding]:
    from ..embed.bundle import BundleError, ModelError

    for name, variable in ((settings.model, "MEANING_MODEL"), (settings.refine_model, "MEANING_REFINE_MODEL")):
        try:
            if name:
                yield Finding(OK, _tried(name, settings))
        except BundleError as error:  # noqa: PERF203
            remedy = f"name another one (the setting, --model or {variable}), or get this one anew"
            yield Finding(ERROR, f"{error}", f"{remedy}: {_reinstall()}" if name == Settings().model else remedy)
        except ModelError as error:  # of what it runs on
            yield Finding(ERROR, f"{error}", "or name another device: the setting, or MEANING_DEVICE=cpu")


def _tried(name: str, settings: Settings) -> str:
    """Load a model and embed a word. Raises ModelError."""
    from ..embed.bundle import Bundle, resolve_model
    from ..embed.embedder import Embedder

    start = time.perf_counter()
    bundle = Bundle.load(resolve_model(name))
    embedder = Embedder(bundle, settings.threads, settings.device)
    loaded = time.perf_counter()
    embedder.embed_queries(["where is this done"])
    took = (time.perf_counter() - loaded) * 1000
    return f"model {bundle.id} on {embedder.device}: loaded in {loaded - start:.2f} s, a question takes {took:.1f} ms"


def _cache(settings: Settings) -> Iterator[Finding]:
    folder = settings.cache_dir.absolute()
    remedy = "choose another folder: MEANING_CACHE_DIR, --cache-dir or the setting cacheDir"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding(ERROR, f"{folder}: no index can be written there ({error.strerror or error})", remedy)
        return
    what = f"indexes lie in {folder}, {free / 1e9:.1f} GB are free there"
    yield Finding(OK, what) if free > LITTLE_DISK else Finding(WARNING, what, f"make room, or {remedy}")


def _index(root: Path, settings: Settings) -> Iterator[Finding]:
    from ..embed.bundle import Bundle, resolve_model
    from ..index.database import DATABASE, StoreError
    from ..index.folder import index_folder
    from ..index.index import Index

    folder = index_folder(settings.cache_dir.absolute(), root)
    if not (folder / DATABASE).exists():
        yield Finding(OK, f"{root} has no index yet; the first search makes it")
        return
    remedy = f"if it stays after `{PROGRAM} index`, delete {folder}: it is made again"
    try:
        with closing(Index.open(root, Bundle.load(resolve_model(settings.model)), settings)) as index:
            status = index.status()
    except StoreError as error:
        yield Finding(ERROR, f"{error}", remedy)
        return
    yield Finding(OK, f"{root}: {status.files} files, {status.units} units, {status.pending} files pending")
    for problem in status.problems:
        yield Finding(WARNING, problem, remedy)


def _watching() -> Iterator[Finding]:
    if not _INOTIFY.exists():
        return
    watches = int(_INOTIFY.read_text())
    what = f"the system lets a user watch {watches} folders"
    if watches >= FEW_WATCHES:
        yield Finding(OK, what)
    else:
        remedy = "sudo sysctl fs.inotify.max_user_watches=524288 (and in /etc/sysctl.d, to keep it)"
        yield Finding(WARNING, f"{what}: in large workspaces changes are seen late", remedy)


def _environment() -> Iterator[Finding]:
    for name in sorted(os.environ):
        if name.startswith("MEANING_") and name not in VARIABLES and not name.startswith("MEANING_TEST_"):
            yield Finding(WARNING, f"{name} is set, which nothing reads", f"known are {', '.join(sorted(VARIABLES))}")


def _program() -> Iterator[Finding]:
    found = shutil.which(PROGRAM)
    if found is None:
        here = Path(sys.executable).with_name(PROGRAM)
        remedy = f"put {here.parent} on your PATH, or tell the editor to run {here}"
        yield Finding(WARNING, f"no {PROGRAM} is on the PATH, where editors look for it", remedy)
        return
    asked = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=False)
    if asked.stdout.split() == [PROGRAM, __version__]:
        yield Finding(OK, f"editors find {found}")
    else:
        said = (asked.stdout or asked.stderr).strip().rpartition("\n")[2] or f"ends with status {asked.returncode}"
        what = f"{found}, which editors find, is another one than this ({said}; this is {__version__})"
        yield Finding(WARNING, what, "remove one of the two, or tell the editor which to run")


def _agents() -> Iterator[Finding]:
    version = _version("mcp")
    without = f"without the `mcp` package, which `{PROGRAM} mcp` alone needs: pip install 'meaning-lsp[mcp]'"
    yield Finding(OK, f"mcp {version}, for coding agents" if version else without)
