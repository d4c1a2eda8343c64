"""A model on disk: a folder of data that says what is in it, checked before anything of it is loaded.

`bundle.json` holds the keys of `Bundle` (below) and the SHA-256 of every file that is loaded; keys that are not known
here are left alone, so that a bundle can say more about itself. Beside it lie `tokenizer.json` and either `model.onnx`
or, for two encoders, `query.onnx` and `code.onnx`. A bundle is data, never code.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..settings import DEFAULT_MODEL

FORMAT = 1
"""The only format of bundle.json that this version reads."""
MANIFEST = "bundle.json"
TOKENIZER = "tokenizer.json"
ONE_ENCODER = "model.onnx"
QUERY_ENCODER = "query.onnx"
CODE_ENCODER = "code.onnx"

_READ_BLOCK = 1 << 20
_SHIPPED = {DEFAULT_MODEL: Path(__file__).parent / "default"}


class ModelError(Exception):
    """The model cannot be used. The message is one line: what is wrong, where, and what to do."""


class BundleError(ModelError):
    """The folder is not a sound bundle."""


@dataclass(frozen=True)
class Bundle:
    """A checked bundle. `load` is the way to make one."""

    folder: Path
    id: str
    """Names the model, for people: two exports may have been given the same one."""
    dim: int
    max_tokens: int
    """The longest input, special tokens and prompt included."""
    padding_side: str
    """`left` or `right`."""
    query_prompt: str
    code_prompt: str
    """Written before a query, or before code; empty for none."""
    output: str
    """The name of the encoders' one output, float32 [batch, dim]."""
    dtype: str
    """How the weights are stored; for people, the output is float32 in any case."""
    normalized: bool
    """Whether the graph makes its vectors unit length itself."""
    files: Mapping[str, str]
    """SHA-256 in hexadecimal of each file that belongs to the bundle."""
    source: str | Mapping[str, Any]
    """Where the weights come from and what they were trained on."""
    licence: str
    refine_weight: float | None = None
    """As a second tier, how much its opinion weighs beside the quick model's order; None where nobody measured it."""

    @cached_property
    def fingerprint(self) -> str:
        """Names what makes its vectors of code: those of different fingerprints never mix. Begins with the id."""
        makes = [
            sorted(self.files.items()),
            self.dim,
            self.max_tokens,
            self.padding_side,
            self.code_prompt,
            self.output,
        ]
        return f"{self.id} {hashlib.sha256(json.dumps(makes).encode()).hexdigest()[:16]}"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's file, in the format of the `tokenizers` library."""
        return self.folder / TOKENIZER

    @property
    def query_encoder(self) -> Path:
        """The graph that embeds queries."""
        return self.folder / (ONE_ENCODER if ONE_ENCODER in self.files else QUERY_ENCODER)

    @property
    def code_encoder(self) -> Path:
        """The graph that embeds code; the same file as `query_encoder` when the bundle has one encoder."""
        return self.folder / (ONE_ENCODER if ONE_ENCODER in self.files else CODE_ENCODER)

    @classmethod
    def load(cls, path: Path) -> Bundle:
        """Reads and checks the bundle in the folder `path`.

        Raises BundleError when anything of it is not as it should be, a file's hash included.
        """
        bundle = _parse(path, _manifest(path))
        _check_names(bundle)
        for name, expected in bundle.files.items():
            _check_hash(bundle.folder / name, expected)
        return bundle


def resolve_model(name_or_path: str) -> Path:
    """The folder of the model that a setting names: `default` for the shipped one, or the path of a bundle."""
    if name_or_path in _SHIPPED:
        return _SHIPPED[name_or_path]
    with suppress(RuntimeError, OSError, ValueError):  # `~nobody`, a name that no file system takes
        folder = Path(name_or_path).expanduser()
        if name_or_path and folder.is_dir():
            return folder
    names = ", ".join(f"`{name}`" for name in _SHIPPED)
    raise BundleError(f"no model {name_or_path!r}: give {names} or the path of a folder with a {MANIFEST}")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as `files` in bundle.json wants it."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror or error}; a model bundle is a folder with a {MANIFEST}") from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: not JSON ({error}); export the bundle again") from None
    if not isinstance(values, dict):
        raise BundleError(f"{path}: holds {_kind(values)} instead of an object; export the bundle again")
    if (found := values.get("format")) != FORMAT or isinstance(found, bool):
        raise BundleError(
            f"{path}: format {found!r}, but this version reads format {FORMAT}; "
            "use a bundle that was made for it, or another version of meaning-lsp"
        )
    return values


def _parse(folder: Path, values: Mapping[str, Any]) -> Bundle:
    parsed: dict[str, Any] = {}
    for key, (read, wanted) in _FIELDS.items():
        place = f"{folder / MANIFEST}: `{key}`"
        if key not in values and key in _OPTIONAL:
            continue
        if key not in values:
            raise BundleError(f"{place} is missing, it should be {wanted}; export the bundle again")
        try:
            parsed[key] = read(values[key])
        except ValueError:
            found = _kind(values[key])
            raise BundleError(f"{place} is {found}, it should be {wanted}; export the bundle again") from None
    return Bundle(folder=folder, output=parsed.pop("outputs"), **parsed)


def _check_names(bundle: Bundle) -> None:
    """Every name stays in the folder, and the names are those of one encoder or of two."""
    place = f"{bundle.folder / MANIFEST}: `files`"
    for name in bundle.files:
        if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
            raise BundleError(f"{place} names {name!r}, which is not a file of the bundle's own folder; do not use it")
    encoders = {ONE_ENCODER, QUERY_ENCODER, CODE_ENCODER} & bundle.files.keys()
    if TOKENIZER not in bundle.files or encoders not in ({ONE_ENCODER}, {QUERY_ENCODER, CODE_ENCODER}):
        raise BundleError(
            f"{place} should name {TOKENIZER} and either {ONE_ENCODER} or both {QUERY_ENCODER} and {CODE_ENCODER}, "
            f"not {', '.join(sorted(bundle.files)) or 'nothing'}; export the bundle again"
        )
    # A large graph keeps its weights in files beside it, which the runtime would load without a word.
    for path in sorted(bundle.folder.iterdir()):
        if path.name.startswith(tuple(encoders)) and path.name not in bundle.files:
            raise BundleError(f"{path}: has no sha256 in {place}; delete it, or export the bundle again")


def _check_hash(path: Path, expected: str) -> None:
    try:
        found = sha256_of(path)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror or error}; copy or export the bundle again") from None
    if found != expected.lower():
        raise BundleError(
            f"{path}: sha256 is {found}, but {MANIFEST} says {expected}; the file is damaged or was changed, "
            "copy or export the bundle again"
        )


def _kind(value: Any) -> str:
    """A value as an error shows it: its type, and the value itself where that is short."""
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else f"a {type(value).__name__} ({shown[:30]}…)"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _name(value: Any) -> str:
    if not _text(value).strip():
        raise ValueError
    return str(value)


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError
    return value


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError
    return float(value)


def _side(value: Any) -> str:
    if value not in ("left", "right"):
        raise ValueError
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _only_output(value: Any) -> str:
    if not isinstance(value, list) or len(value) != 1:
        raise ValueError
    return _name(value[0])


def _hashes(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(digest, str) for digest in value.values()):
        raise ValueError
    return value


def _origin(value: Any) -> str | Mapping[str, Any]:
    return value if isinstance(value, dict) else _name(value)


_FIELDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "id": (_name, "a non-empty string"),
    "dim": (_positive, "a positive whole number"),
    "max_tokens": (_positive, "a positive whole number"),
    "padding_side": (_side, "`left` or `right`"),
    "query_prompt": (_text, "a string"),
    "code_prompt": (_text, "a string"),
    "outputs": (_only_output, "a list of one output's name"),
    "dtype": (_name, "a non-empty string"),
    "normalized": (_flag, "true or false"),
    "files": (_hashes, "an object of file names and their SHA-256"),
    "source": (_origin, "a string or an object"),
    "licence": (_name, "a non-empty string"),
    "refine_weight": (_weight, "a number from 0 on"),
}
"""How each key of bundle.json is read, and what an error says that it should be."""

_OPTIONAL = frozenset({"refine_weight"})
"""Keys that a bundle may lack."""
