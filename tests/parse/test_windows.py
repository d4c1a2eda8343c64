"""Text without a grammar is found too, by windows of lines."""

from __future__ import annotations

from server.parse import parse
from server.parse.languages import BY_NAME
from server.parse.windows import LINES

from .laws import check


def test_a_short_text_is_one_window_named_by_its_stem() -> None:
    (unit,) = parse("\n  a\nb\n\n", None, "notes")
    assert (unit.name, unit.kind, unit.container, unit.text) == ("notes", "text", "", "  a\nb")
    assert (unit.start_line, unit.end_line, unit.spans, unit.selection) == (1, 2, ((0, 3),), (1, 2, 3))


def test_a_long_text_is_cut_at_a_blank_line_where_one_is_near() -> None:
    lines = [f"line {n}" for n in range(200)]
    lines[LINES + 7] = ""
    units = parse("\n".join(lines), None, "notes")
    assert [unit.spans[0][0] for unit in units] == [0, LINES + 8, 2 * LINES + 8, 3 * LINES + 8]
    check(units, "\n".join(lines))


def test_a_window_can_be_split_at_every_line() -> None:
    (unit,) = parse("a\nbc\nd\n", None, "notes")
    assert [unit.text[offset:] for offset in unit.breaks] == ["bc\nd", "d"]


def test_many_blank_lines_make_no_window() -> None:
    text = "a\n" + "\n" * 500 + "b\n"
    units = parse(text, None, "notes")
    assert {unit.text for unit in units} == {"a", "b"}
    check(units, text)


def test_markdown_is_cut_at_headings_and_bears_their_names() -> None:
    text = (
        "Intro.\n\n# Use #\n\nSo.\n\n## In a shell\n\n```sh\n# no heading\n```\n\n~~~\n```\n# nor this\n~~~\n"
        "## In an editor\nThus.\n# Why\n####### too deep\n#hashtag\n"
    )
    units = parse(text, BY_NAME["markdown"], "README")
    assert [(unit.container, unit.name, unit.start_line) for unit in units] == [
        ("", "README", 0),
        ("", "Use", 2),
        ("Use", "In a shell", 6),
        ("Use", "In an editor", 16),
        ("", "Why", 18),
    ]
    check(units, text)


def test_a_text_that_its_grammar_does_not_get_through_becomes_windows() -> None:
    text = "(\n" * 100_000
    units = parse(text, BY_NAME["lua"], "a")
    assert {(unit.kind, unit.name) for unit in units} == {("text", "a")}
    check(units, text)
