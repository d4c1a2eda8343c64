"""The server follows the disk by itself: the editor says nothing of these changes."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

from tests.lsp.peer import story

from .editor import PATIENCE, Editor, editor


async def until_found(client: Editor, name: str, *places: str) -> None:
    """Waits until exactly these places are found for a name."""
    end = time.monotonic() + PATIENCE
    while True:
        found = {place for place in await client.places(name) if place.endswith(f":{name}")}
        if found == set(places):
            return
        assert time.monotonic() < end, found
        await asyncio.sleep(0.02)


@story
async def test_files_that_change_on_disk_are_searchable(workspace: Path, tmp_path: Path) -> None:
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        await until_found(client, "raw_decode", "decoder.py:raw_decode")
        [folder] = (await client.ask("meaning/status")).folders
        assert folder.watch == "watching"

        (workspace / "json/fresh.py").write_text("def turn_pancake(pan): ...\n")
        await until_found(client, "turn_pancake", "fresh.py:turn_pancake")
        (workspace / "json/fresh.py").write_text("def flip_omelette(pan): ...\n")
        await until_found(client, "flip_omelette", "fresh.py:flip_omelette")
        await until_found(client, "turn_pancake")

        shutil.move(workspace / "json", tmp_path / "json")
        await until_found(client, "raw_decode")
        shutil.move(tmp_path / "json", workspace / "http" / "moved")
        await until_found(client, "raw_decode", "decoder.py:raw_decode")
        await until_found(client, "flip_omelette", "fresh.py:flip_omelette")

        (workspace / "http/moved/fresh.py").write_text("def poach_egg(pot): ...\n")
        await until_found(client, "poach_egg", "fresh.py:poach_egg")
        (workspace / ".ignore").write_text("moved\n")
        await until_found(client, "poach_egg")
        (workspace / ".ignore").unlink()
        await until_found(client, "poach_egg", "fresh.py:poach_egg")
        shutil.rmtree(workspace / "http")
        await until_found(client, "poach_egg")
    assert client.exit_code == 0


@story
async def test_a_gitignore_that_changes_is_taken_up(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (workspace / ".gitignore").write_text("json/\n")
    async with editor(tmp_path / "cache") as client:
        await client.open(workspace)
        await until_found(client, "urlopen", "request.py:urlopen")
        await until_found(client, "raw_decode")
        (workspace / ".gitignore").write_text("urllib/\n")
        await until_found(client, "raw_decode", "decoder.py:raw_decode")
        await until_found(client, "urlopen")
