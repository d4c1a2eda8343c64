"""What the extension says of the server is what the server says."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from server import __version__
from server.index.prepare import TEXT_LANGUAGE
from server.parse import KINDS, LANGUAGES
from server.settings import Settings, with_values

from .conftest import EXTENSION

MANIFEST = json.loads((EXTENSION / "package.json").read_text("utf-8"))
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
NOT_THE_SERVERS = {"meaning.server.path", "meaning.trace.server"}
SERVERS = {name.partition(".")[2]: value for name, value in PROPERTIES.items() if name not in NOT_THE_SERVERS}
OF_THE_MACHINE = {"cacheDir", "threads"}
"""Their defaults depend on it: VS Code says nothing, and the server's own holds."""


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def words(file: str, name: str) -> list[str]:
    """The strings of a list in the extension's source."""
    source = (EXTENSION / "src" / file).read_text("utf-8")
    found = re.search(rf"const {name}[^=]*= \[(.*?)\]", source, re.DOTALL)
    assert found
    return re.findall(r'"([^"]+)"', found[1])


def numbers(file: str, name: str) -> tuple[int, ...]:
    found = re.search(rf"const {name}[^=]*= \[([\d, ]+)\]", (EXTENSION / "src" / file).read_text("utf-8"))
    assert found
    return tuple(map(int, found[1].split(",")))


def test_every_setting_of_the_server_is_one_of_vs_code() -> None:
    assert set(SERVERS) == {camel(field.name) for field in fields(Settings)}


@pytest.mark.parametrize("name", SERVERS)
def test_the_default_is_the_servers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "MEANING_MODEL",
        "MEANING_REFINE_MODEL",
        "MEANING_DEVICE",
        "MEANING_CACHE_DIR",
        "MEANING_SHARED_CACHE",
    ):
        monkeypatch.delenv(variable, raising=False)
    default = SERVERS[name]["default"]
    assert (default is None) == (name in OF_THE_MACHINE)
    field = next(field.name for field in fields(Settings) if camel(field.name) == name)
    settings, problems = with_values(Settings(), {name: default})
    assert not problems
    assert getattr(settings, field) == getattr(Settings(), field)


@pytest.mark.parametrize("name", SERVERS)
def test_a_value_that_vs_code_lets_pass_is_one_that_the_server_takes(name: str) -> None:
    schema = SERVERS[name]
    allowed = [schema[bound] for bound in ("minimum", "maximum") if bound in schema] + schema.get("enum", [])
    for value in allowed:
        assert not with_values(Settings(), {name: value})[1]
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            assert with_values(Settings(), {name: schema[bound] + step})[1]


@pytest.mark.parametrize("name", PROPERTIES)
def test_every_setting_is_described(name: str) -> None:
    assert len(PROPERTIES[name]["markdownDescription"]) > 10


def test_what_names_programs_models_and_folders_is_not_taken_from_a_workspace_that_is_not_trusted() -> None:
    untrusted = MANIFEST["capabilities"]["untrustedWorkspaces"]
    named = {name for name, schema in PROPERTIES.items() if re.search(r"path|model$|dir$", name, re.IGNORECASE)}
    assert set(untrusted["restrictedConfigurations"]) == named


def test_the_filters_are_completed_with_what_the_server_knows() -> None:
    assert words("search/vocabulary.ts", "LANGUAGES") == [*(each.name for each in LANGUAGES), TEXT_LANGUAGE]
    assert words("search/vocabulary.ts", "KINDS") == list(KINDS)


def test_the_extension_carries_the_version_that_it_asks_for() -> None:
    oldest = numbers("server/locate.ts", "OLDEST_SERVER")
    assert oldest <= tuple(int(part) for part in re.findall(r"\d+", __version__))
    assert MANIFEST["version"] == __version__


def test_python_is_asked_for_as_the_wheel_asks_for_it() -> None:
    project = (Path(EXTENSION.parent) / "pyproject.toml").read_text("utf-8")
    oldest, too_new = (numbers("server/python.ts", name) for name in ("OLDEST_PYTHON", "FIRST_PYTHON_TOO_NEW"))
    assert f'requires-python = ">={oldest[0]}.{oldest[1]},<{too_new[0]}.{too_new[1]}"' in project


def test_there_is_one_dependency_at_run_time() -> None:
    assert list(MANIFEST["dependencies"]) == ["vscode-languageclient"]
