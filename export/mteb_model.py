"""A model as the mteb package wants one, for whoever has it: `mteb.evaluate(MtebModel(encoder), tasks)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .encoders import Encoder
from .errors import ExportError, one_line
from .metrics import Vectors

ORGANISATION = "meaning-lsp"
QUERY = "query"
"""The value of mteb's PromptType for queries; all else is embedded as code."""


class MtebModel:
    """mteb's EncoderProtocol (version 2)."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def encode(self, inputs: Iterable[Mapping[str, Sequence[str]]], *, prompt_type: Any = None, **_: Any) -> Vectors:
        """`inputs`: batches whose `text` is a list of texts -> unit vectors [texts, dim]. Prompts are the model's."""
        texts = [text for batch in inputs for text in batch["text"]]
        asked = getattr(prompt_type, "value", prompt_type) == QUERY
        return self._encoder.queries(texts) if asked else self._encoder.codes(texts)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines [first, second], as mteb's own encoders give them: a torch tensor."""
        import torch

        return torch.as_tensor(np.atleast_2d(_array(embeddings1)) @ np.atleast_2d(_array(embeddings2)).T)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The cosine of each row with the other's same row."""
        import torch

        return torch.as_tensor((_array(embeddings1) * _array(embeddings2)).sum(axis=-1))

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb files the results under."""
        from mteb.models.model_meta import ModelMeta

        return ModelMeta.create_empty(
            {"name": f"{ORGANISATION}/{self._encoder.name.replace('/', '__')}", "revision": "local"}
        )


def run_tasks(encoder: Encoder, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The main score of each of mteb's tasks, which fetches its data set. Raises ExportError without mteb."""
    try:
        import mteb
    except ImportError as error:
        raise ExportError(f"mteb cannot be imported ({one_line(error)}); run `pip install 'mteb>=2,<3'`") from None
    try:
        tasks = mteb.get_tasks(tasks=list(names))
    except (KeyError, ValueError) as error:
        raise ExportError(f"{', '.join(names)}: {one_line(error)}; name tasks as mteb does") from None
    for task in tasks:
        result = mteb.evaluate(MtebModel(encoder), task, cache=None)
        yield task.metadata.name, float(result.task_results[0].get_score())


def _array(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
