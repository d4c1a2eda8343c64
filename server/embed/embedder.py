"""Text -> vectors, by whatever model a bundle holds.

Every vector that leaves here is float32, finite and of unit length. onnxruntime is imported when an Embedder is made,
so that all else works without it.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from ..settings import DEVICES
from .bundle import Bundle, BundleError, ModelError

Vectors = npt.NDArray[np.float32]

BATCH_TOKENS = 4096
"""Most tokens of one run of the model, padding included: what bounds its memory."""
EQUAL_LENGTH_TOKENS = 256
"""Inputs of one length that hold this many tokens together are run without padding. Below it the cost of a run
outweighs the padding that it saves. (Weights that are quantised at run time feel padding: less of it, less noise.)"""
FEW_TEXTS = 16
"""Up to here texts are embedded one by one, and those of late are not embedded again."""
RECENT_TEXTS = 256
_CUDA, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_INPUTS = {"input_ids", "attention_mask"}
_PAD = 0
"""Any id will do: padding is masked."""
_ERRORS_ONLY = 3
"""A severity of onnxruntime's log."""
_TINY = 1e-12
"""A vector shorter than this has no direction."""


class RuntimeMissingError(ModelError):
    """onnxruntime is not installed."""


class EmbeddingError(ModelError):
    """The model failed on a text, or gave something that is no embedding."""


@dataclass(frozen=True)
class _Affix:
    """The special tokens that the model's tokenizer puts around a text."""

    before: list[int]
    after: list[int]

    @property
    def length(self) -> int:
        """How much of the model's limit they take."""
        return len(self.before) + len(self.after)


class Embedder:
    """Embeds code and queries with the model of a bundle. Thread safe."""

    def __init__(self, bundle: Bundle, threads: int, device: str = DEVICES[0]) -> None:
        """Loads the model; `threads` bounds the arithmetic's threads, `device` is one of DEVICES.

        Raises RuntimeMissingError without onnxruntime or without what the device needs, BundleError when the files do
        not fit bundle.json.
        """
        # Read by the tokenizer's thread pool when it starts, the only way to bound it.
        os.environ.setdefault("RAYON_NUM_THREADS", str(threads))
        self.bundle = bundle
        self._tokenizer = _tokenizer(bundle)
        self._affix = _affix(self._tokenizer)
        self._room = bundle.max_tokens - self._affix.length
        for key, prompt in (("query_prompt", bundle.query_prompt), ("code_prompt", bundle.code_prompt)):
            if len(self._tokenizer.encode(prompt, add_special_tokens=False).ids) >= self._room:
                raise BundleError(f"{bundle.folder}: `{key}` leaves no room in max_tokens {bundle.max_tokens}")
        self._code = _session(bundle, str(bundle.code_encoder), threads, device)
        one = bundle.query_encoder == bundle.code_encoder
        self._query = self._code if one else _session(bundle, str(bundle.query_encoder), threads, device)
        self._nowhere = np.full(bundle.dim, bundle.dim**-0.5, dtype=np.float32)
        # What is typed is embedded as it is searched, and once more when it is saved: not really.
        self._embed_again = lru_cache(RECENT_TEXTS)(lambda text, breaks: self._embed([(text, breaks)])[0])

    @property
    def id(self) -> str:
        """The model's id: vectors of another id are not comparable."""
        return self.bundle.id

    @property
    def dim(self) -> int:
        """The width of every vector."""
        return self.bundle.dim

    @property
    def device(self) -> str:
        """What the model runs on: `cpu` or `cuda`."""
        return _device_of(self._code)

    def embed_code(self, texts: Sequence[tuple[str, Sequence[int]]]) -> list[Vectors]:
        """The unit vectors [parts, dim] of each (text, breaks), at least one part for each.

        A text over the model's limit is split at `breaks` (ascending offsets, in code points, where a part may start),
        and within a stretch without breaks at the limit itself. Each part after the first begins with the text's first
        line where that takes at most half of the room. A text without tokens gets one constant vector, the same for
        all of them.
        """
        if len(texts) <= FEW_TEXTS:
            return [self._embed_again(text, tuple(breaks)) for text, breaks in texts]
        return self._embed(texts)

    def _embed(self, texts: Sequence[tuple[str, Sequence[int]]]) -> list[Vectors]:
        prompt = self.bundle.code_prompt
        parts: list[list[int]] = []
        ends: list[int] = []
        for (text, breaks), ids in zip(texts, self._encode([prompt + text for text, _ in texts]), strict=True):
            parts.extend([ids] if len(ids) <= self._room else self._split(text, breaks, ids))
            ends.append(len(parts))
        vectors = self._run(self._code, parts)
        return [vectors[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors [n, dim] of the queries; what is over the model's limit is left out."""
        ids = self._encode([self.bundle.query_prompt + text for text in texts])
        return self._run(self._query, [each[: self._room] for each in ids])

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without special ones. (Where each token stands would take a quarter more time.)"""
        encodings = self._tokenizer.encode_batch_fast(list(map(_sound, texts)), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _split(self, text: str, breaks: Sequence[int], ids: list[int]) -> Iterator[list[int]]:
        """The parts of a text of too many tokens, which are `ids`, the prompt's included."""
        prompt = self.bundle.code_prompt
        shift = len(prompt)
        placed = self._tokenizer.encode(_sound(prompt + text), add_special_tokens=False)
        starts = [start for start, _ in placed.offsets]
        prompt_end = bisect_left(starts, shift)
        line_end = bisect_left(starts, shift + len(text.partition("\n")[0]))
        head = ids[: line_end if line_end <= self._room // 2 else prompt_end]
        cuts = [bisect_left(starts, shift + offset) for offset in breaks]
        start, end = 0, _cut(cuts, 0, self._room)
        yield ids[:end]
        while end < len(ids):
            start, end = end, min(len(ids), end + self._room - len(head))
            if end < len(ids):
                end = _cut(cuts, start, end)
            yield head + ids[start:end]

    def _run(self, session: Any, inputs: Sequence[list[int]]) -> Vectors:
        """The unit vectors [inputs, dim] of the token lists, in their order."""
        result = np.empty((len(inputs), self.bundle.dim), dtype=np.float32)
        for batch in _batches([len(ids) + self._affix.length if ids else 0 for ids in inputs]):
            rows = [self._affix.before + inputs[i] + self._affix.after for i in batch]
            result[batch] = self._forward(session, rows)
        result[[i for i, ids in enumerate(inputs) if not ids]] = self._nowhere
        return result

    def _forward(self, session: Any, rows: Sequence[list[int]]) -> Vectors:
        """One run of the model. A vector of no length, which has no direction, becomes the constant one."""
        ids, mask = _padded(rows, self.bundle.padding_side)
        feed = {"input_ids": ids, "attention_mask": mask}
        names = {given.name for given in session.get_inputs()}
        try:
            (vectors,) = session.run([self.bundle.output], {name: feed[name] for name in names})
        except Exception as error:  # Its exceptions have no common base of their own.
            raise EmbeddingError(
                f"{self.bundle.folder}: the model {self.bundle.id} failed on a text ({_line(error)}); use another model"
            ) from None
        if vectors.shape != (len(rows), self.bundle.dim):
            raise BundleError(
                f"{self.bundle.folder}: the model gives {list(vectors.shape)} for {len(rows)} inputs, but `dim` is "
                f"{self.bundle.dim}; export the bundle again"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all():
            raise EmbeddingError(
                f"{self.bundle.folder}: the model {self.bundle.id} gave a vector that is not finite; use another model"
            )
        unit: Vectors = np.where(norms < _TINY, self._nowhere, vectors / np.maximum(norms, _TINY))
        return unit


def _sound(text: str) -> str:
    """Half a surrogate pair, which is no character, is read as `?`."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _cut(cuts: Sequence[int], start: int, limit: int) -> int:
    """The last of the ascending `cuts` in (start, limit], or `limit` if there is none."""
    at = bisect_right(cuts, limit) - 1
    return cuts[at] if at >= 0 and cuts[at] > start else limit


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The indexes of all lengths over 0, in batches of at most BATCH_TOKENS, each at least one input.

    Inputs of one length that fill EQUAL_LENGTH_TOKENS run by themselves, the others beside their next in length.
    """
    mixed: list[int] = []
    ordered = sorted((i for i, length in enumerate(lengths) if length), key=lengths.__getitem__)
    for length, group in groupby(ordered, key=lengths.__getitem__):
        same = list(group)
        count = max(1, BATCH_TOKENS // length)
        if len(same) * length >= EQUAL_LENGTH_TOKENS:
            yield from (same[at : at + count] for at in range(0, len(same), count))
            continue
        if len(mixed) + len(same) > count:
            yield mixed
            mixed = []
        mixed.extend(same)
    if mixed:
        yield mixed


def _padded(rows: Sequence[list[int]], side: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """input_ids and attention_mask, [rows, longest]."""
    longest = max(map(len, rows))
    ids = np.full((len(rows), longest), _PAD, dtype=np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        where = slice(longest - len(row), longest) if side == "left" else slice(len(row))
        ids[i, where] = row
        mask[i, where] = 1
    return ids, mask


def _tokenizer(bundle: Bundle) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(bundle.tokenizer))
    except Exception as error:  # The library raises nothing more precise.
        raise BundleError(f"{bundle.tokenizer}: not a tokenizer ({_line(error)}); export the bundle again") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _affix(tokenizer: Tokenizer) -> _Affix:
    """Reads off an example what the tokenizer adds."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    full = tokenizer.encode("a", add_special_tokens=True).ids
    before = next(at for at in range(len(full) + 1) if full[at : at + len(bare)] == bare)
    return _Affix(full[:before], full[before + len(bare) :])


def _session(bundle: Bundle, path: str, threads: int, device: str) -> Any:
    """An onnxruntime session whose inputs and output are what bundle.json promises."""
    runtime = _runtime()
    available = runtime.get_available_providers()
    if device == "cuda" and _CUDA not in available:
        raise RuntimeMissingError(
            'device "cuda": this onnxruntime knows no NVIDIA card; run `pip uninstall onnxruntime` and '
            '`pip install "meaning-lsp[gpu]"`, or set the device to "auto"'
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted = (_CPU,) if device == "cpu" else (_CUDA, _CPU)
    try:
        session = runtime.InferenceSession(path, options, providers=[name for name in wanted if name in available])
    except Exception as error:  # Its exceptions have no common base of their own.
        raise BundleError(f"{path}: onnxruntime cannot load it ({_line(error)}); export the bundle again") from None
    if device == "cuda" and _device_of(session) != device:  # onnxruntime says why on stderr, and takes the processor
        raise RuntimeMissingError(
            'device "cuda": the NVIDIA card cannot be used (is the driver there, and CUDA and cuDNN as '
            "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html wants them?); set the device "
            'to "auto" or "cpu"'
        )
    inputs, outputs = ([node.name for node in nodes] for nodes in (session.get_inputs(), session.get_outputs()))
    if outputs != [bundle.output] or "input_ids" not in inputs or not _INPUTS.issuperset(inputs):
        raise BundleError(
            f"{path}: takes {', '.join(inputs)} and gives {', '.join(outputs)}, it should take input_ids and "
            f"attention_mask and give {bundle.output}; export the bundle again"
        )
    return session


def _device_of(session: Any) -> str:
    return "cuda" if _CUDA in session.get_providers() else "cpu"


def _runtime() -> Any:
    # onnxruntime would queue events about this machine and send them to its maker. Only this variable, set before the
    # import, keeps it from it: `disable_telemetry_events` comes when the first event is written.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError:
        raise RuntimeMissingError(
            'onnxruntime is not installed; run `pip install "meaning-lsp[cpu]"`, or `[gpu]` for an NVIDIA card'
        ) from None
    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    return onnxruntime


def _line(error: Exception) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split())
