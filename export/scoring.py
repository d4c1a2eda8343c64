"""How well a teacher itself finds code: every function scored for every query, which only a small set allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .data import Example
from .journal import progress
from .metrics import figures
from .writer import DOCUMENT, IMPLEMENT, Scores, Writer

CODE_GIVEN_QUERY, QUERY_GIVEN_CODE = "p(code | query)", "p(query | code)"


def teacher_figures(
    writer: Writer, examples: Sequence[Example], code_tokens: int, query_tokens: int
) -> dict[str, dict[str, float]]:
    """MRR and its like by each of the two probabilities, each query among the codes of all `examples`."""
    queries, codes = [each.query for each in examples], [each.code for each in examples]
    languages = [each.language for each in examples]
    forward = _matrix(
        writer, writer.questions(IMPLEMENT, queries, languages), writer.answers(IMPLEMENT, codes, code_tokens)
    )
    backward = _matrix(
        writer, writer.questions(DOCUMENT, codes, languages), writer.answers(DOCUMENT, queries, query_tokens)
    )
    scores = {CODE_GIVEN_QUERY: forward, QUERY_GIVEN_CODE: backward.T}
    return {name: figures((each >= np.diag(each)[:, None]).sum(axis=1)) for name, each in scores.items()}


def _matrix(writer: Writer, questions: list[list[int]], answers: list[list[int]]) -> Scores:
    """log p of each answer [questions, answers]."""
    tell = progress("scored")
    rows = []
    for done, question in enumerate(questions, 1):
        rows.append(writer.log_probabilities_of_all(question, answers))
        tell(done, len(questions))
    return np.stack(rows)
