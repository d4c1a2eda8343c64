"""Which cache the user named, and with which credentials."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from ..settings import SHARED_KEY, SHARED_PASSWORD, SHARED_SCHEMES, SHARED_USER, SettingError, redacted

KEY_CHARACTERS = 16
"""The shortest private key: a word could be guessed by whoever reads the cache."""

_DAY = 24 * 60 * 60
_POSTGRES = ("postgresql", "postgres")


@dataclass(frozen=True)
class Address:
    """A cache's URL as its library takes it, and what else the user said of it."""

    url: str = field(repr=False)
    """With credentials: never to be shown."""
    shown: str
    """The URL as it may be shown."""
    engine: str
    """`redis`, `redis cluster` or `postgresql`."""
    seconds: int | None = None
    """How long Redis keeps a vector; None for as long as it has room."""

    def hush(self, text: str) -> str:
        """A message of a library, on one line and without the password."""
        secret = urlsplit(self.url).password
        text = " ".join(text.split())
        for form in {secret, unquote(secret)} if secret else ():
            text = text.replace(form, "***")
        return text


def address_of(url: str) -> Address:
    """What a `sharedCache` setting names. Raises SettingError."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # which raises for one that is no number
    except ValueError as error:
        raise SettingError(f"shared cache: not a URL ({error})") from None
    if not url.startswith(SHARED_SCHEMES) or not (parts.hostname or parts.scheme in _POSTGRES):
        raise SettingError(f"shared cache {redacted(url)}: give a URL that begins with {' or '.join(SHARED_SCHEMES)}")
    whole = _with_credentials(parts)
    if parts.scheme in _POSTGRES:  # `geturl` would spoil one without a host
        return Address(url if whole == parts else whole.geturl(), redacted(url), "postgresql")
    return _redis(whole, redacted(url))


def _redis(parts: SplitResult, shown: str) -> Address:
    scheme, _, kind = parts.scheme.replace("valkey", "redis").partition("+")
    options = dict(parse_qsl(parts.query))
    cluster = options.pop("cluster", "true" if kind else "false")
    ttl = options.pop("ttl", None)
    if ttl is not None and not (ttl.isdecimal() and int(ttl)):
        raise SettingError(f"shared cache {shown}: `ttl` is a whole number of days")
    url = parts._replace(scheme=scheme, query=urlencode(options)).geturl()
    engine = "redis cluster" if cluster in ("true", "yes", "1") else "redis"
    return Address(url, shown, engine, int(ttl) * _DAY if ttl else None)


def _with_credentials(parts: SplitResult) -> SplitResult:
    """Those of the environment, where the URL has none."""
    user, password = os.environ.get(SHARED_USER, ""), os.environ.get(SHARED_PASSWORD, "")
    if parts.username or parts.password or not (user or password):
        return parts
    host = parts.netloc.rpartition("@")[2]
    secret = f":{quote(password, safe='')}" if password else ""
    return parts._replace(netloc=f"{quote(user, safe='')}{secret}@{host}")


def private_key() -> bytes:
    """The user's private key; empty for none. Raises SettingError for one that could be guessed."""
    key = os.environ.get(SHARED_KEY, "").strip()
    if key and len(key) < KEY_CHARACTERS:
        raise SettingError(
            f"{SHARED_KEY} is shorter than {KEY_CHARACTERS} characters; make one by `openssl rand -hex 32`"
        )
    return key.encode("utf-8", "surrogateescape")
