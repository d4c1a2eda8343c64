"""What the query's matches say: the definitions of a file, with their nesting, and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

import tree_sitter

from .comments import clean_comment, clean_docstring
from .declarators import declared
from .ends import last_line, last_node
from .grammar import Match
from .languages import CLASS_NAME, Language
from .unit import KINDS

CLASS_LIKE = frozenset({"class", "struct", "trait", "interface", "impl", "extension", "object", "enum"})
FUNCTION_LIKE = frozenset({"function", "method", "constructor", "property", "test", "macro"})
_LAMBDA = "lambda"
"""A capture of its own; see Definition.bound."""
DEFINING = frozenset({*KINDS, _LAMBDA})

_MAX_SIGNATURE = 400
_BODY_OPENS = re.compile(r"(?:[\s{\\=:;]|=>|->|\b(?:do|then|where|with|end)\b)+$")
_QUOTES = ('"""', "'''", '"', "'", "`")
_ARGUMENTS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_KEYWORDS = re.compile(r",\s*\w+:.*")
"""Elixir's `, for: BitString` after a protocol."""
_SEPARATORS = re.compile(r"::|->|[:\\/#]")


@dataclass(slots=True)
class Definition:
    """A definition as the tree has it. Lines count from 0, ends are inclusive."""

    kind: str
    name: str
    container: str
    first_line: int
    """Decorators included, comments above not."""
    last_line: int
    last_byte: int
    selection: tuple[int, int, int]
    signature: str
    doc: str
    bound: bool
    """A function without a name of its own, bound to one (a lambda); a unit only if it is long enough."""
    parent: Definition | None = field(default=None, repr=False)

    @property
    def path(self) -> str:
        """The container of what is defined inside."""
        return f"{self.container}.{dotted(self.name)}" if self.container else dotted(self.name)


@dataclass(slots=True)
class Comments:
    """The lines that hold nothing but comments, and those that hold nothing but attributes."""

    by_last_line: dict[int, tuple[int, bytes]]
    """Of each comment's last line: its first line and its text."""
    skipped: dict[int, int]
    """Of each skipped node's last line: its first."""
    documented: dict[int, str]
    """Of the last line of an attribute that documents, as Elixir's `@doc`: what it says."""

    def above(self, line: int) -> tuple[int, str]:
        """The first line of the comments and attributes right above `line`, and what they say. An attribute that
        documents has precedence over comments."""
        said = ""
        parts: list[bytes] = []
        while True:
            if comment := self.by_last_line.get(line - 1):
                line = comment[0]
                parts.append(comment[1])
            elif (line - 1) in self.skipped:
                said = said or self.documented.get(line - 1, "")
                line = self.skipped[line - 1]
            else:
                break
        return line, said or clean_comment(b"\n".join(reversed(parts)).decode("utf-8", "replace"))


@dataclass(slots=True)
class _Found:
    """All matches that name the same node: the wrapped definition and its wrapper, with and without optional parts."""

    kind: str
    node: tree_sitter.Node
    """The largest: with decorators, template parameters and so on."""
    core: tree_sitter.Node
    """The smallest: where the signature starts, unless the query says so by a capture."""
    captures: dict[str, list[tree_sitter.Node]]

    def one(self, capture: str) -> tree_sitter.Node | None:
        """The first node of a capture."""
        nodes = self.captures.get(capture)
        return nodes[0] if nodes else None


def find_definitions(found: Iterable[Match], data: bytes, language: Language) -> list[Definition]:
    """The definitions in the order of the text, outer before inner, each with its parent."""
    merged = sorted(_merge(found), key=lambda each: (each.node.start_byte, -each.node.end_byte))
    declaring = _without_remarks(found, data)
    enclosing: list[Definition] = []
    definitions: list[Definition] = []
    for each in merged:
        while enclosing and enclosing[-1].last_byte < each.node.end_byte:
            enclosing.pop()
        definition = _definition(each, enclosing[-1] if enclosing else None, data, declaring, language)
        enclosing.append(definition)
        definitions.append(definition)
    return definitions


def find_comments(found: Iterable[Match], data: bytes) -> Comments:
    """The comments and skipped nodes that have their lines for themselves."""
    comments: dict[int, tuple[int, bytes]] = {}
    skipped: dict[int, int] = {}
    documented: dict[int, str] = {}
    for _, captures in found:
        if nodes := captures.get("comment"):
            if lines := _whole_lines(nodes[0], data):
                comments[lines[1]] = (lines[0], data[nodes[0].start_byte : nodes[0].end_byte].rstrip())
        elif (nodes := captures.get("skip")) and (lines := _whole_lines(nodes[0], data)):
            skipped[lines[1]] = lines[0]
            if doc := captures.get("doc"):
                documented[lines[1]] = clean_docstring(_text(doc[0], data))
    return Comments(comments, skipped, documented)


def module_docs(found: Iterable[Match], data: bytes) -> dict[int, str]:
    """Docstrings that belong to no definition, by their first line."""
    docs: dict[int, str] = {}
    for _, captures in found:
        if "doc" in captures and not ("name" in captures or "skip" in captures):
            node = captures["doc"][0]
            docs[node.start_point[0]] = clean_docstring(_text(node, data))
    return docs


def dotted(name: str) -> str:
    """A name as part of a container: its separators become dots, its type arguments go."""
    if name.isidentifier():
        return name
    while (shorter := _ARGUMENTS.sub("", name)) != name:
        name = shorter
    name = _KEYWORDS.sub("", name)
    return _SEPARATORS.sub(".", " ".join(name.split())).strip(". &*")


def _merge(found: Iterable[Match]) -> list[_Found]:
    """One entry a definition. Of two names for the same node the one of the earlier pattern counts."""
    by_name: dict[tuple[int, int], _Found] = {}
    name_of: dict[tuple[int, int], tuple[int, int]] = {}
    for _, captures in sorted(found, key=itemgetter(0)):
        kind = next((capture for capture in captures if capture in DEFINING), None)
        if kind is None:
            continue
        node = captures[kind][0]
        name = (captures.get("name") or captures.get("declarator") or captures[kind])[0].byte_range
        if name_of.setdefault(node.byte_range, name) != name:
            continue
        known = by_name.get(name)
        if known is None:
            by_name[name] = _Found(kind, node, node, captures)
            continue
        known.captures = {**captures, **known.captures}
        if node.end_byte - node.start_byte > known.node.end_byte - known.node.start_byte:
            known.kind, known.node = kind, node
        if node.end_byte - node.start_byte < known.core.end_byte - known.core.start_byte:
            known.core = node
    return list(by_name.values())


def _definition(
    found: _Found, parent: Definition | None, data: bytes, declaring: bytes, language: Language
) -> Definition:
    _resolve_declarator(found)
    name = _name(found, data)
    container = [parent.path] if parent else []
    container += [dotted(_text(scope, data)) for scope in found.captures.get("container", ())]
    doc = found.one("doc")
    last = last_node(found.node, found.one("body"), scope="scope" in found.captures)
    return Definition(
        kind=_kind(found.kind, name, parent, container[-1] if container else "", language),
        name=name,
        container=".".join(part for part in container if part),
        first_line=found.node.start_point[0],
        last_line=last_line(last, data, language),
        last_byte=last.end_byte,
        selection=_selection(found, name, data),
        signature=_signature(found, declaring),
        doc=clean_docstring(_text(doc, data)) if doc else "",
        bound=found.kind == _LAMBDA,
        parent=parent,
    )


def _resolve_declarator(found: _Found) -> None:
    """Put the name and the scopes of a C declarator in the place of the declarator. What has a scope is a method:
    a function of a namespace can be defined like that too, but hardly ever is."""
    if declarator := found.one("declarator"):
        name, scopes = declared(declarator)
        found.captures = {**found.captures, "name": [name], "container": scopes}
        if scopes and found.kind == "function":
            found.kind = "method"


def _name(found: _Found, data: bytes) -> str:
    """The name as written, on one line. What has none (an initializer, a companion object) goes by its first word."""
    node = found.one("name")
    if node is None:
        return re.split(r"\W", _text(found.core, data)[:80], maxsplit=1)[0] or found.kind
    text = data[node.start_byte : found.captures["name"][-1].end_byte].decode("utf-8", "replace")
    if node.type == "operator_cast":  # C++: its node has the parameters too
        text = text.partition("(")[0]
    elif node.type == "simple_symbol":  # Ruby
        text = text[1:]
    text = " ".join(text.split())
    for quote in _QUOTES:
        if len(text) >= 2 * len(quote) and text.startswith(quote) and text.endswith(quote):
            text = text[len(quote) : -len(quote)]
            break
    return text or found.kind


def _kind(kind: str, name: str, parent: Definition | None, container: str, language: Language) -> str:
    if kind == _LAMBDA:
        kind = "function"
    if kind == "function" and parent and parent.kind in CLASS_LIKE:
        kind = "method"
    if kind == "method" and language.constructors:
        is_class_name = CLASS_NAME in language.constructors and name == container.rpartition(".")[2]
        if is_class_name or name in language.constructors:
            return "constructor"
    return kind


def _without_remarks(found: Iterable[Match], data: bytes) -> bytes:
    """`data` with blanks for its comments and attributes, which would bury a signature."""
    bare = bytearray(data)
    for _, captures in found:
        for node in captures.get("comment") or captures.get("skip") or ():
            bare[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    return bytes(bare)


def _signature(found: _Found, data: bytes) -> str:
    """The declaration up to the body, or all of it if the query marks no body."""
    body = found.one("body")
    start = (found.one("signature") or found.core).start_byte
    end = body.start_byte if body else min(found.core.end_byte, start + 4 * _MAX_SIGNATURE)
    text = data[start:end].decode("utf-8", "replace")
    return _BODY_OPENS.sub("", " ".join(text.split()))[:_MAX_SIGNATURE]


def _selection(found: _Found, name: str, data: bytes) -> tuple[int, int, int]:
    """Where the name stands, its first line if it has several."""
    named = found.one("name")
    node = named or found.core
    row, column = node.start_point
    first = len(data[node.start_byte - column : node.start_byte].decode("utf-8", "replace"))
    written = _text(named, data).partition("\n")[0] if named else name
    return row, first, first + len(name if written.startswith(name) else written)


def _whole_lines(node: tree_sitter.Node, data: bytes) -> tuple[int, int] | None:
    """The first and the last line of a node that shares them with nothing else."""
    column = node.start_point[1]
    if data[node.start_byte - column : node.start_byte].strip():
        return None
    end = node.end_byte
    if data[end - 1 : end] != b"\n":
        line_end = data.find(b"\n", end)
        if data[end : line_end if line_end >= 0 else len(data)].strip():
            return None
    return node.start_point[0], _last_line(node)


def _last_line(node: tree_sitter.Node) -> int:
    """The line of the node's last byte: a node that ends with its line's end does not reach into the next."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _text(node: tree_sitter.Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")
