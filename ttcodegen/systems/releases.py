"""The releases of tt-metal that C++ is written for."""

from __future__ import annotations

DEFAULT_RELEASE = "0.70.1"

RELEASES = (DEFAULT_RELEASE,)
"""All of them. Signatures, headers and rules that the code cites are those of the default one."""
