"""Names inside of C's declarators, which nest without end: pointers, references, arrays, parentheses, scopes."""

from __future__ import annotations

import tree_sitter

_NAMES = frozenset(
    {"identifier", "field_identifier", "type_identifier", "destructor_name", "operator_name", "operator_cast"}
)


def declared(declarator: tree_sitter.Node) -> tuple[tree_sitter.Node, list[tree_sitter.Node]]:
    """The node of the name that a declarator declares, and its scopes, outermost first: of `*ns::Type<T>::name(int)`
    these are `name` and `ns`, `Type<T>`."""
    scopes: list[tree_sitter.Node] = []
    node = declarator
    while node.type not in _NAMES:
        scope = node.child_by_field_name("scope")
        if scope and not any(child.is_missing for child in node.children):  # else `MACRO name`, read as a scope
            scopes.append(scope)
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None:
            inner = next((child for child in node.named_children if "attribute" not in child.type), None)
        if inner is None:
            break
        node = inner
    return node, scopes
