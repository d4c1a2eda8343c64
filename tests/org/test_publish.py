"""What is published is what the workspace has, whatever was there before and whatever comes between."""

from __future__ import annotations

from server.org.publish import unpublish
from tests.services.postgres import Postgres

from .conftest import Send, Write, contents

FILES = {
    "a.py": "def w1():\n    return w2\n\ndef w3():\n    w4 = w5\n",
    "src/b.py": "class w6:\n    def w7(self):\n        return w8\n",
    "src/c.go": "package w9\n\nfunc w10() int {\n\treturn w11\n}\n",
}
LATER = {
    "a.py": "def w1():\n    return w2\n\ndef w12():\n    w4 = w13\n",
    "moved/b.py": FILES["src/b.py"],
    "new.py": "def w14():\n    w15 = w16\n",
}


def test_a_changed_workspace_is_published_as_if_from_nothing(
    postgres: Postgres, url: str, write: Write, send: Send
) -> None:
    root = write("one", FILES)
    assert send(root).sent == 3
    write("one", LATER)
    again = send(root)
    assert (again.sent, again.removed, again.files) == (3, 2, 3)
    fresh = postgres.database()
    send(root, to=fresh)
    assert contents(url) == contents(fresh)


def test_what_did_not_change_is_not_sent(write: Write, send: Send) -> None:
    root = write("one", FILES)
    send(root)
    again = send(root)
    assert (again.sent, again.removed) == (0, 0)
    write("one", {**FILES, "a.py": LATER["a.py"]})
    assert send(root).sent == 1


def test_workspaces_do_not_touch_each_other(postgres: Postgres, url: str, write: Write, send: Send) -> None:
    send(write("one", FILES))
    alone = contents(url)
    send(write("two", FILES))
    assert unpublish(url, "two")
    assert contents(url) == alone
    assert not unpublish(url, "two")
