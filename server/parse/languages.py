"""The table of languages: what a file is written in, and what the parser has to know about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from . import mend

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
    clauses: bool = False
    """Whether neighbouring definitions of one name are the clauses of one function."""


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
        ("javascript", "ecmascript"),
        file_names=("Jakefile",),
        interpreters=("node", "nodejs"),
        skipped=("decorator",),
        blocks=_JAVASCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "typescript",
        (".ts", ".mts", ".cts"),
        ("tree_sitter_typescript", "language_typescript"),
        ("typescript", "ecmascript"),
        interpreters=("deno", "bun", "ts-node", "tsx"),
        skipped=("decorator",),
        blocks=_TYPESCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "tsx",
        (".tsx",),
        ("tree_sitter_typescript", "language_tsx"),
        ("typescript", "ecmascript"),
        skipped=("decorator",),
        blocks=_TYPESCRIPT_BLOCKS,
        constructors=("constructor",),
    ),
    Language(
        "java",
        (".java",),
        ("tree_sitter_java", "language"),
        ("java",),
        comments=("line_comment", "block_comment"),
        skipped=("annotation", "marker_annotation"),
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
        skipped=("attribute_list",),
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
        mend=mend.c,
    ),
    Language(
        "cpp",
        (".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".tpp", ".txx", ".inl", ".cu", ".cuh"),
        ("tree_sitter_cpp", "language"),
        ("cpp", "c"),
        blocks=(*_C_BLOCKS, *_C_PREPROCESSOR),
        mend=mend.c,
        constructors=(CLASS_NAME,),
    ),
    Language(
        "csharp",
        (".cs", ".csx"),
        ("tree_sitter_c_sharp", "language"),
        ("csharp",),
        interpreters=("dotnet-script",),
        skipped=("attribute_list", "preproc_region", "preproc_endregion", "preproc_pragma", "preproc_nullable"),
        blocks=(
            *("block", "declaration_list", "enum_member_declaration_list", "switch_body", "switch_section"),
            *("initializer_expression", "accessor_list", "preproc_if", "preproc_elif", "preproc_else"),
        ),
    ),
    Language(
        "kotlin",
        (".kt", ".kts"),
        ("tree_sitter_kotlin", "language"),
        ("kotlin",),
        interpreters=("kotlin",),
        comments=("line_comment", "block_comment"),
        skipped=("annotation",),
        blocks=("block", "class_body", "enum_class_body", "lambda_literal", "when_expression", "value_arguments"),
        mend=mend.kotlin,
    ),
    Language(
        "swift",
        (".swift",),
        ("tree_sitter_swift", "language"),
        ("swift",),
        interpreters=("swift",),
        comments=("comment", "multiline_comment"),
        skipped=("attribute", "directive"),
        blocks=("statements", "class_body", "enum_class_body", "protocol_body", "switch_statement", "array_literal"),
    ),
    Language(
        "scala",
        (".scala", ".sc", ".sbt", ".mill"),
        ("tree_sitter_scala", "language"),
        ("scala",),
        interpreters=("scala", "scala-cli", "amm"),
        comments=("comment", "block_comment"),
        skipped=("annotation",),
        blocks=("template_body", "with_template_body", "enum_body", "block", "indented_block", "case_block"),
        constructors=("this",),
    ),
    Language(
        "lua",
        (".lua", ".rockspec"),
        ("tree_sitter_lua", "language"),
        ("lua",),
        file_names=(".luacheckrc",),
        interpreters=("lua", "luajit", "texlua"),
        blocks=("block", "table_constructor"),
    ),
    Language(
        "bash",
        (".sh", ".bash", ".bats", ".zsh", ".ksh", ".ebuild", ".eclass"),
        ("tree_sitter_bash", "language"),
        ("bash",),
        file_names=(
            *(".bashrc", ".bash_profile", ".bash_aliases", ".bash_logout", ".profile"),
            *(".zshrc", ".zshenv", ".zprofile", "PKGBUILD", "APKBUILD"),
        ),
        interpreters=("bash", "sh", "dash", "ksh", "zsh", "ash", "bats"),
        blocks=(
            *("compound_statement", "do_group", "subshell", "if_statement", "elif_clause", "else_clause"),
            *("case_statement", "case_item"),
        ),
        mend=mend.bash,
    ),
    Language(
        "elixir",
        (".ex", ".exs"),
        ("tree_sitter_elixir", "language"),
        ("elixir",),
        interpreters=("elixir",),
        blocks=("do_block", "else_block", "rescue_block", "after_block", "body", "list", "keywords"),
        clauses=True,
    ),
    Language(
        "haskell",
        (".hs", ".hs-boot", ".hsig"),
        ("tree_sitter_haskell", "language"),
        ("haskell",),
        interpreters=("runhaskell", "runghc", "stack", "cabal"),
        comments=("comment", "haddock"),
        skipped=("pragma", "cpp"),
        blocks=(
            *("declarations", "imports", "exports", "do", "local_binds", "class_declarations", "instance_declarations"),
            *("data_constructors", "gadt_constructors", "fields", "alternatives"),
        ),
        mend=mend.haskell,
        clauses=True,
    ),
    Language(
        "zig",
        (".zig", ".zon"),
        ("tree_sitter_zig", "language"),
        ("zig",),
        blocks=(
            *("block", "struct_declaration", "enum_declaration", "union_declaration", "opaque_declaration"),
            *("error_set_declaration", "switch_expression", "initializer_list", "else_clause"),
        ),
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
    r"-\*-\s*C\+\+|^\s*(?:(?:inline\s+)?namespace(?:\s+\w[\w:]*)?\s*\{|template\s*<|public:|private:|protected:"
    r"|class\s+\w[\w\s]*[{:;]|using\s+(?:namespace\s|\w+\s*=|\w*::)"
    r"|#\s*include\s*<(?:string|vector|memory|map|utility|type_traits|functional|algorithm)>)",
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
