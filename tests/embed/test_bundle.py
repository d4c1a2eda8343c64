"""What bundle.json promises is checked before anything is loaded, and every refusal says what, where and what to do."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from server.embed import bundle
from server.embed.bundle import Bundle, BundleError, resolve_model

from .tiny import DIM, write_bundle, write_manifest


def refusal(folder: Path) -> str:
    with pytest.raises(BundleError) as caught:
        Bundle.load(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def manifest(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
    return values


def test_a_sound_bundle_is_read(tmp_path: Path) -> None:
    found = Bundle.load(write_bundle(tmp_path / "model"))
    assert (found.id, found.dim, found.output) == ("tiny-1", DIM, "vectors")
    assert found.query_encoder == found.code_encoder == tmp_path / "model" / "model.onnx"


def test_a_fingerprint_is_of_what_makes_vectors_whatever_the_id_and_the_place(tmp_path: Path) -> None:
    made = Bundle.load(write_bundle(tmp_path / "made"))
    copied = Bundle.load(write_bundle(tmp_path / "copied", changed={"licence": "MIT", "query_prompt": "find:"}))
    others = [
        Bundle.load(write_bundle(tmp_path / "retrained", seed=1)),
        Bundle.load(write_bundle(tmp_path / "shorter", changed={"max_tokens": 9})),
        Bundle.load(write_bundle(tmp_path / "prompted", changed={"code_prompt": "def"})),
        Bundle.load(write_bundle(tmp_path / "renamed", changed={"id": "tiny-2"})),
    ]
    assert copied.fingerprint == made.fingerprint
    assert len({each.fingerprint for each in [made, *others]}) == 5


def test_two_encoders_are_two_files(tmp_path: Path) -> None:
    found = Bundle.load(write_bundle(tmp_path, ("query.onnx", "code.onnx")))
    assert found.query_encoder == tmp_path / "query.onnx"
    assert found.code_encoder == tmp_path / "code.onnx"


def test_keys_that_are_not_known_are_left_alone(tmp_path: Path) -> None:
    assert Bundle.load(write_bundle(tmp_path, changed={"trained_on": {"pairs": 200_000}})).id == "tiny-1"


@pytest.mark.parametrize("key", sorted(bundle._FIELDS.keys() - bundle._OPTIONAL))
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    values = manifest(write_bundle(tmp_path))
    del values[key]
    (tmp_path / "bundle.json").write_text(json.dumps(values))
    assert f"`{key}` is missing" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", ""),
        ("id", 3),
        ("dim", "256"),
        ("dim", 0),
        ("dim", True),
        ("max_tokens", 1.5),
        ("padding_side", "both"),
        ("padding_side", ["left"]),
        ("query_prompt", None),
        ("code_prompt", 1),
        ("outputs", []),
        ("outputs", ["a", "b"]),
        ("outputs", "vectors"),
        ("dtype", []),
        ("normalized", 1),
        ("files", ["model.onnx"]),
        ("files", {"model.onnx": 1}),
        ("source", ""),
        ("licence", {}),
        ("refine_weight", "3"),
        ("refine_weight", -1),
        ("refine_weight", math.nan),
        ("refine_weight", math.inf),
        ("refine_weight", True),
        ("refine_weight", None),
    ],
)
def test_a_value_of_the_wrong_type_is_named(tmp_path: Path, key: str, value: object) -> None:
    write_bundle(tmp_path, changed={key: value})
    message = refusal(tmp_path)
    assert f"`{key}` is" in message
    assert "it should be" in message


def test_a_bundle_may_say_what_its_opinion_weighs(tmp_path: Path) -> None:
    told, silent = (
        Bundle.load(write_bundle(tmp_path / name, changed=changed))
        for name, changed in (("told", {"refine_weight": 2}), ("silent", None))
    )
    assert (told.refine_weight, silent.refine_weight) == (2, None)
    assert told.fingerprint == silent.fingerprint  # its vectors are the same


@pytest.mark.parametrize("number", [2, 0, "1", None, True])
def test_another_format_is_refused(tmp_path: Path, number: object) -> None:
    write_bundle(tmp_path, changed={"format": number})
    message = refusal(tmp_path)
    assert f"format {number!r}" in message
    assert "reads format 1" in message


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", '{"format": 1'])
def test_a_broken_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write_bundle(tmp_path)
    (tmp_path / "bundle.json").write_text(text)
    assert "bundle.json" in refusal(tmp_path)


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    assert "a model bundle is a folder with a bundle.json" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_is_refused(tmp_path: Path, name: str) -> None:
    path = write_bundle(tmp_path) / name
    path.write_bytes(path.read_bytes() + b"\0")
    message = refusal(tmp_path)
    assert name in message
    assert "damaged or was changed" in message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    (write_bundle(tmp_path) / "model.onnx").unlink()
    assert "model.onnx: No such file" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["../model.onnx", "/etc/passwd", "sub/model.onnx", "..", "", "a\\b", "C:x", "a\0b"])
def test_a_file_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    files = manifest(write_bundle(tmp_path))["files"]
    write_bundle(tmp_path, changed={"files": {**files, name: "0" * 64}})
    assert "not a file of the bundle's own folder" in refusal(tmp_path)


@pytest.mark.parametrize("encoders", [(), ("query.onnx",), ("code.onnx",), ("model.onnx", "query.onnx", "code.onnx")])
def test_one_encoder_or_both_of_two(tmp_path: Path, encoders: tuple[str, ...]) -> None:
    write_bundle(tmp_path, encoders)
    assert "either model.onnx or both query.onnx and code.onnx" in refusal(tmp_path)


def test_weights_beside_the_graph_need_a_hash(tmp_path: Path) -> None:
    (write_bundle(tmp_path) / "model.onnx.data").write_bytes(b"weights")
    assert "model.onnx.data: has no sha256" in refusal(tmp_path)
    write_manifest(tmp_path, ("model.onnx", "model.onnx.data"))
    assert "model.onnx.data" in Bundle.load(tmp_path).files


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (write_bundle(tmp_path) / "NOTICE").write_text("thanks")
    assert Bundle.load(tmp_path).files.keys() == {"tokenizer.json", "model.onnx"}


def test_default_is_the_shipped_model_and_a_folder_is_itself(tmp_path: Path) -> None:
    assert resolve_model("default").name == "default"
    assert resolve_model(str(tmp_path)) == tmp_path


def test_the_shipped_model_is_sound() -> None:
    assert Bundle.load(resolve_model("default")).licence == "Apache-2.0"


def test_a_model_that_does_not_exist_is_refused_with_the_names_that_do(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no model 'gpt': give `default` or the path of a folder"):
        resolve_model("gpt")
