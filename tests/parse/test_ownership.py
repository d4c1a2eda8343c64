"""Which lines and which comments are whose."""

from __future__ import annotations

from server.parse import language_of, parse


def test_the_comment_above_a_class_is_not_that_of_a_method_on_the_same_line() -> None:
    units = parse("/// A point.\nstruct P { func x() -> Int { 1 }\n}\n", language_of("a.swift"), "a")
    assert [(unit.name, unit.doc, unit.spans) for unit in units] == [("P", "A point.", ((0, 2),))]


def test_attributes_above_a_definition_are_its_own_and_those_below_the_last_ones() -> None:
    text = "f = 1\n{-# INLINE f #-}\n\n{-# INLINE g #-}\ng = 2\n{-# INLINE g #-}\n\ninfixl 6 +++\n"
    units = parse(text, language_of("a.hs"), "a")
    assert [(unit.name, unit.spans) for unit in units] == [("f", ((0, 2),)), ("g", ((3, 6),)), ("a", ((7, 7),))]


def test_an_attribute_that_documents_has_precedence_over_a_comment() -> None:
    text = 'defmodule A do\n  # Not for readers.\n  @doc "Stores it."\n  @spec f(a) :: b\n  def f(a), do: a\nend\n'
    units = parse(text, language_of("a.ex"), "a")
    assert [(unit.name, unit.doc, unit.start_line) for unit in units] == [("A", "", 0), ("f", "Stores it.", 1)]
