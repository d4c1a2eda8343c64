"""What a setting names."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.settings import SettingError, Settings, redacted, with_values
from server.shared.address import address_of


@pytest.mark.parametrize(
    ("url", "engine", "given"),
    [
        ("redis://h:1/2", "redis", "redis://h:1/2"),
        ("valkey://h", "redis", "redis://h"),
        ("valkeys://h", "redis", "rediss://h"),
        ("rediss://h?ssl_ca_certs=/a.pem&ttl=3", "redis", "rediss://h?ssl_ca_certs=%2Fa.pem"),
        ("redis+cluster://h", "redis cluster", "redis://h"),
        ("rediss+cluster://u:p@h", "redis cluster", "rediss://u:p@h"),
        ("valkeys://h?cluster=true", "redis cluster", "rediss://h"),
        ("postgresql://u:p@h/d?sslmode=verify-full", "postgresql", "postgresql://u:p@h/d?sslmode=verify-full"),
        ("postgres:///d?host=/run", "postgresql", "postgres:///d?host=/run"),
    ],
)
def test_urls(url: str, engine: str, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEANING_SHARED_CACHE_PASSWORD", raising=False)
    address = address_of(url)
    assert (address.engine, address.url) == (engine, given)
    assert "p@" not in address.shown
    assert "p@" not in repr(address)


@pytest.mark.parametrize(
    "url",
    ["http://h", "redis:", "redis://", "h:6379", "redis://h:port", "redis://[h", "redis://h?ttl=0", "redis://h?ttl=1h"],
)
def test_what_names_no_cache(url: str) -> None:
    with pytest.raises(SettingError):
        address_of(url)


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEANING_SHARED_CACHE_USER", "me@work")
    monkeypatch.setenv("MEANING_SHARED_CACHE_PASSWORD", "a:b/c")
    assert address_of("redis://h:1").url == "redis://me%40work:a%3Ab%2Fc@h:1"
    assert address_of("redis://you:x@h:1").url == "redis://you:x@h:1"
    assert address_of("postgresql://h/d").url == "postgresql://me%40work:a%3Ab%2Fc@h/d"
    assert "a:b" not in address_of("redis://h").hush("bad a:b/c or a%3Ab%2Fc\nhere")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://u:p@h:1/2?password=x#y", "redis://u@h:1/2"),
        ("redis://:p@h", "redis://@h"),
        ("redis://[h", "(not a URL)"),
        ("nonsense", "nonsense"),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_no_refusal_shows_a_password(tmp_path: Path) -> None:
    base = Settings(cache_dir=tmp_path, shared_cache="redis://u:hidden@h?password=hidden")
    settings, [problem] = with_values(base, {"sharedCache": "http://u:secret@h"})
    assert settings == base
    assert "meaning.sharedCache" in problem
    assert "redis://u@h" in problem
    assert "hidden" not in problem + repr(settings)
    assert "secret" not in problem


def test_an_editor_may_name_one_or_none(tmp_path: Path) -> None:
    base = Settings(cache_dir=tmp_path, shared_cache="redis://h")
    assert with_values(base, {"sharedCache": " valkey://other "})[0].shared_cache == "valkey://other"
    assert with_values(base, {"sharedCache": ""})[0].shared_cache == ""
