"""Syntax that a grammar does not know costs neither the definition that uses it nor its neighbours."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from server.parse import language_of, parse
from server.parse.languages import LANGUAGES

KOTLIN = """\
class Reader {{
    fun read(value: Any): String = when (value) {{
        {branch} -> "some"
        else -> "none"
    }}

    fun close() = Unit
}}
"""


def named(path: str, text: str) -> list[tuple[str, str]]:
    units = parse(text, language_of(path), "x")
    return [(unit.kind, unit.name) for unit in units if unit.kind not in ("module", "text")]


@pytest.mark.parametrize(
    "branch",
    [
        "is String if value.isNotEmpty()",
        "is String if (value.isNotEmpty())",
        "is List<*> if (\n            value.size > 1\n        )",
        "!is Number if strict",
        "in 1..9 if strict",
        "Level.HIGH if strict",
    ],
)
def test_kotlin_branches_may_have_guards(branch: str) -> None:
    assert named("a.kt", KOTLIN.format(branch=branch)) == [("class", "Reader"), ("method", "read"), ("method", "close")]


def test_kotlin_names_may_be_soft_keywords() -> None:
    text = "fun select(where: Op?) {\n    where?.let { add(it) }\n    run(where)\n}\n\nfun where(op: Op) = op\n"
    assert named("a.kt", text) == [("function", "select"), ("function", "where")]


def test_kotlin_constraints_are_not_mistaken_for_names() -> None:
    text = "fun <T> copy(from: List<T>) where T : Any, T : Comparable<T> {\n    println(from)\n}\n"
    assert named("a.kt", text) == [("function", "copy")]


def test_a_kotlin_getter_may_have_an_annotation_of_its_own() -> None:
    text = "class A {\n    val id\n        @Foo(B::class)\n        get() = 1\n\n    fun close() = Unit\n}\n"
    assert named("a.kt", text) == [("class", "A"), ("property", "id"), ("method", "close")]


def test_kotlin_contexts_belong_to_their_function() -> None:
    units = parse("// Stores it.\ncontext(log: Logger)\nfun store() = log.info(1)\n", language_of("a.kt"), "x")
    assert [(unit.name, unit.start_line, unit.doc) for unit in units] == [("store", 0, "Stores it.")]


def test_both_branches_of_a_haskell_conditional_are_read() -> None:
    text = "#if A\nleft :: Int\nleft = 1\n#elif B\nmiddle = 3\n#else\nright :: Int\nright = 2\n#endif\n\nlast = 4\n"
    assert [name for _, name in named("a.hs", text)] == ["left", "middle", "right", "last"]


@pytest.mark.parametrize(
    "head", ['@test "it works" {', "@test 'it works' {", '@test  "it works"  { # slow', "  @test it {"]
)
def test_a_bats_test_is_a_test(head: str) -> None:
    text = f"setup() {{\n  a=1\n}}\n\n{head}\n  run b\n  {{ c; }}\n}}\n\nteardown() {{\n  d\n}}\n"
    found = named("a.bats", text)
    assert [kind for kind, _ in found] == ["function", "test", "function"]
    assert found[1][1] in ("it works", "it")


@pytest.mark.parametrize("mend", [language.mend for language in LANGUAGES if language.mend])
def test_mending_keeps_every_offset(mend: Callable[[bytes], bytes]) -> None:
    texts = [
        b'@test "a" {\n}\n@test b {\n',
        b"is A if b -> c\nwhere.d\ncontext(a: B)\nval x\n  @Foo(1)\n  get() = 1\n",
        b"#if A\n#else\n#elif B\n#endif\n",
        b"FOO_BEGIN\nclass API A {\nDEFINE(a);\n#if A\n#else\n#endif\n}\n",
    ]
    for text in texts:
        mended = mend(text)
        assert [len(line) for line in mended.split(b"\n")] == [len(line) for line in text.split(b"\n")]


@pytest.mark.parametrize("line", ["@test" + " " * 200_000, "is a" + " if" * 100_000, "@test" + " {" * 100_000 + " x"])
def test_mending_a_hostile_line_takes_no_time(line: str) -> None:
    began = time.thread_time()
    for language in LANGUAGES:
        if language.mend:
            language.mend(line.encode())
    assert time.thread_time() - began < 2


def test_a_cpp_constructor_may_stand_behind_a_macro() -> None:
    text = (
        "struct padding {\n  unsigned size;\n\n  FMT_CONSTEXPR padding(int digits, unsigned prefix)\n"
        "      : size((prefix >> 24) + digits) {\n    if (digits) { size = 1; }\n  }\n};\n\n"
        "void after() {\n  run();\n}\n"
    )
    assert named("a.cc", text) == [("struct", "padding"), ("constructor", "padding"), ("function", "after")]


def test_a_macro_before_a_type_is_no_part_of_the_name() -> None:
    text = "class Foo {\n  void func(int);\n};\n\nMY_NO_INLINE void Foo::func(int x) {\n  use(x);\n}\n"
    units = parse(text, language_of("a.cc"), "x")
    assert ("Foo", "func", "method") in [(unit.container, unit.name, unit.kind) for unit in units]


@pytest.mark.parametrize("path", ["a.c", "a.cc"])
def test_a_type_in_capitals_stays_a_type(path: str) -> None:
    text = "UINT_PTR handle(int x) {\n  return lookup(x);\n}\n"
    [unit] = parse(text, language_of(path), "x")
    assert (unit.name, unit.signature) == ("handle", "UINT_PTR handle(int x)")
