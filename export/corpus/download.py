"""Fetches pinned packages with the registries' own clients: pip, npm and apt-get, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .manifest import Package

PARALLEL_DOWNLOADS = 6
TIMEOUT_S = 900
SUITE = "bookworm"
"""The Debian release that the manifest's versions come from."""

_APT_SOURCES = """\
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian {suite} main
"""
_APT_CONF = """\
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::Lists "{root}/lists";
Dir::Cache "{root}/cache";
APT::Sandbox::User "";
"""


def download(
    packages: Iterable[Package], out: Path, report: Callable[[str], None] = lambda _: None
) -> tuple[list[Package], list[Package]]:
    """Fetches what `out`/archives lacks. Returns the packages that are there and those that could not be had."""
    wanted = list(packages)
    missing = [p for p in wanted if not archive_folder(p, out).is_dir()]
    if any(p.registry in ("deb", "src") for p in missing):
        prepare_apt(out / "apt")
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        for done, (package, problem) in enumerate(pool.map(lambda p: (p, _fetch(p, out)), missing), 1):
            report(f"download {done}/{len(missing)} {package.key}{': ' + problem if problem else ''}")
    there = [p for p in wanted if archive_folder(p, out).is_dir()]
    return there, [p for p in wanted if p not in set(there)]


def archive_folder(package: Package, out: Path) -> Path:
    """Where the archives of a package lie once they are whole."""
    return out / "archives" / package.registry / package.name.replace("/", "+")


def prepare_apt(root: Path) -> None:
    """A package index of our own that has source packages, beside the system's and without touching it."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "sources.list").write_text(_APT_SOURCES.format(suite=SUITE))
    (root / "apt.conf").write_text(_APT_CONF.format(root=root.resolve()))
    if not any((root / "lists").glob("*Sources*")):
        subprocess.run(["apt-get", "-q", "update"], env=_environment(root), check=True, stdout=subprocess.DEVNULL)


def _fetch(package: Package, out: Path) -> str:
    """Downloads into a temporary folder and renames it: a folder that is there is whole. Returns what is wrong."""
    target = archive_folder(package, out)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".part-", dir=target.parent))
    try:
        done = subprocess.run(
            command(package),
            cwd=scratch,
            env=_environment(out / "apt"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
        )
        if done.returncode == 0 and any(scratch.iterdir()):
            scratch.rename(target)
            return ""
        return (done.stderr.strip().splitlines() or ["nothing came"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def command(package: Package) -> list[str]:
    """The client's command that leaves the package's archives in the current folder; nothing of it is run."""
    pinned = {"pypi": "==", "npm": "@"}.get(package.registry, "=")
    spec = f"{package.name}{pinned}{package.version}" if package.version else package.name
    if package.registry == "pypi":  # wheels only: a source archive would run its build script to name itself
        return [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", spec]
    if package.registry == "npm":
        return ["npm", "pack", "--silent", "--ignore-scripts", spec]
    if package.registry == "deb":
        return ["apt-get", "-q", "download", spec]
    return ["apt-get", "-q", "source", "--download-only", "--only-source", spec]


def _environment(apt_root: Path) -> dict[str, str]:
    return {**os.environ, "APT_CONFIG": str(apt_root.resolve() / "apt.conf"), "LC_ALL": "C.UTF-8"}
