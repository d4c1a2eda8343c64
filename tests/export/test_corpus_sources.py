"""What may go into the corpus: permissive licences only, and nothing of the repositories that we are judged on."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from export.corpus.archives import Unusable, open_package
from export.corpus.debian import source_filter, whole_licence
from export.corpus.download import command
from export.corpus.licences import from_metadata, from_package_json, permitted
from export.corpus.manifest import Package, excluded_by, excluded_folders, exclusions, read_manifest, write_manifest


def everything(_path: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ("MIT", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("(MIT OR GPL-3.0)", "MIT"),
        ("MIT AND Zlib", "MIT AND Zlib"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0"),
        ("Expat or GPL-2+", "MIT"),
        ("GPL-3.0-only", None),
        ("LGPL-2.1+", None),
        ("MPL-2.0", None),
        ("MIT AND GPL-2.0", None),
        ("(MIT OR GPL-3.0) AND LGPL-2.1", None),
        ("UNLICENSED", None),
        ("SEE LICENSE IN LICENSE.md", None),
        ("", None),
    ],
)
def test_only_permissive_licences_pass(stated: str, licence: str | None) -> None:
    assert permitted(stated) == licence


def test_a_python_package_is_judged_by_all_of_its_classifiers() -> None:
    mit, gpl = (f"Classifier: License :: OSI Approved :: {name}" for name in ("MIT License", "GNU GPL v3"))
    assert from_metadata(["Name: x", mit]) == "MIT"
    assert from_metadata(["Name: x", mit, gpl]) is None
    assert from_metadata(["Name: x", "License: MIT"]) == "MIT"
    assert from_metadata(["Name: x", "", "License: MIT"]) is None  # the description is not metadata
    assert from_metadata(["Name: x", "License-Expression: BSD-3-Clause", gpl]) == "BSD-3-Clause"


def test_an_npm_package_may_state_its_licence_in_three_ways() -> None:
    assert from_package_json({"license": "ISC"}) == "ISC"
    assert from_package_json({"license": {"type": "MIT"}}) == "MIT"
    assert from_package_json({"licenses": [{"type": "GPL-2.0"}, {"type": "MIT"}]}) == "MIT"
    assert from_package_json({"name": "x"}) is None


COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: someone
License: Expat

Files: lib/copyleft/*
Copyright: another
License: GPL-2+

Files: debian/*
Copyright: a packager
License: GPL-3
"""


def test_a_source_package_gives_only_the_files_under_permissive_licences() -> None:
    verdict = source_filter(COPYRIGHT)
    assert verdict is not None
    licence, may_use = verdict
    assert licence == "MIT"
    assert may_use("lib/main.c")
    assert not may_use("lib/copyleft/deep/inside.c")


def test_a_binary_package_has_to_be_permissive_in_all_but_its_packaging() -> None:
    assert whole_licence(COPYRIGHT) is None
    assert whole_licence(COPYRIGHT.replace("GPL-2+", "BSD-3-clause")) == "MIT"


def test_a_copyright_file_in_prose_permits_nothing() -> None:
    assert source_filter("This program is MIT licensed, mostly.") is None
    assert whole_licence("It was downloaded from somewhere.") is None


def wheel(folder: Path, files: Mapping[str, str]) -> None:
    with zipfile.ZipFile(folder / "thing-1.2-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def tarball(path: Path, files: Mapping[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_a_wheel_is_read_without_being_unpacked(tmp_path: Path) -> None:
    wheel(tmp_path, {"thing/a.py": "x = 1\n", "thing-1.2.dist-info/METADATA": "Name: thing\nLicense: MIT\n"})
    opened = open_package("pypi", "thing", tmp_path)
    assert opened.package == Package("pypi", "thing", "1.2", "MIT")
    assert list(opened.files(lambda path: path.endswith(".py"))) == [("thing/a.py", b"x = 1\n")]


def test_an_npm_package_is_read_from_below_its_top_folder(tmp_path: Path) -> None:
    stated = json.dumps({"name": "thing", "version": "3.0.1", "license": "MIT"})
    tarball(tmp_path / "thing-3.0.1.tgz", {"package/package.json": stated, "package/src/a.ts": "let a = 1\n"})
    opened = open_package("npm", "thing", tmp_path)
    assert opened.package == Package("npm", "thing", "3.0.1", "MIT")
    assert dict(opened.files(everything))["src/a.ts"] == b"let a = 1\n"


def test_a_source_package_is_read_under_the_rules_of_its_copyright_file(tmp_path: Path) -> None:
    (tmp_path / "thing_2.0-1.dsc").write_text("Format: 3.0 (quilt)\nSource: thing\nVersion: 2.0-1\n")
    tarball(tmp_path / "thing_2.0-1.debian.tar.gz", {"debian/copyright": COPYRIGHT})
    tarball(tmp_path / "thing_2.0.orig.tar.gz", {"thing-2.0/a.c": "int a;\n", "thing-2.0/lib/copyleft/b.c": "int b;\n"})
    opened = open_package("src", "thing", tmp_path)
    assert opened.package == Package("src", "thing", "2.0-1", "MIT")
    assert [path for path, _ in opened.files(everything)] == ["a.c"]


@pytest.mark.parametrize("licence", ["GPL-3.0", ""])
def test_a_package_without_a_permissive_licence_is_refused(tmp_path: Path, licence: str) -> None:
    wheel(tmp_path, {"thing-1.2.dist-info/METADATA": f"Name: thing\nLicense: {licence}\n"})
    with pytest.raises(Unusable, match="pypi:thing"):
        open_package("pypi", "thing", tmp_path)


def test_a_damaged_archive_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "thing-1.2-py3-none-any.whl").write_bytes(b"not a zip")
    with pytest.raises(Unusable, match="pypi:thing"):
        open_package("pypi", "thing", tmp_path)


def test_a_download_is_pinned_and_runs_nothing_of_the_package() -> None:
    pip = command(Package("pypi", "thing", "1.2", "MIT"))
    assert "thing==1.2" in pip
    assert {"--no-deps", "--only-binary"} <= set(pip)
    assert {"thing@1.2", "--ignore-scripts"} <= set(command(Package("npm", "thing", "1.2", "MIT")))
    assert "thing=1.2" in command(Package("deb", "thing", "1.2", "MIT"))
    assert {"thing=1.2", "--download-only"} <= set(command(Package("src", "thing", "1.2", "MIT")))


def test_the_manifest_holds_only_pinned_packages_with_a_permissive_licence() -> None:
    packages = read_manifest()
    assert len(packages) > 500
    for package in packages:
        assert package.version, package
        assert permitted(package.licence), package


def test_the_manifest_holds_nothing_of_the_repositories_that_we_are_judged_on() -> None:
    assert len(exclusions()) == 63
    assert [p for p in read_manifest() if excluded_by(p.registry, p.name)] == []


def test_the_manifest_holds_no_package_named_as_such_a_repository() -> None:
    names = {exclusion.repository.split("/")[1].lower() for exclusion in exclusions()}
    namesakes = {("pypi", "redis")}  # a client by others, in another language
    for package in read_manifest():
        assert package.name.lower() not in names or (package.registry, package.name) in namesakes, package


@pytest.mark.parametrize(
    ("registry", "name", "repository"),
    [
        ("pypi", "requests", "psf/requests"),
        ("npm", "@trpc/server", "trpc/trpc"),
        ("deb", "golang-github-spf13-cobra-dev", "spf13/cobra"),
        ("deb", "php-illuminate-support", "laravel/framework"),
        ("src", "curl", "curl/curl"),
        ("pypi", "requests-oauthlib", None),
        ("deb", "golang-github-spf13-viper-dev", None),
    ],
)
def test_packages_of_excluded_repositories_are_known_by_name(registry: str, name: str, repository: str | None) -> None:
    assert excluded_by(registry, name) == repository


def test_folders_of_vendored_copies_are_known() -> None:
    assert {"nlohmann", "absl", "requests", "cobra"} <= excluded_folders()


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    packages = [Package("pypi", "b", "2", "MIT", ("python",)), Package("npm", "@a/c", "1.0.0", "ISC")]
    write_manifest(packages, tmp_path / "m.tsv")
    assert read_manifest(tmp_path / "m.tsv") == sorted(packages)


def test_a_malformed_line_of_the_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("# head\npypi only-a-name\n")
    with pytest.raises(ValueError, match=r"m\.tsv:2"):
        read_manifest(tmp_path / "m.tsv")
