"""Texts to unit vectors by a checkpoint (torch) or by a bundle (onnxruntime), for measuring and for mining."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from server.embed.bundle import MANIFEST, Bundle

from .errors import ExportError
from .metrics import Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_TOKENS = 4_096
"""Most tokens of one run of a model, padding included."""
QUERY_TOKENS = 256
"""A query's most tokens: nobody asks for longer, and a batch is as long as its longest."""
TOKENIZE_AT_ONCE = 4_000
_ERRORS_ONLY = 3
"""A severity of onnxruntime's log."""

Tell = Callable[[int, int], None]
"""Is told how many texts are embedded, and of how many."""
Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""input_ids and attention_mask, [texts, tokens]."""


class Encoder(Protocol):
    """What is measured."""

    @property
    def name(self) -> str:
        """For reports."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of queries, prompt added."""

    def codes(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of code, prompt added; what is over the model's limit is left out."""


class Loaded(Protocol):
    """A model in torch with its tokenizer: what is trained, and measured without a bundle."""

    @property
    def model(self) -> Any:
        """A module: input_ids, attention_mask [texts, tokens] -> unit vectors [texts, dim]; `dim` is its property."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Without padding and truncation."""

    @property
    def query_prompt(self) -> str:
        """Written before a query."""

    @property
    def code_prompt(self) -> str:
        """Written before code."""

    @property
    def max_tokens(self) -> int:
        """The longest text that it is meant for."""

    @property
    def source(self) -> str:
        """Where it is from, for reports."""


def silent(_done: int, _all: int) -> None:
    """Tells nobody."""


def tokenized(tokenizer: Tokenizer, prompt: str, texts: Sequence[str], most: int) -> list[list[int]]:
    """The tokens of each text after its prompt, between those that the tokenizer puts around a text, if it does; cut to
    `most` and at least one."""
    rows: list[list[int]] = []
    before, after = affix(tokenizer)
    room = most - len(before) - len(after)
    for start in range(0, len(texts), TOKENIZE_AT_ONCE):
        some = [prompt + text.encode(errors="replace").decode() for text in texts[start : start + TOKENIZE_AT_ONCE]]
        encodings = tokenizer.encode_batch(some, add_special_tokens=False)
        rows += [[*before, *e.ids[:room], *after] or [0] for e in encodings]
    return rows


def affix(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text, read off an example."""
    bare, full = (tokenizer.encode("a", add_special_tokens=special).ids for special in (False, True))
    start = next(at for at in range(len(full) + 1) if full[at : at + len(bare)] == bare)
    return full[:start], full[start + len(bare) :]


def padded(rows: Sequence[Sequence[int]], side: str = "left") -> Rows:
    """The rows as one batch, as wide as its longest."""
    longest = max(map(len, rows))
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for at, row in enumerate(rows):
        where = slice(longest - len(row), longest) if side == "left" else slice(len(row))
        ids[at, where], mask[at, where] = row, 1
    return ids, mask


def in_batches(
    rows: Sequence[list[int]], side: str, run: Callable[[Rows], Vectors], equal: bool, tell: Tell = silent
) -> Vectors:
    """The vectors of token rows, in their order: run beside others of their length, BATCH_TOKENS at once.

    With `equal` beside those of exactly their length: weights that are quantised at run time feel padding.
    """
    # The longest first: how long it will take is told too high, and what does not fit in memory shows at once.
    order = sorted(range(len(rows)), key=lambda at: -len(rows[at]))
    found: list[tuple[list[int], Vectors]] = []
    start = 0
    while start < len(order):
        longest = len(rows[order[start]])
        end = start + max(1, BATCH_TOKENS // longest)
        batch = [at for at in order[start:end] if not equal or len(rows[at]) == longest]
        found.append((batch, run(padded([rows[at] for at in batch], side))))
        start += len(batch)
        tell(start, len(order))
    result = np.empty((len(rows), found[0][1].shape[1] if found else 0), dtype=np.float32)
    for batch, vectors in found:
        result[batch] = vectors
    return result


class CheckpointEncoder:
    """A checkpoint on a torch device."""

    def __init__(
        self, checkpoint: Loaded, device: Any = "cpu", max_tokens: int | None = None, tell: Tell = silent
    ) -> None:
        """`max_tokens`: the longest code; the checkpoint's own limit by default."""
        self._checkpoint = checkpoint
        self._device = device
        self._tell = tell
        self._most = min(max_tokens or checkpoint.max_tokens, checkpoint.max_tokens)
        checkpoint.model.to(device)

    @property
    def name(self) -> str:
        """Where the checkpoint is from."""
        return str(self._checkpoint.source)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [texts, dim]."""
        return self._embed(self._checkpoint.query_prompt, texts, min(self._most, QUERY_TOKENS))

    def codes(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [texts, dim]."""
        return self._embed(self._checkpoint.code_prompt, texts, self._most)

    def _embed(self, prompt: str, texts: Sequence[str], most: int) -> Vectors:
        rows = tokenized(self._checkpoint.tokenizer, prompt, texts, most)
        return in_batches(rows, "left", self._run, equal=False, tell=self._tell)

    def _run(self, rows: Rows) -> Vectors:
        import torch

        model = self._checkpoint.model
        with torch.inference_mode():
            ids, mask = (torch.from_numpy(values).to(self._device) for values in rows)
            vectors: Vectors = model(ids, mask).float().cpu().numpy()
        return vectors


class BundleEncoder:
    """A bundle on onnxruntime's CPU or CUDA provider."""

    def __init__(self, folder: Path, max_tokens: int | None = None, tell: Tell = silent) -> None:
        """Raises BundleError for a bundle that is not sound, ExportError where onnxruntime is missing."""
        try:
            import onnxruntime
        except ImportError:
            raise ExportError('onnxruntime is not installed; run `pip install "meaning-lsp[cpu]"`') from None
        from tokenizers import Tokenizer

        self._tell = tell
        self._bundle = Bundle.load(folder)
        self._most = min(max_tokens or self._bundle.max_tokens, self._bundle.max_tokens)
        self._tokenizer = Tokenizer.from_file(str(self._bundle.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        there = onnxruntime.get_available_providers()
        providers = [name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in there]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        paths = {self._bundle.query_encoder, self._bundle.code_encoder}  # One, as a rule: its weights are read once.
        sessions = {path: onnxruntime.InferenceSession(str(path), options, providers=providers) for path in paths}
        self._query, self._code = (sessions[path] for path in (self._bundle.query_encoder, self._bundle.code_encoder))

    @property
    def name(self) -> str:
        """The bundle's id."""
        return self._bundle.id

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [texts, dim]."""
        return self._embed(self._query, self._bundle.query_prompt, texts)

    def codes(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [texts, dim]."""
        return self._embed(self._code, self._bundle.code_prompt, texts)

    def _embed(self, session: Any, prompt: str, texts: Sequence[str]) -> Vectors:
        wanted = {given.name for given in session.get_inputs()}

        def run(rows: Rows) -> Vectors:
            feed = dict(zip(("input_ids", "attention_mask"), rows, strict=True))
            (vectors,) = session.run([self._bundle.output], {name: feed[name] for name in wanted})
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            unit: Vectors = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
            return unit

        rows = tokenized(self._tokenizer, prompt, texts, self._most)
        return in_batches(rows, self._bundle.padding_side, run, equal=True, tell=self._tell)


def open_encoder(
    model: str, revision: str | None = None, max_tokens: int | None = None, tell: Tell = silent
) -> Encoder:
    """The encoder of a bundle's folder, a checkpoint's folder, a trained adapter's folder, or a hub id."""
    if (Path(model) / MANIFEST).is_file():
        return BundleEncoder(Path(model), max_tokens, tell)
    import torch

    from .merge import load_any
    from .small import is_small, load_small

    device = "cuda" if torch.cuda.is_available() else "cpu"
    checkpoint: Loaded = load_small(Path(model)) if is_small(Path(model)) else load_any(model, revision)
    checkpoint.model.eval()
    return CheckpointEncoder(checkpoint, device, max_tokens, tell)
