"""The corpus as what people type into a search box: doc comments alone teach a model to answer doc comments.

Each pair is asked in one of four ways: the doc comment as it is, its bare words, a question, or the words of the
function's name, which then is hidden in the code. Code that is not asked for by its whole doc comment has that, as what
is searched has, by chance. Batches hold a few packages of one language, so that a query is told
from its answer's neighbours, as in the search of a repository.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .corpus.quality import pieces
from .data import Example
from .pairs import Row

CODE_CHARS = 2_000
"""More than a model of few tokens reads."""
DOC_WORDS = 24
SEARCH_WORDS = 8
NAME_WORDS = 2
"""A name of fewer words says too little to be asked for."""
CONTRASTED = 512
"""Pairs of one or several packages that batches are drawn from."""
DOCUMENTED = {"words": 0.3, "question": 0.3, "name": 0.5}
"""The share of code with its doc comment, by how it is asked for."""
HIDDEN = "_"
"""What stands for the name in code that is asked for by it."""
SHARES = {"doc": 0.4, "words": 0.3, "question": 0.15, "name": 0.15}

_STOP_WORDS = frozenset(
    """
    a about after all also an and any are as at be been before being but by can could did do does each for from given
    had has have if in into is it its just may more most must no of on only or other our out over own same should so
    some such than that the their them then there these they this those to too under until up very was we were what
    when where whether which while who will with would you your
    """.split()
)
_ENDS = (
    (re.compile(r"(?<=[^aeiou])ies$"), "y"),
    (re.compile(r"(?<=ch|sh|ss|zz|.x)es$"), ""),
    (re.compile(r"(?<=[^sui])s$"), ""),
)
"""Of a verb's third person, and what the imperative has there."""
_IMPERATIVES = frozenset(
    """
    add apply build calculate call check clean clear close compute convert copy create decode delete determine disable
    emit enable encode ensure evaluate execute export extract fetch fill filter find format generate get handle import
    initialize insert invoke iterate join list load log make map mark merge move normalize open parse perform print
    process push put query read receive register release remove rename render replace reset resize resolve retrieve
    return run save scan search select send set show sort split start stop store test transform trigger try update
    validate verify wait wrap write
    """.split()
)
_TO_DO = ("how to {}", "how do I {}", "where do we {}", "code to {}", "function to {}", "{}")
"""Questions with an imperative in them."""
_TO_BE = ("where is {}", "what implements {}", "{} implementation", "how does {} work", "code for {}", "{}")
"""Questions with anything else."""


def examples(rows: Sequence[Row], most: int, seed: int) -> list[Example]:
    """A query and its code of every row, but for languages with over `most`, of which so many are drawn."""
    random = np.random.default_rng(seed)
    by_language: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in _drawn(rows, most, random):
        by_language[row.language][row.package].append(row)
    found = []
    for language, packages in sorted(by_language.items()):
        for number, group in enumerate(_groups(packages, random)):
            found += [asked(row, f"{language} {number}", random) for row in group]
    return found


def _drawn(rows: Sequence[Row], most: int, random: np.random.Generator) -> list[Row]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        numbers[row.language].append(number)
    return [
        rows[number]
        for _, group in sorted(numbers.items())
        for number in np.sort(random.permutation(group)[:most]).tolist()
    ]


def _groups(packages: dict[str, list[Row]], random: np.random.Generator) -> list[list[Row]]:
    """The rows of packages in random order, whole packages together until there are CONTRASTED."""
    names = sorted(packages)
    groups: list[list[Row]] = [[]]
    for at in random.permutation(len(names)):
        if len(groups[-1]) >= CONTRASTED:
            groups.append([])
        groups[-1] += packages[names[at]]
    return groups


def asked(row: Row, source: str, random: np.random.Generator) -> Example:
    """The row's code with a query of a kind that chance decides, by SHARES."""
    kind = str(random.choice(list(SHARES), p=list(SHARES.values())))
    code, words = row.code[:CODE_CHARS], pieces(row.name)
    if kind == "name" and len(words) >= NAME_WORDS:
        query, code = " ".join(words), without_name(replace(row, code=code), random)
    elif kind == "question":
        query, code = question(row.query, random), documented(row.query, code, kind, random)
    elif kind == "words":
        query, code = bare_words(row.query), documented(row.query, code, kind, random)
    else:
        query = row.query
    return Example(" ".join(query.split()[:DOC_WORDS]) or row.query, code, row.language, source)


def without_name(row: Row, random: np.random.Generator) -> str:
    """The row's code without its name, by chance with its doc comment."""
    code = documented(row.query, row.code, "name", random)
    return hidden(row.name, code) if row.name else row.code


def documented(doc: str, code: str, kind: str, random: np.random.Generator) -> str:
    """The code, by chance below its doc comment."""
    return f"{doc}\n{code}" if random.random() < DOCUMENTED[kind] else code


def hidden(name: str, code: str) -> str:
    """The code without the name."""
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", HIDDEN, code)


def first_sentence(doc: str) -> str:
    """A doc comment up to where its first sentence, or its first clause, ends."""
    return re.split(r"(?<=[\w)\]])[.;:,!?](?:\s|$)", doc, maxsplit=1)[0]


def bare_words(doc: str) -> str:
    """The first sentence in lower case without stop words, at most SEARCH_WORDS words."""
    words = first_sentence(doc).lower().split()
    return " ".join([word for word in words if word not in _STOP_WORDS][:SEARCH_WORDS])


def question(doc: str, random: np.random.Generator) -> str:
    """A question that the first sentence answers: `Returns the size` -> `how to return the size`, or another one."""
    first, _, rest = first_sentence(doc).partition(" ")
    verb = imperative(first)
    opening = str(random.choice(_TO_DO if verb else _TO_BE))
    return opening.replace("{}", f"{verb or first.lower()} {rest}".strip())


def imperative(word: str) -> str | None:
    """`Returns` -> `return`, `get` -> `get`; None for what seems to be no verb."""
    word = word.lower()
    if word in _IMPERATIVES:
        return word
    ends = ((end, instead) for end, instead in _ENDS if end.search(word) and word not in _STOP_WORDS)
    return next((end.sub(instead, word) for end, instead in ends), None)
