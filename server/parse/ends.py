"""Where a definition ends, which is not always where its node does."""

from __future__ import annotations

import tree_sitter

from .languages import Language


def last_node(node: tree_sitter.Node, body: tree_sitter.Node | None, *, scope: bool) -> tree_sitter.Node:
    """The node that a definition ends with: `node`, or its body's, where the grammar puts that beside it.

    With `scope` its members follow it as siblings, as after C#'s `namespace A;`: they reach up to the next of its type.
    """
    if scope:
        last = node
        while (following := last.next_sibling) and following.type != node.type:
            last = following
        return last
    return body if body and body.end_byte > node.end_byte else node


def last_line(node: tree_sitter.Node, data: bytes, language: Language) -> int:
    """The line of the last byte that is the node's own.

    Where indentation ends a block, a node reaches up to the next statement: what stands in between is not its own,
    comments included.
    """
    if not data[node.end_byte - 1 : node.end_byte].isspace():
        return node.end_point[0]
    inner = node
    while last := _last_child(inner, language):
        inner = last
    return inner.start_point[0] + data[inner.start_byte : inner.end_byte].rstrip().count(b"\n")


def _last_child(node: tree_sitter.Node, language: Language) -> tree_sitter.Node | None:
    """The last child that holds text and is no comment."""
    for child in reversed(node.children):
        if child.end_byte > child.start_byte and child.type not in language.comments:
            return child
    return None
