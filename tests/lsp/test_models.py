"""Another model takes over when it can, and not before; a better one puts in order what the quick one found."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from server.embed.bundle import Bundle, BundleError
from server.embed.embedder import Embedder
from server.embed.pace import Pace
from server.index.vectors import Vectors
from server.index.workers import Workers
from server.lsp.folder import Folder
from server.lsp.model import Models
from server.search.searcher import Searcher
from server.settings import Settings
from server.workspace.overlay import Overlay
from tests.embed import tiny
from tests.embed.tiny import write_bundle

from .peer import Json, Peer, story, working_peer


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model, which sees other likenesses."""
    return write_bundle(tmp_path_factory.mktemp("other"), changed={"id": "tiny-2", "max_tokens": 64}, seed=7)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set, nothing is embedded in the background."""
    gate = threading.Event()
    original = Pace.embed_code

    def waiting(pace: Pace, texts: Sequence[tuple[str, Sequence[int]]], seconds: float, least: int) -> list[Vectors]:
        assert not least or gate.wait(60)
        return original(pace, texts, seconds, least)

    monkeypatch.setattr(Pace, "embed_code", waiting)
    yield gate
    gate.set()


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(model, text) of all code that is embedded."""
    texts: list[tuple[str, str]] = []
    original = Embedder._embed

    def counted(embedder: Embedder, some: Sequence[tuple[str, Sequence[int]]]) -> list[Vectors]:
        texts.extend((embedder.id, text) for text, _ in some)
        return original(embedder, some)

    monkeypatch.setattr(Embedder, "_embed", counted)
    return texts


def configure(peer: Peer, **values: Json) -> None:
    peer.notify("workspace/didChangeConfiguration", {"settings": {"meaning": values}})


async def model_of(peer: Peer, query: str = "w1") -> str:
    """The model that answers."""
    result = await peer.request("meaning/search", {"query": query})
    assert result["items"]
    return str(result["model"])


async def until_told(peer: Peer, model: str | None = None) -> None:
    """No vector is missing any more, though some were unless that `model` answers now."""

    def done() -> bool:
        told = peer.told("meaning/indexChanged")
        begun = model or any(status["backfill"] for status in told)
        return bool(begun and told) and told[-1]["backfill"] is None and model in (None, told[-1]["model"])

    await peer.until(done)


@story
async def test_the_old_model_answers_until_the_new_one_knows_all(
    settings: Settings, workspace: Path, other: Path, gate: threading.Event
) -> None:
    async with working_peer(settings, workspace) as peer:
        configure(peer, model=str(other))
        assert await model_of(peer) == "tiny-1"
        (workspace / "more.py").write_text("def w9(): ...\n")
        await peer.indexed()
        assert "w9" in await peer.names("w9")
        assert await model_of(peer) == "tiny-1"
        gate.set()
        await until_told(peer, "tiny-2")
        assert await model_of(peer) == "tiny-2"
        assert "w9" in await peer.names("w9")


@story
async def test_to_go_back_costs_nothing(
    settings: Settings, workspace: Path, other: Path, embedded: list[tuple[str, str]]
) -> None:
    async with working_peer(settings, workspace) as peer:
        configure(peer, model=str(other))
        await until_told(peer, "tiny-2")
        assert {model for model, _ in embedded} == {"tiny-1", "tiny-2"}
        embedded.clear()
        for model, name in ((settings.model, "tiny-1"), (str(other), "tiny-2")):
            configure(peer, model=model)
            await until_told(peer, name)
            assert await model_of(peer) == name
    assert embedded == []


@story
async def test_the_old_model_answers_after_a_restart_too(
    settings: Settings, workspace: Path, other: Path, gate: threading.Event
) -> None:
    async with working_peer(settings, workspace):
        pass
    async with working_peer(replace(settings, model=str(other)), workspace) as peer:
        assert await model_of(peer) == "tiny-1"
        gate.set()
        await until_told(peer, "tiny-2")
        assert await model_of(peer) == "tiny-2"


@story
async def test_a_model_that_changes_its_mind_on_the_way_is_the_last_one_asked_for(
    settings: Settings, workspace: Path, other: Path, gate: threading.Event
) -> None:
    async with working_peer(settings, workspace) as peer:
        configure(peer, model=str(other))
        configure(peer, model=settings.model)
        await peer.indexed()
        assert await model_of(peer) == "tiny-1"
        gate.set()
        await until_told(peer, "tiny-1")
        assert await model_of(peer) == "tiny-1"


@story
async def test_what_is_not_wanted_any_more_is_not_told_as_going_on(
    settings: Settings, workspace: Path, other: Path, gate: threading.Event
) -> None:
    async with working_peer(settings, workspace) as peer:
        configure(peer, model=str(other))
        await peer.until(lambda: [each for each in peer.told("meaning/indexChanged") if each["backfill"]])
        configure(peer, model=settings.model)
        gate.set()
        await until_told(peer, "tiny-1")
        await peer.indexed()
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert folder["backfill"] is None


@story
async def test_an_old_model_that_does_not_run_any_more_does_not_stand_in(
    settings: Settings, workspace: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working_peer(settings, workspace):
        pass
    original = Embedder.__init__

    def picky(embedder: Embedder, bundle: Bundle, *more: Json) -> None:
        if bundle.id == "tiny-1":
            raise BundleError("written for a runtime of long ago")
        original(embedder, bundle, *more)

    monkeypatch.setattr(Embedder, "__init__", picky)
    async with working_peer(replace(settings, model=str(other)), workspace) as peer:
        assert await model_of(peer) == "tiny-2"


def test_a_search_that_opens_the_index_during_a_switch_gets_the_new_model(
    settings: Settings, workspace: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Folder._searcher

    def overtaken(folder: Folder) -> Searcher:
        searcher = original(folder)
        monkeypatch.setattr(Folder, "_searcher", original)
        wanted = replace(settings, model=str(other))
        folder.switch(Models.of(wanted), wanted)
        return searcher

    monkeypatch.setattr(Folder, "_searcher", overtaken)
    with Workers(1) as workers:
        models, nobody = Models.of(settings), lambda *_: None
        folder = Folder(workspace.as_uri(), workspace, settings, models, Overlay(), workers, nobody, nobody)
        with folder.reading() as searcher:
            assert searcher.index.bundle.id == "tiny-2"
        folder.retire()


@story
async def test_a_better_model_puts_the_candidates_in_its_order(
    settings: Settings, workspace: Path, other: Path
) -> None:
    (workspace / "many.py").write_text("".join(f"def f{i}():\n    return w{i} + w{i + 1}\n\n\n" for i in range(10, 30)))
    query = "w11 w22 w33"
    async with working_peer(replace(settings, limit=50), workspace) as peer:
        quick = await peer.names(query)
    async with working_peer(replace(settings, limit=50, refine_model=str(other)), workspace) as peer:
        await until_told(peer)
        refined = await peer.names(query)
        assert (await peer.request("meaning/status"))["problem"] is None
    assert sorted(refined) == sorted(quick)
    assert refined != quick


@story
async def test_the_best_candidates_are_embedded_while_one_waits_and_what_is_edited_afterwards(
    settings: Settings, workspace: Path, other: Path, gate: threading.Event, embedded: list[tuple[str, str]]
) -> None:
    (workspace / "many.py").write_text("".join(f"def f{i}():\n    return w{i} + w{i + 1}\n\n\n" for i in range(10, 30)))
    async with working_peer(replace(settings, refine_model=str(other), refine_budget=10_000), workspace) as peer:
        await peer.until(lambda: [each for each in peer.told("meaning/indexChanged") if each["backfill"]])
        await peer.names("w11 w22")
        assert len([text for model, text in embedded if model == "tiny-2"]) >= 20
        gate.set()
        await until_told(peer)
        embedded.clear()
        (workspace / "more.py").write_text("def w9(): ...\n")
        await peer.indexed()
        await peer.until(lambda: any(model == "tiny-2" and "def w9" in text for model, text in embedded))


@story
async def test_a_refining_model_of_the_same_id_and_another_width_is_another_model(
    settings: Settings, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "many.py").write_text("".join(f"def f{i}():\n    return w{i} + w{i + 1}\n\n\n" for i in range(10, 30)))
    monkeypatch.setattr(tiny, "DIM", 2 * tiny.DIM)
    wide = write_bundle(tmp_path / "wide", changed={"max_tokens": 64}, seed=5)
    async with working_peer(replace(settings, refine_model=str(wide)), workspace) as peer:
        await until_told(peer)
        assert "f11" in await peer.names("w11 w22")
        assert (await peer.request("meaning/status"))["folders"][0]["problem"] is None


@story
async def test_a_refining_model_that_is_damaged_costs_a_message_and_no_answer(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    broken = write_bundle(tmp_path / "broken", seed=5)
    (broken / "model.onnx").write_bytes(b"")
    async with working_peer(replace(settings, refine_model=str(broken)), workspace) as peer:
        await peer.until(lambda: peer.told("window/showMessage"))
        assert "w1" in await peer.names("w1")
        [folder] = (await peer.request("meaning/status"))["folders"]
        assert folder["state"] == "ready"
        assert str(broken) in folder["problem"]
        assert len(peer.told("window/showMessage")) == 1
        write_bundle(broken, seed=5)
        configure(peer, refineBudget=100)
        await peer.until(lambda: peer.told("meaning/indexChanged")[-1]["problem"] is None)
        await peer.indexed()
        await until_told(peer)


@story
async def test_a_refining_model_that_is_not_there_is_named(settings: Settings, workspace: Path) -> None:
    options = {"refineModel": "/no/such/model", "device": "tpu"}
    async with working_peer(settings, workspace, initializationOptions=options) as peer:
        assert "w1" in await peer.names("w1")
        shown = sorted(message["message"].split(":")[0] for message in peer.told("window/showMessage"))
    assert shown == ["meaning.device", "meaning.refineModel"]
