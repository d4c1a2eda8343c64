"""Every setting in one place: its default, its check, and where it came from.

Sources, weakest first: the defaults below, environment variables (`MEANING_CACHE_DIR`, `MEANING_MODEL`,
`MEANING_REFINE_MODEL`, `MEANING_DEVICE`, `MEANING_SHARED_CACHE`,
`MEANING_ORG_INDEX`), the editor's `meaning` section or the command line. A bad value never stops anything: it is
reported by name and the weaker source's value stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_MODEL = "default"
"""The name of the bundle that ships inside the package."""

DEVICES = ("auto", "cpu", "cuda")
"""What a model may run on: `auto` is an NVIDIA card where onnxruntime finds one, else the processor."""

SHARED_SCHEMES = tuple(
    f"{scheme}://"
    for scheme in ("redis", "rediss", "valkey", "valkeys", "redis+cluster", "rediss+cluster", "postgresql", "postgres")
)
"""How the URL of a shared cache may begin; those with a second `s` are encrypted."""

SHARED_USER, SHARED_PASSWORD = "MEANING_SHARED_CACHE_USER", "MEANING_SHARED_CACHE_PASSWORD"
"""Environment variables with a shared cache's credentials, where its URL has none: no file of settings has to."""
SHARED_KEY = "MEANING_SHARED_CACHE_KEY"
"""And with the private key of those who share one."""

ORG_SCHEMES = ("postgresql://", "postgres://")
"""How the URL of an organisation's index may begin."""


class SettingError(ValueError):
    """A setting that nothing can be done without has no usable value; the message says how to give one."""


def user_path(text: str) -> Path:
    """The path that a user typed, `~` and `~name` resolved. Raises SettingError for a user without a home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise SettingError(f"{text}: no home folder is known for it; write the path out") from None


def default_cache_dir() -> Path:
    """The user's cache folder for this program, by the platform's convention (not created here).

    Raises SettingError for a user without a home folder who names none.
    """
    if override := os.environ.get("MEANING_CACHE_DIR"):
        return user_path(override)
    try:
        return _platform_cache_dir()
    except RuntimeError:
        raise SettingError("no home folder is known to keep indexes in; set MEANING_CACHE_DIR") from None


def _platform_cache_dir() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "meaning-lsp"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "meaning-lsp" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meaning-lsp"


def _default_threads() -> int:
    """Half of the cores, at least one, at most four: an editor shares this machine with us."""
    return max(1, min(4, (os.cpu_count() or 2) // 2))


def _default_device() -> str:
    """Raises SettingError for a device that is none."""
    try:
        return _device(os.environ.get("MEANING_DEVICE") or DEVICES[0])
    except ValueError as error:
        raise SettingError(f"MEANING_DEVICE: {error}") from None


@dataclass(frozen=True)
class Settings:
    """All settings; immutable, so that a component can keep the value it was given."""

    model: str = field(default_factory=lambda: os.environ.get("MEANING_MODEL") or DEFAULT_MODEL)
    """`default` (the shipped bundle) or the path of a model bundle. It finds what may answer."""
    refine_model: str = field(default_factory=lambda: os.environ.get("MEANING_REFINE_MODEL", ""))
    """The path of a slower and better model's bundle, which puts what was found in order; empty for none."""
    refine_budget: int = 150
    """Milliseconds that one search may take to embed, with the better model, what has no vector of it yet."""
    device: str = field(default_factory=_default_device)
    """One of DEVICES."""
    cache_dir: Path = field(default_factory=default_cache_dir)
    """Where indexes live, one folder a workspace."""
    shared_cache: str = field(default_factory=lambda: os.environ.get("MEANING_SHARED_CACHE") or "", repr=False)
    """The URL of a cache of embeddings that others use, too; empty for none. It may hold a password."""
    org_index: str = field(default_factory=lambda: os.environ.get("MEANING_ORG_INDEX") or "", repr=False)
    """The URL of the PostgreSQL that many workspaces are published to; empty for none. It may hold a password."""
    limit: int = 10
    """Hits of one search, when the request names no number."""
    threads: int = field(default_factory=_default_threads)
    """Threads of the model's arithmetic."""
    max_file_bytes: int = 1_000_000
    """Larger files are not indexed."""
    exclude: tuple[str, ...] = ()
    """Further ignore patterns, in .gitignore syntax, relative to the workspace folder."""
    workspace_symbol: bool = True
    """Whether `workspace/symbol` is answered by meaning."""


def with_values(base: Settings, values: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """`base` with an editor's values (camelCase keys, as in the `meaning` section) laid over it.

    Returns the settings and one sentence for each value that was refused: its name, what is wrong, what is used.
    """
    changed: dict[str, Any] = {}
    problems: list[str] = []
    names = {_camel(f.name): f.name for f in fields(Settings)}
    for key, value in values.items():
        name = names.get(key)
        if name is None:
            problems.append(f"meaning.{key}: no such setting (known: {', '.join(sorted(names))})")
        elif value is not None:
            try:
                changed[name] = _CHECKS[name](value)
            except ValueError as error:
                value = getattr(base, name)
                shown = redacted(value) if name in _URLS else value
                problems.append(f"meaning.{key}: {error}; using {_shown(shown)}")
    return replace(base, **changed), problems


def redacted(url: str) -> str:
    """A URL as it may be shown: without a password, and without options, which may hold one."""
    try:
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query="", fragment="").geturl()
    except ValueError:
        return "(not a URL)"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _shown(value: object) -> str:
    return repr(str(value)) if isinstance(value, Path) else repr(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is not a non-empty string")
    return value


def _optional_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value.strip()


def _url(schemes: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        url = _optional_text(value)
        if url and not url.startswith(schemes):
            raise ValueError(f"{redacted(url)!r} does not begin with {' or '.join(schemes)}")
        return url

    return check


def _device(value: Any) -> str:
    if value not in DEVICES:
        raise ValueError(f"{value!r} is none of {', '.join(DEVICES)}")
    return str(value)


def _folder(value: Any) -> Path:
    return user_path(_text(value))


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{value!r} is not a whole number from {low} to {high}")
        return value

    return check


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise ValueError(f"{value!r} is not a list of patterns")
    return tuple(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "model": _text,
    "refine_model": _optional_text,
    "refine_budget": _whole(0, 60_000),
    "device": _device,
    "cache_dir": _folder,
    "shared_cache": _url(SHARED_SCHEMES),
    "org_index": _url(ORG_SCHEMES),
    "limit": _whole(1, 1000),
    "threads": _whole(1, 256),
    "max_file_bytes": _whole(1_000, 100_000_000),
    "exclude": _patterns,
    "workspace_symbol": _flag,
}

_URLS = ("shared_cache", "org_index")
"""Settings that may hold a password."""
