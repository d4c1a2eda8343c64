"""Comments and docstrings without their marks."""

from __future__ import annotations

import inspect
import re

_OPEN = re.compile(r"^\s*(?:/\*[*!]*|\(\*+|\{-\s*\|?|--\[=*\[|<!--|<#|=begin\b)")
_CLOSE = re.compile(r"\s*(?:\*+/|\*\)|-\}|\]=*\]|-->|#>|^=end\b)\s*$")
_LINE_MARK = re.compile(r"^\s*(?://+!?<?|#+!?|--+\s*[|^]?|;+|%+|\*+(?!/)|'''?(?=\s))[ \t]?")
_PRAGMA = re.compile(
    r"(?:go:|\+build|nolint|NOLINT|es-?lint|tslint|biome-|prettier-|@ts-|noqa|type:\s*ignore|pylint:|pyright:|rubocop:"
    r"|frozen_string_literal|clang-format|istanbul |c8 |coverage:|swiftlint:|ktlint|phpcs:|@phpstan-|-\*-|vim:|!/)"
)
"""What comments say to tools, not to readers."""
_RULE = re.compile(r"^\W*$")
_XML = re.compile(r"</?(?:summary|remarks|param|typeparam|returns|value|exception|inheritdoc|para|example|code)\b")
"""One of C#'s documentation tags."""
_XML_REFERENCE = re.compile(r"<\w+\s+(?:cref|name|langword|href)=\"(?:\w:)?([^\"]*)\"\s*/>")
_XML_NAMED = re.compile(r"<(?:param|typeparam|exception)\s+(?:cref|name)=\"(?:\w:)?([^\"]*)\"\s*>")
_XML_TAG = re.compile(r"</?[a-zA-Z]+(?:\s[^<>]*)?/?>")
_STRING = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')(.*?)\1?$", re.DOTALL)


def clean_comment(text: str) -> str:
    """What a comment, or several comments in a row, say. Lines of nothing but marks and what is said to
    tools become blank."""
    lines = []
    for line in text.split("\n"):
        opened = _OPEN.sub("", line)
        closed = _CLOSE.sub("", opened)
        said = closed.strip() if opened != line else _LINE_MARK.sub("", closed).rstrip()
        lines.append("" if _RULE.match(said) or _PRAGMA.match(said) else said)
    said = inspect.cleandoc("\n".join(lines)).strip()
    return _without_xml(said) if _XML.search(said) else said


def _without_xml(text: str) -> str:
    """C#'s documentation without its tags: `<param name="key">Its place.</param>` says `key: Its place.`"""
    text = _XML_REFERENCE.sub(r"\1", text)
    text = _XML_NAMED.sub(r"\1: ", text)
    lines = [line.strip() for line in _XML_TAG.sub("", text).split("\n")]
    return "\n".join(line for line in lines if line)


def clean_docstring(text: str) -> str:
    """What a string literal that serves as documentation says."""
    match = _STRING.match(text.strip())
    return inspect.cleandoc(match[2] if match else text).strip()
