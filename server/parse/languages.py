"""The table of languages: what a file is written in, and what the parser has to know about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

CLASS_NAME = "<class>"
"""Among `constructors`: a method that is named as its class is one."""


@dataclass(frozen=True, slots=True)
class Language:
    """What the parser knows of a language beside its query."""

    name: str
    """As the `lang:` filter spells it."""
    extensions: tuple[str, ...]
    """With the dot, in lower case."""
    grammar: tuple[str, str] | None = None
    """The grammar's module and the function in it that returns it; None for prose."""
    queries: tuple[str, ...] = ()
    """Query files that make up the language's query, without `.scm`."""
    file_names: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    """Programs that a `#!` line may name, without version numbers."""
    comments: tuple[str, ...] = ("comment",)
    """Node types of comments. Those right above a definition are its doc comment."""
    skipped: tuple[str, ...] = ()
    """Node types that stand between a doc comment and its definition, as attributes do where the grammar makes them
    siblings. Their lines belong to the definition."""
    blocks: tuple[str, ...] = ()
    """Node types whose children are statements or members: a long unit is split between these. The root is one."""
    mend: Callable[[bytes], bytes] | None = None
    """Rewrites syntax that the grammar does not know, length and lines kept; only the grammar sees the outcome."""
    constructors: tuple[str, ...] = ()
    """Names of methods that are constructors."""


_JAVASCRIPT_BLOCKS = ("statement_block", "class_body", "switch_body", "object", "array")
_TYPESCRIPT_BLOCKS = (*_JAVASCRIPT_BLOCKS, "interface_body", "enum_body", "object_type")
_C_BLOCKS = ("compound_statement", "field_declaration_list", "enumerator_list", "initializer_list", "declaration_list")
_C_PREPROCESSOR = ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif")

LANGUAGES = (
    Language(
        "python",
        (".py", ".pyi", ".pyw", ".pyx", ".pxd"),
        ("tree_sitter_python", "language"),
        ("python",),
        file_names=("SConstruct", "SConscript", "wscript"),
        interpreters=("python", "pypy"),
        blocks=("block",),
        constructors=("__init__", "__new__"),
    ),
    Language(
        "javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        ("tree_sitter_javascript", "language"),
        ("javascript",),
        file_names=("Jakefile",),
        interpreters=("node", "nodejs"),
        blocks=_JAVASCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        ("tree_sitter_typescript", "language_typescript"),
        ("javascript", "typescript"),
        interpreters=("deno", "bun", "ts-node", "tsx"),
        blocks=_TYPESCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "tsx",
        (".tsx",),
        ("tree_sitter_typescript", "language_tsx"),
        ("javascript", "typescript"),
        blocks=_TYPESCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "java",
        (".java",),
        ("tree_sitter_java", "language"),
        ("java",),
        comments=("line_comment", "block_comment"),
        blocks=("block", "class_body", "interface_body", "enum_body", "constructor_body", "switch_block"),
    ),
    Language(
        "go",
        (".go",),
        ("tree_sitter_go", "language"),
        ("go",),
        blocks=("block", "statement_list", "field_declaration_list", "literal_value"),
    ),
    Language(
        "ruby",
        (".rb", ".rake", ".gemspec", ".ru", ".podspec", ".thor"),
        ("tree_sitter_ruby", "language"),
        ("ruby",),
        file_names=("Rakefile", "Gemfile", "Guardfile", "Vagrantfile", "Podfile", "Fastfile", "Brewfile", "Capfile"),
        interpreters=("ruby", "jruby"),
        blocks=("body_statement", "then", "else", "do_block", "block_body"),
        constructors=("initialize",),
    ),
    Language(
        "php",
        (".php", ".phtml", ".php3", ".php4", ".php5", ".phps"),
        ("tree_sitter_php", "language_php"),
        ("php",),
        interpreters=("php",),
        blocks=("compound_statement", "declaration_list", "enum_declaration_list", "array_creation_expression"),
        constructors=("__construct",),
    ),
    Language(
        "rust",
        (".rs",),
        ("tree_sitter_rust", "language"),
        ("rust",),
        interpreters=("rust-script",),
        comments=("line_comment", "block_comment"),
        skipped=("attribute_item",),
        blocks=("block", "declaration_list", "field_declaration_list", "enum_variant_list", "match_block"),
    ),
    Language(
        "c",
        (".c", ".h"),
        ("tree_sitter_c", "language"),
        ("c",),
        blocks=(*_C_BLOCKS, *_C_PREPROCESSOR),
    ),
    Language(
        "cpp",
        (".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".tpp", ".txx", ".inl", ".cu", ".cuh"),
        ("tree_sitter_cpp", "language"),
        ("c", "cpp"),
        blocks=(*_C_BLOCKS, *_C_PREPROCESSOR),
        constructors=(CLASS_NAME,),
    ),
    Language("markdown", (".md", ".markdown", ".mdx", ".mdown")),
)

BY_NAME = {language.name: language for language in LANGUAGES}
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}
_BY_FILE_NAME = {name: language for language in LANGUAGES for name in language.file_names}
_BY_INTERPRETER = {name: language for language in LANGUAGES for name in language.interpreters}

_SHEBANG = re.compile(r"#!\s*(?:\S*/)?env\s+(?:-\S+\s+|\w+=\S*\s+)*(\S+)|#!\s*(\S+)")
_VERSION = re.compile(r"[-.\d]*$")

_CPP_WORDS = re.compile(
    r"-\*-\s*C\+\+|^\s*(?:namespace\b|template\s*<|class\s+\w|using\s+\w|public:|private:|protected:"
    r"|#\s*include\s*<(?:string|vector|memory|map|utility|type_traits|cstd\w+|functional|algorithm)>)",
    re.MULTILINE,
)


def language_of(path: str, first_line: str = "") -> Language | None:
    """The language of a file by its name, or else by the interpreter in its `#!` line; None if neither says.

    `path` may use either slash. Without `first_line` only the name is looked at.
    """
    name = PurePosixPath(path.replace("\\", "/")).name
    if language := _BY_FILE_NAME.get(name) or _BY_EXTENSION.get(_extension(name)):
        return language
    return _by_shebang(first_line) if first_line.startswith("#!") else None


def settled(language: Language | None, text: str) -> Language | None:
    """`language`, or C++ for a file that was taken for C (a `.h`, most often) and whose text is C++."""
    if language is not None and language.name == "c" and _CPP_WORDS.search(text):
        return BY_NAME["cpp"]
    return language


def grammar_names(languages: Iterable[Language] = LANGUAGES) -> list[str]:
    """The names of the languages that have a grammar."""
    return [language.name for language in languages if language.grammar]


def _extension(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return dot + extension.lower() if stem or dot else ""


def _by_shebang(line: str) -> Language | None:
    match = _SHEBANG.match(line)
    if not match:
        return None
    program = (match[1] or match[2]).rpartition("/")[2]
    return _BY_INTERPRETER.get(program) or _BY_INTERPRETER.get(_VERSION.sub("", program))
