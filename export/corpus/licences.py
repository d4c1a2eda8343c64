"""Which licences a package may have: permissive ones only. What is not understood is not permissive."""

from __future__ import annotations

import re
from collections.abc import Iterable

PERMISSIVE = frozenset(
    """
    0BSD AFL-2.0 AFL-2.1 AFL-3.0 Apache-1.1 Apache-2.0 Artistic-2.0 Beerware BlueOak-1.0.0 BSD-1-Clause BSD-2-Clause
    BSD-3-Clause BSD-4-Clause BSL-1.0 bzip2-1.0.6 CC0-1.0 curl FTL HPND ICU ISC libpng-2.0 Libpng MIT MIT-0
    MIT-CMU MirOS NCSA NTP OpenSSL PHP-3.0 PHP-3.01 PostgreSQL PSF-2.0 Python-2.0 Ruby TCL Unicode-3.0 Unicode-DFS-2016
    Unlicense UPL-1.0 Vim W3C WTFPL X11 Zlib ZPL-2.0 ZPL-2.1
    """.split()
)
"""SPDX identifiers. Copyleft of any strength (GPL, LGPL, AGPL, MPL, EPL, CDDL, CC-BY-SA) is left out."""

_BY_LOWER = {name.lower(): name for name in PERMISSIVE}

_SPOKEN = {
    "apache": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache2": "Apache-2.0",
    "apache license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "apache-2+": "Apache-2.0",
    "apache-2.0+": "Apache-2.0",
    "asl 2.0": "Apache-2.0",
    "asl2": "Apache-2.0",
    "boost": "BSL-1.0",
    "boost-software-license-1.0": "BSL-1.0",
    "bsl-1": "BSL-1.0",
    "boost-1.0": "BSL-1.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd 2-clause": "BSD-2-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "bsd (2 clause)": "BSD-2-Clause",
    "freebsd": "BSD-2-Clause",
    "bsd2": "BSD-2-Clause",
    "bsd-2": "BSD-2-Clause",
    "bsd-2-clauses": "BSD-2-Clause",
    "3c-bsd": "BSD-3-Clause",
    "bsd3": "BSD-3-Clause",
    "bsd-c3": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause",
    "bsd-3-clause-go": "BSD-3-Clause",
    "bsd-3-clause-google": "BSD-3-Clause",
    "bsd-3-clause-generic": "BSD-3-Clause",
    "go": "BSD-3-Clause",
    "bsd-3-clauses": "BSD-3-Clause",
    "bsd-like": "BSD-3-Clause",
    "bsd-style": "BSD-3-Clause",
    "bsd style": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "new bsd license": "BSD-3-Clause",
    "modified bsd": "BSD-3-Clause",
    "simplified bsd": "BSD-2-Clause",
    "3-clause bsd": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "cc0": "CC0-1.0",
    "expat": "MIT",
    "expat license": "MIT",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mit-license": "MIT",
    "mit-style": "MIT",
    "mit/x11": "MIT",
    "the mit license": "MIT",
    "the mit license (mit)": "MIT",
    "mit license (mit)": "MIT",
    "psf": "PSF-2.0",
    "psf license": "PSF-2.0",
    "psf-2": "PSF-2.0",
    "python software foundation license": "PSF-2.0",
    "public-domain": "CC0-1.0",
    "public domain": "CC0-1.0",
    "the unlicense (unlicense)": "Unlicense",
    "zlib/libpng": "Zlib",
    "zlib/libpng license": "Zlib",
    "zope public license": "ZPL-2.1",
}
"""Short free-text names, as package metadata and Debian copyright files write them."""


def spdx(name: str) -> str | None:
    """The SPDX identifier of one licence name if it is permissive, else None."""
    key = " ".join(name.strip().strip("\"'").lower().split())
    return _BY_LOWER.get(key) or _SPOKEN.get(key)


def permitted(expression: str) -> str | None:
    """`expression` in SPDX identifiers if it lets us use the code under permissive terms, else None.

    Understands `A OR B` (one permissive side is enough), `A AND B` (each has to be), parentheses, and Debian's
    lower-case `or` / `and`. `WITH` exceptions only ever loosen a licence, so they are dropped.
    """
    whole = spdx(expression)
    if whole:
        return whole
    flat = re.sub(r"[()]", " ", expression)
    flat = re.sub(r"\s+with\s+[\w.-]+(\s+exception)?", "", flat, flags=re.IGNORECASE)
    allowed = []
    for alternative in re.split(r"\s+or\s+|\s*\|\s*", flat, flags=re.IGNORECASE):
        parts = [spdx(part) for part in re.split(r",?\s+and\s+|\s*&\s*", alternative, flags=re.IGNORECASE)]
        if all(parts):
            allowed.append(" AND ".join(sorted({part for part in parts if part})))
    if (
        "(" in expression
        and re.search(r"\band\b", expression, re.IGNORECASE)
        and len(allowed) < flat.lower().count(" or ") + 1
    ):
        return None  # nested groups would need a real parser; refuse rather than misread
    return sorted(allowed)[0] if allowed else None


def from_metadata(lines: Iterable[str]) -> str | None:
    """The licence of a Python package by its METADATA lines: the expression, else classifiers, else a short name."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line.strip():
            break
        key, _, value = line.partition(":")
        fields.setdefault(key.lower(), []).append(value.strip())
    if expressions := fields.get("license-expression"):
        return permitted(expressions[0])
    classified = [c.rpartition("::")[2].strip() for c in fields.get("classifier", []) if c.startswith("License ::")]
    named = [c for c in classified if c != "OSI Approved"]
    if named:
        known = [spdx(c) for c in named]
        return " AND ".join(sorted({k for k in known if k})) if all(known) else None
    if licences := fields.get("license"):
        return permitted(licences[0])
    return None


def from_package_json(manifest: object) -> str | None:
    """The licence of an npm package by its package.json (`license`, or the old `licenses` list)."""
    if not isinstance(manifest, dict):
        return None
    stated = manifest.get("license") or manifest.get("licenses")
    if isinstance(stated, list):
        stated = " OR ".join(str(entry.get("type") if isinstance(entry, dict) else entry) for entry in stated)
    if isinstance(stated, dict):
        stated = stated.get("type")
    return permitted(stated) if isinstance(stated, str) else None
