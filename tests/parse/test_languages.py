"""What a file is written in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.parse import LANGUAGES, language_of, settled
from server.parse.languages import BY_NAME, grammar_names

QUERIES = Path(__file__).parents[2] / "server" / "parse" / "queries"


def name_of(path: str, first_line: str = "") -> str | None:
    language = language_of(path, first_line)
    return language.name if language else None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("src/a.py", "python"),
        ("a.PY", "python"),
        ("a.d.ts", "typescript"),
        ("App.tsx", "tsx"),
        ("a.jsx", "javascript"),
        ("Rakefile", "ruby"),
        ("lib\\win\\a.go", "go"),
        ("view.blade.php", "php"),
        ("a.h", "c"),
        ("a.hpp", "cpp"),
        ("README.md", "markdown"),
        ("rakefile/notes", None),
        ("py", None),
        (".py", "python"),
        ("LICENSE", None),
        ("", None),
    ],
)
def test_the_name_says_it(path: str, name: str | None) -> None:
    assert name_of(path) == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("#!/usr/bin/python", "python"),
        ("#!/usr/bin/env python3.12", "python"),
        ("#!/usr/bin/env -S node --harmony", "javascript"),
        ("#! /bin/bash -e", "bash"),
        ("#!/usr/bin/env -S FOO=1 ruby", "ruby"),
        ("#!/usr/bin/env", None),
        ("#!", None),
        ("#!/usr/bin/unknown", None),
        ("python", None),
    ],
)
def test_without_an_extension_the_interpreter_says_it(line: str, name: str | None) -> None:
    assert name_of("run", line) == name


def test_the_name_counts_more_than_the_interpreter() -> None:
    assert name_of("a.rb", "#!/usr/bin/python") == "ruby"


@pytest.mark.parametrize(
    "text",
    [
        "namespace a {\n}\n",
        "template <class T>\nvoid f(T);\n",
        "class A {\n};\n",
        "// -*- C++ -*-\n",
        "#include <vector>\n",
    ],
)
def test_a_header_with_cpp_in_it_is_cpp(text: str) -> None:
    assert settled(language_of("a.h"), text) is BY_NAME["cpp"]


@pytest.mark.parametrize(
    "text",
    [
        "struct a;\n",
        "/* a thing\n   using the\n   class of\n   namespace */\nint namespace_of(int class);\n",
        "#include <string.h>\n",
        "",
    ],
)
def test_a_header_without_is_c(text: str) -> None:
    assert settled(language_of("a.h"), text) is BY_NAME["c"]


def test_no_extension_file_name_or_interpreter_has_two_languages() -> None:
    for claims in (
        [extension for language in LANGUAGES for extension in language.extensions],
        [name for language in LANGUAGES for name in language.file_names],
        [name for language in LANGUAGES for name in language.interpreters],
    ):
        assert len(claims) == len(set(claims))


def test_the_promised_languages_are_there() -> None:
    promised = (
        "python javascript typescript tsx java go ruby php rust c cpp csharp kotlin swift scala lua bash elixir "
        "haskell zig"
    )
    assert grammar_names() == promised.split()


KNOWN_PREDICATES = {"eq?", "not-eq?", "match?", "not-match?", "any-of?"}
"""What the binding was seen to honour. It ignores what it does not know: the pattern then matches everything."""


def test_queries_use_only_predicates_that_work() -> None:
    for query in QUERIES.glob("*.scm"):
        used = set(re.findall(r"\(#([\w?!.-]+)", query.read_text(encoding="utf-8")))
        assert used <= KNOWN_PREDICATES, query.name


def test_every_query_is_some_languages() -> None:
    used = {name for language in LANGUAGES for name in language.queries}
    assert used == {query.stem for query in QUERIES.glob("*.scm")}
