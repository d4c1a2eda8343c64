"""Rewrites of source text for syntax that a grammar does not know, so that the code around it is parsed.

Each returns as many bytes as it was given, with the line breaks where they were: the tree is made of the rewritten
text, and everything that is shown or embedded is cut out of the original at the tree's offsets.
"""

from __future__ import annotations

import re
from re import Match

from .preprocessor import one_branch

_IN_PARENTHESES = rb"\((?:[^()]|\((?:[^()]|\([^()]*\))*\)){0,2000}?\)"
_C_LONE_MACRO = re.compile(
    rb"\n(?:(?<=[{};:\n]\n)[ \t]*[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z0-9_]*(?:NAMESPACE|BEGIN|END)[A-Z0-9_]*)[ \t]*(?=\n)"
)
_C_MACRO_CALL = re.compile(rb"\n[A-Z][A-Z0-9_]{3,}" + _IN_PARENTHESES + rb"[^;{}]{0,500};[ \t]*(?=\n)")
_C_CLASS_MACRO = re.compile(
    rb"\b(class|struct|union)((?:[ \t\n]+[A-Z][A-Z0-9_]+(?:\([^()]*\))?)+)"
    rb"(?=[ \t\n]+[A-Za-z_]\w*(?:<[^;{}]*>)?\s*(?:[:{]|final\b))"
)
_C_TRAILING_MACRO = re.compile(
    rb"(\)(?:\s*(?:const|noexcept|override|final)\b)*)((?:\s+[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\([^()]*\))?)+)(?=\s*[{;])"
)
_C_LEADING_MACRO = re.compile(
    rb"^([ \t]*)((?:[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\([^()\n]*\))?[ \t]+)+)"
    rb"(?=(?:[a-z_][\w:<>]*[ \t*&]+)+\w+::[\w:~]+\(|([A-Za-z_]\w*)\()",
    re.M,
)
_C_CLASS = re.compile(rb"\b(?:class|struct)[ \t]+(?:[A-Z][A-Z0-9_]+[ \t]+)?([A-Za-z_]\w*)")
_C_NULLABILITY = re.compile(rb"\b(?:_N|absl_n)(?:onnull|ullable|ull_unspecified|ullability_unknown)\b")

_BATS_TEST = re.compile(rb"^([ \t]*@test[ \t][^\n]*?[^ \t\n])[ \t]([ \t]*\{)(?=[ \t]*(?:#[^\n]*)?$)", re.M)

_KOTLIN_SOFT_WHERE = re.compile(rb"\bwhere\b(?=[ \t]*[?.(),=)])")
_KOTLIN_GUARD = re.compile(
    rb"^([ \t]*(?:!?i[sn][ \t][^\n\"'{}]*?|[A-Z][\w.]*))[ \t]if(?=[ \t(][^\n]{0,300}?(?:->|\($))",
    re.M,
)
_KOTLIN_CONTEXT = re.compile(rb"^([ \t]*)context(\([^()\n]*\))", re.M)
_KOTLIN_GETTER_ANNOTATION = re.compile(rb"^[ \t]*@\w+(?:\([^()\n]*\))?(?=[ \t]*\n[ \t]*[gs]et\()", re.M)

_HASKELL_ELSE = re.compile(rb"^#[ \t]*el(?=se|if)", re.M)


LONG_LINE = 20_000
"""Bytes. Nobody wrote such a line; it is data, minified, or worse: expressions of some ten thousand operators overflow
the stack of Elixir's grammar."""


def without_long_lines(source: bytes) -> bytes:
    """Blanks for the lines that are longer than LONG_LINE."""
    lines = source.split(b"\n")
    if max(map(len, lines)) <= LONG_LINE:
        return source
    return b"\n".join(b" " * len(line) if len(line) > LONG_LINE else line for line in lines)


def c(source: bytes) -> bytes:
    """Macros that stand where a statement could begin (`FOO_NAMESPACE_BEGIN`, `DEFINE_FLAG(…);`), between `class` and
    its name, before a constructor or a method's type, after a function's parameters, or for a pointer's nullability:
    unexpanded they make errors of what follows."""
    source = one_branch(source)
    source = _C_NULLABILITY.sub(_blank, source)
    source = _C_LONE_MACRO.sub(_blank, source)
    source = _C_MACRO_CALL.sub(_blank, source)
    source = _C_TRAILING_MACRO.sub(_blank_after_first, source)
    classes = frozenset(_C_CLASS.findall(source))

    def without_leading_macro(match: Match[bytes]) -> bytes:
        # Before a name alone it is the type, unless the name is a class's and the function its constructor.
        return _blank_after_first(match) if match[3] is None or match[3] in classes else match[0]

    source = _C_LEADING_MACRO.sub(without_leading_macro, source)
    return _C_CLASS_MACRO.sub(_blank_after_first, source)


def bash(source: bytes) -> bytes:
    """`@test "it works" {` as the command `@test "it works";` and a block."""
    return _BATS_TEST.sub(rb"\1;\2", source)


def kotlin(source: bytes) -> bytes:
    """Guards in `when` (`is A if b ->`) as further conditions, `where` as a name, `context(A)` as an annotation; the
    annotations of a getter without a type before it as blanks."""
    source = _KOTLIN_GUARD.sub(rb"\1,  ", source)
    source = _KOTLIN_SOFT_WHERE.sub(b"wherE", source)
    source = _KOTLIN_CONTEXT.sub(lambda match: match[1] + b"@ontext" + re.sub(rb"\W", b"_", match[2]), source)
    return _KOTLIN_GETTER_ANNOTATION.sub(_blank, source)


def haskell(source: bytes) -> bytes:
    """`#else` and `#elif` as comments: the grammar takes all that follows them for preprocessor text."""
    return _HASKELL_ELSE.sub(_haskell_comment, source)


def _blank(match: Match[bytes]) -> bytes:
    return _blanked(match[0])


def _blank_after_first(match: Match[bytes]) -> bytes:
    return match[1] + _blanked(match[2])


def _blanked(text: bytes) -> bytes:
    """As many spaces, the line breaks left where they are."""
    return b"\n".join(b" " * len(line) for line in text.split(b"\n"))


def _haskell_comment(match: Match[bytes]) -> bytes:
    return b"-" * len(match[0])
