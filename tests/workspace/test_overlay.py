"""What editors show is found by the folder that holds it; each report of an editor is a buffer of its own."""

from __future__ import annotations

from pathlib import Path

from server.workspace.overlay import Overlay


def texts(overlay: Overlay, folder: str) -> dict[str, str]:
    return {path: buffer.text for path, buffer in overlay.below(Path(folder)).items()}


def test_a_folder_has_the_buffers_at_any_depth_below_it_and_no_others() -> None:
    overlay = Overlay()
    for path in ("/a/b.py", "/a/c/d.py", "/ab/e.py", "/a"):
        overlay.put(Path(path), path)
    assert texts(overlay, "/a") == {"b.py": "/a/b.py", "c/d.py": "/a/c/d.py"}
    assert texts(overlay, "/a/c") == {"d.py": "/a/c/d.py"}
    assert texts(overlay, "/a/b.py") == {}
    assert set(texts(overlay, "/")) == {"a/b.py", "a/c/d.py", "ab/e.py", "a"}


def test_the_same_text_again_is_another_buffer() -> None:
    overlay, folder = Overlay(), Path("/a")
    overlay.put(folder / "b.py", "x")
    before = overlay.below(folder)["b.py"]
    assert overlay.below(folder)["b.py"] is before
    overlay.put(folder / "b.py", "x")
    after = overlay.below(folder)["b.py"]
    assert after is not before
    assert after != before
    assert after.text == "x"


def test_a_dropped_buffer_is_gone_and_may_be_dropped_again() -> None:
    overlay, file = Overlay(), Path("/a/b.py")
    overlay.put(file, "x")
    overlay.drop(file)
    overlay.drop(file)
    assert overlay.below(Path("/a")) == {}


def test_what_was_handed_out_stays_as_it_was() -> None:
    overlay, file = Overlay(), Path("/a/b.py")
    overlay.put(file, "x")
    before = overlay.below(Path("/a"))
    overlay.put(file, "y")
    overlay.drop(file)
    assert before["b.py"].text == "x"
