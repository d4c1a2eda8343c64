"""The equations of a Haskell function and the clauses of an Elixir one are one unit; overloads are not."""

from __future__ import annotations

from server.parse import language_of, parse


def spans(path: str, text: str) -> list[tuple[str, int, int]]:
    units = parse(text, language_of(path), "x")
    return [(unit.name, unit.start_line, unit.end_line) for unit in units if unit.kind != "module"]


def test_a_signature_its_pragma_and_all_equations_are_one() -> None:
    text = "f :: Int -> Int\n{-# INLINE f #-}\nf 0 = 1\n\n-- The rest.\nf n = n\n  where g = 1\n\ng = 2\n"
    assert spans("a.hs", text) == [("f", 0, 6), ("g", 8, 8)]


def test_an_equation_with_a_prime_is_another_function() -> None:
    assert spans("a.hs", "f x = x\nf' x = x\n") == [("f", 0, 0), ("f'", 1, 1)]


def test_members_of_two_instances_are_two() -> None:
    text = "instance A Int where\n  f 0 = 1\n  f n = n\n\ninstance A Char where\n  f c = 1\n"
    assert [name for name, _, _ in spans("a.hs", text)] == ["A Int", "f", "A Char", "f"]


def test_clauses_with_something_between_them_are_two() -> None:
    text = "defmodule A do\n  def f(0), do: 1\n  def g, do: 2\n  def f(n), do: n\nend\n"
    assert [name for name, _, _ in spans("a.ex", text)] == ["A", "f", "g", "f"]


def test_a_clause_with_its_own_documentation_is_another_function() -> None:
    text = 'defmodule A do\n  @doc "One."\n  def f(a), do: a\n\n  @doc "Two."\n  def f(a, b), do: a + b\nend\n'
    units = parse(text, language_of("a.ex"), "x")
    assert [(unit.name, unit.doc) for unit in units] == [("A", ""), ("f", "One."), ("f", "Two.")]


def test_functions_inside_of_later_clauses_stay_with_the_function() -> None:
    text = """\
defmodule A do
  defmacro f(0), do: 1

  defmacro f(n) do
    quote do
      def g(x) do
        x
      end
    end
  end
end
"""
    units = parse(text, language_of("a.ex"), "x")
    assert [(unit.container, unit.name) for unit in units] == [("", "A"), ("A", "f"), ("A.f", "g")]


def test_overloads_stay_apart() -> None:
    text = "class A {\n    void F(int a) {\n    }\n    void F(string a) {\n    }\n}\n"
    assert spans("a.cs", text) == [("A", 0, 5), ("F", 1, 2), ("F", 3, 4)]
