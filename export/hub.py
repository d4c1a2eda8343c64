"""Where a checkpoint's files come from: a folder, or the Hugging Face hub through its cache."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import ExportError, one_line

FILES = ("config.json", "*.safetensors", "model.safetensors.index.json", "tokenizer.json")
"""All that is fetched: data, no code and no pickles."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class CheckpointError(ExportError):
    """The checkpoint cannot be used."""


@dataclass(frozen=True)
class Known:
    """A checkpoint on the hub that this project was made for."""

    revision: str | None
    """The commit that is taken unless another is asked for; None for the newest."""
    licence: str


KNOWN = {
    "codefuse-ai/C2LLM-0.5B": Known("f08c18be03de42c6e388948a1804d4b271a953a2", "Apache-2.0"),
    "codefuse-ai/C2LLM-7B": Known(None, "Apache-2.0"),
}


@dataclass(frozen=True)
class Source:
    """A checkpoint's files on this machine."""

    path: Path
    """A folder, or a .gguf file."""
    name: str
    revision: str | None
    """The hub's commit; None for what did not come from there."""


def locate(source: str, revision: str | None) -> Source:
    """The files of a folder, a .gguf file or a hub id such as `codefuse-ai/C2LLM-0.5B`, fetched if they have to be."""
    path = Path(source).expanduser()
    if path.exists():
        if revision is not None:
            raise CheckpointError(f"{source}: a local checkpoint has no revision {revision!r}; leave the revision out")
        return Source(path, path.resolve().name, None)
    if not _HUB_ID.fullmatch(source):
        raise CheckpointError(f"{source}: no such file or folder, and no hub id such as codefuse-ai/C2LLM-0.5B")
    if revision is None and source in KNOWN:
        revision = KNOWN[source].revision
    folder = _snapshot(source, revision)
    return Source(folder, source, folder.name if _COMMIT.fullmatch(folder.name) else revision)


def _snapshot(source: str, revision: str | None) -> Path:
    """The folder in the hub's cache. Asks the network only for what is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    by_hand = f"`hf download {source}{f' --revision {revision}' if revision else ''} --local-dir FOLDER`"
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=list(FILES)))
    except RevisionNotFoundError:
        raise CheckpointError(f"{source}: the hub has no revision {revision!r}; leave it out or name another") from None
    except GatedRepoError:
        raise CheckpointError(f"{source}: accept its licence on the hub first, then run `hf auth login`") from None
    except RepositoryNotFoundError:
        raise CheckpointError(f"{source}: the hub has no such public repository; check the name") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        why = "the hub cannot be reached" if isinstance(error, LocalEntryNotFoundError) else one_line(error)
        raise CheckpointError(
            f"{source}: not in the cache, and {why}; where there is a network, run {by_hand}, bring the folder here "
            "and give its path instead"
        ) from None
