"""What a unit says, and where one ends and the next begins."""

from __future__ import annotations

import pytest

from server.parse import Unit, parse
from server.parse.languages import BY_NAME
from server.parse.units import LONG_TEXT


def units_of(language: str, text: str) -> list[Unit]:
    return parse(text, BY_NAME[language], "stem")


def names(units: list[Unit]) -> list[str]:
    return [f"{unit.kind} {unit.container}.{unit.name}".replace(" .", " ") for unit in units]


def one(units: list[Unit], name: str) -> Unit:
    (unit,) = (unit for unit in units if unit.name == name)
    return unit


def test_the_text_is_the_name_the_members_and_the_own_lines_dedented() -> None:
    units = units_of(
        "python", "class A:\n    x = 1\n\n    def f(self):\n        return 2\n\n    def g(self): ...   \n\n"
    )
    assert [unit.text for unit in units] == [
        "A\nf, g\nclass A:\n    x = 1",
        "A.f\ndef f(self):\n    return 2",
        "A.g\ndef g(self): ...",
    ]


def test_code_that_moves_to_another_file_keeps_its_text() -> None:
    source = "import a\n\ndef f():\n    return a\n"
    here, there = (parse(source, BY_NAME["python"], stem) for stem in ("here", "there"))
    assert [unit.text for unit in here] == [unit.text for unit in there]
    assert [unit.name for unit in here] == ["here", "f"]


def test_a_change_of_one_function_leaves_the_texts_of_the_others() -> None:
    before = units_of("go", "func a() int {\n\treturn 1\n}\n\nfunc b() int {\n\treturn 2\n}\n")
    after = units_of("go", "// New.\nfunc a() int {\n\n\treturn 3\n}\n\nfunc b() int {\n\treturn 2\n}\n")
    assert one(before, "b").text == one(after, "b").text
    assert one(before, "a").text != one(after, "a").text


def test_module_code_between_definitions_is_a_unit_each_and_blank_lines_are_none() -> None:
    units = units_of("python", "\nimport a\n\n\ndef f():\n    pass\n\n\nx = 1\n\n\ndef g():\n    pass\n\n\n")
    assert [(unit.kind, unit.name, unit.spans) for unit in units] == [
        ("module", "stem", ((0, 3),)),
        ("function", "f", ((4, 7),)),
        ("module", "stem", ((8, 10),)),
        ("function", "g", ((11, 14),)),
    ]
    assert units[0].text == "import a"


def test_a_run_that_says_nothing_goes_to_the_unit_before() -> None:
    units = units_of("javascript", "foo(function bar() {\n  a();\n}\n);\n")
    assert [(unit.name, unit.spans) for unit in units] == [("bar", ((0, 3),))]
    units = units_of("c", "#ifdef A\nint f(void)\n{ return 1; }\n#endif\n")
    assert names(units) == ["module stem", "function f"]


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n"])
def test_a_file_without_text_has_no_units(text: str) -> None:
    for language in BY_NAME.values():
        assert parse(text, language, "stem") == []
    assert parse(text, None, "stem") == []


def test_a_short_function_without_a_name_of_its_own_stays_where_it_is() -> None:
    text = "def f():\n    key = lambda a: a.b\n    return key\n"
    assert names(units_of("python", text)) == ["function f"]
    text = "const a = (b) => b;\nconst c = (d) => {\n  return d;\n};\n// Documented.\n// Twice.\nconst e = (f) => f;\n"
    assert names(units_of("javascript", text)) == ["module stem", "function c", "function e"]


def test_a_short_function_with_a_name_is_a_unit_wherever_it_is() -> None:
    assert names(units_of("python", "def f():\n    def g(): pass\n    return g\n")) == ["function f", "function f.g"]


def test_definitions_that_share_a_line_leave_it_to_the_first() -> None:
    assert names(units_of("c", "int f(void) { return 1; } int g(void) { return 2; }\n")) == ["function f"]
    assert names(units_of("java", "class A { int f() { return 1; } }\n")) == ["class A"]


def test_a_container_keeps_the_line_of_its_name() -> None:
    units = units_of("cpp", "namespace a { void f() {\n  g();\n}\n}\n")
    assert [(unit.name, unit.container, unit.spans) for unit in units] == [
        ("a", "", ((0, 0), (3, 3))),
        ("f", "a", ((1, 2),)),
    ]


def test_a_comment_belongs_to_what_stands_right_below() -> None:
    text = "// Far.\n\n// Near\n// by.\nfunc f() {} // Beside.\n// Next.\nfunc g() {}\n"
    units = units_of("go", text)
    assert [(unit.kind, unit.doc, unit.start_line) for unit in units] == [
        ("module", "", 0),
        ("function", "Near\nby.", 2),
        ("function", "Next.", 5),
    ]


@pytest.mark.parametrize(
    ("language", "comment"),
    [
        ("java", "/**\n * Sends it.\n *\n * @return bytes\n */\n"),
        ("rust", "/// Sends it.\n///\n/// @return bytes\n#[inline]\n"),
        ("rust", "/**\n Sends it.\n\n @return bytes\n*/\n"),
        ("go", "// Sends it.\n//\n// @return bytes\n"),
        ("c", "/* Sends it.\n\n   @return bytes */\n"),
        ("cpp", "//! Sends it.\n//!\n//! @return bytes\n"),
        ("ruby", "# Sends it.\n#\n# @return bytes\n"),
        ("ruby", "##\n# Sends it.\n#\n# @return bytes\n#---------------\n"),
        ("javascript", "/*******\n * Sends it.\n *\n * @return bytes\n *******/\n"),
        ("javascript", "// Sends it.\n//\n// @return bytes\n// eslint-disable-next-line\n"),
    ],
)
def test_a_doc_comment_loses_its_marks(language: str, comment: str) -> None:
    function = {
        "java": "class A {\nvoid f() {}\n}",
        "rust": "fn f() {}",
        "go": "func f() {}",
        "ruby": "def f; end",
        "javascript": "function f() {}",
    }.get(language, "void f() {}")
    text = function.replace("class A {\n", "class A {\n" + comment) if language == "java" else comment + function
    assert one(units_of(language, text), "f").doc == "Sends it.\n\n@return bytes"


@pytest.mark.parametrize(
    ("literal", "doc"),
    [
        ('"""Sends it."""', "Sends it."),
        ("'''\n    Sends\n      it.\n    '''", "Sends\n  it."),
        ("r'Sends it.'", "Sends it."),
        ('""""Sends" it."""', '"Sends" it.'),
        ('""', ""),
    ],
)
def test_a_docstring_loses_its_quotes(literal: str, doc: str) -> None:
    assert one(units_of("python", f"def f():\n    {literal}\n    return 1\n"), "f").doc == doc


def test_a_signature_is_one_line_without_body_comments_and_attributes() -> None:
    method = (
        '  @Get("/")\n  public <T> List<T> f(int a, // first\n      T b)\n      throws E {\n    return null;\n  }\n'
    )
    text = "class A {\n" + method + "}\n"
    assert one(units_of("java", text), "f").signature == "public <T> List<T> f(int a, T b) throws E"


def test_syntax_errors_do_not_hide_the_definitions_around_them() -> None:
    text = "def f(a:\n    return 1\n\n\ndef g():\n    return 2\n\n\nclass A:\n    def h(self):\n        return ]3\n"
    assert {"g", "A", "h"} <= {unit.name for unit in units_of("python", text)}


def test_definitions_in_conditional_code_are_found() -> None:
    f, g, h = (f"int {name}(void)\n{{\n  return 1;\n}}\n" for name in "fgh")
    units = units_of("c", f"#if A\n{f}#elif B\n{g}#else\n{h}#endif\n")
    assert [unit.name for unit in units if unit.kind == "function"] == ["f", "g", "h"]


def test_branches_that_open_different_braces_do_not_cost_the_rest_of_the_file() -> None:
    head = "int f(int a)\n{\n#ifdef A\n  if(a) {\n#else\n  while(a) {\n#endif\n"
    rest = "    a--;\n  }\n  return a;\n}\n\nint g(void)\n{\n  return 1;\n}\n"
    assert [(unit.name, unit.end_line) for unit in units_of("c", head + rest)] == [("f", 10), ("g", 15)]


@pytest.mark.parametrize(
    ("text", "name", "container"),
    [
        ("int **ns::A<T>::f() { return 0; }", "f", "ns.A"),
        ("A::A() : b(1) {}", "A", "A"),
        ("A::~A() {}", "~A", "A"),
        ("A::operator int() const { return 1; }", "operator int", "A"),
        ("bool operator<(A a, A b) { return 1; }", "operator<", ""),
        ("template <class T>\nauto f(T a) -> int { return 1; }", "f", ""),
        ("EXPORT void MACRO f(int a) { }", "f", ""),
        ("class EXPORT_API A final : public B {\n  int c;\n};", "A", ""),
        ("int (*f(int a))(int) { return 0; }", "f", ""),
        ("A& f() { return *this; }", "f", ""),
        ("void f() const REQUIRES_LOCK(mu) { }", "f", ""),
        ("template <> struct A<int> {\n  int b;\n};", "A", ""),
        ("typedef struct {\n  int a;\n} A;", "A", ""),
        ("auto f = [](int a) {\n  return a;\n};", "f", ""),
        ("TEST_F(A, B) {\n  C();\n}", "B", "A"),
    ],
)
def test_the_name_in_a_cpp_declarator(text: str, name: str, container: str) -> None:
    (unit,) = units_of("cpp", text)
    assert (unit.name, unit.container) == (name, container)


def test_a_long_text_can_be_split_where_statements_start() -> None:
    body = "".join(f"    if a{n}:\n        b{n}()  # {'x' * 20}\n" for n in range(40))
    (unit,) = units_of("python", "def f():\n" + body)
    assert len(unit.text) > LONG_TEXT
    starts = [unit.text[offset:].split("\n")[0] for offset in unit.breaks]
    assert starts == [f"    if a{n}:" for n in range(40)]


def test_a_long_statement_can_be_split_too_and_a_comment_stays_with_its_statement() -> None:
    body = "".join(f"        # Part {n}.\n        b{n}({'x' * 20})\n" for n in range(40))
    (unit,) = units_of("python", "def f():\n    for a in b:\n" + body)
    starts = [unit.text[offset:].split("\n")[0].strip() for offset in unit.breaks]
    assert starts == ["for a in b:", *(f"# Part {n}." for n in range(1, 40))]


def test_a_short_text_has_no_breaks() -> None:
    (unit,) = units_of("python", "def f():\n    a()\n    b()\n")
    assert unit.breaks == ()


def test_the_docstring_of_a_module_is_that_of_its_first_code() -> None:
    units = units_of("python", "#!/usr/bin/python\n'''Sends.'''\nimport a\n\ndef f(): pass\n\nx = 1\n")
    assert [unit.doc for unit in units] == ["Sends.", "", ""]
