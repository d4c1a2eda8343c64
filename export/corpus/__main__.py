"""python -m export.corpus --out DIR: download, harvest and assemble the training corpus. Goes on where it stopped.

`--pin` instead tries the packages whose archives lie in DIR/archives and writes the manifest anew from those that may
be used: their version and licence as their own metadata states them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from .archives import Unusable, open_package
from .assemble import assemble
from .download import archive_folder, download
from .harvest import harvest
from .manifest import REGISTRIES, Package, excluded_by, read_manifest, write_manifest

PROCESSES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m export.corpus", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for archives, pairs and the corpus (many GB)")
    parser.add_argument("--registry", choices=REGISTRIES, action="append", help="only these packages")
    parser.add_argument("--pin", action="store_true", help="write the manifest from what was downloaded")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.pin:
        pin(options.out, _say)
        return 0
    packages = [p for p in read_manifest() if not options.registry or p.registry in options.registry]
    there, lost = download(packages, options.out, _say)
    files = harvest_all(there, options.out, _say)
    counts = assemble(files, options.out)
    _say(f"{counts.train.total()} pairs to train on, {counts.valid.total()} held out: {options.out}")
    return 1 if lost else 0


def pin(out: Path, say: Callable[[str], None]) -> list[Package]:
    """Writes the manifest from the usable packages under out/archives."""
    found = []
    for registry in REGISTRIES:
        for folder in sorted((out / "archives" / registry).glob("[!.]*")):
            name = folder.name.replace("+", "/") if registry == "npm" else folder.name
            if because := excluded_by(registry, name):
                say(f"left out {registry}:{name}: part of {because}")
                continue
            try:
                package = open_package(registry, name, folder).package
            except Unusable as reason:
                say(f"left out {reason}")
                continue
            languages = _languages(out, package)
            if languages == ():
                say(f"left out {registry}:{name}: gave no pairs")
                continue
            found.append(replace(package, languages=languages or ()))
    write_manifest(found)
    return found


def _languages(out: Path, package: Package) -> tuple[str, ...] | None:
    """The languages that the package gave most pairs in; None if it was not harvested yet."""
    counts = out / "pairs" / f"{package.key}.counts.json"
    if not counts.exists():
        return None
    by_language: dict[str, int] = json.loads(counts.read_text())
    return tuple(sorted(by_language, key=lambda language: -by_language[language])[:3])


def harvest_all(packages: list[Package], out: Path, say: Callable[[str], None]) -> list[Path]:
    """Harvests each package that is not yet; returns the files of pairs."""
    targets = {package: out / "pairs" / f"{package.key}.jsonl" for package in packages}
    todo = [package for package, target in targets.items() if not target.exists()]
    with ProcessPoolExecutor(PROCESSES, initializer=os.nice, initargs=(10,)) as pool:
        jobs = {pool.submit(harvest_one, package, out): package for package in todo}
        for done, job in enumerate(as_completed(jobs), 1):
            problem = job.exception()
            outcome = f"failed: {problem!r}" if problem else job.result()
            say(f"harvest {done}/{len(todo)} {jobs[job].key}: {outcome}")
    return [target for target in targets.values() if target.exists()]


def harvest_one(package: Package, out: Path) -> str:
    """Harvests one package, in a process of its own; returns what to tell."""
    try:
        opened = open_package(package.registry, package.name, archive_folder(package, out))
    except Unusable as reason:
        return str(reason)
    target = out / "pairs" / f"{package.key}.jsonl"
    counts = harvest(opened, target)
    target.with_suffix(".counts.json").write_text(json.dumps(counts, sort_keys=True) + "\n")
    return f"{sum(counts.values())} pairs"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
