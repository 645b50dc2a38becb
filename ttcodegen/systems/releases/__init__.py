"""Supported releases of tt-metal, as tables of differences.

- `release`: Release tables: differences to the calls in the catalogue
- `tt_metal_0_70_1`: tt-metal 0.70.1: the release of the calls in the catalogue
- `tt_metal_0_81_1`: tt-metal 0.81.1: differences to 0.70.1
"""

from __future__ import annotations

from ttcodegen.systems.releases import tt_metal_0_70_1, tt_metal_0_81_1
from ttcodegen.systems.releases.release import Release

_KNOWN = {each.RELEASE.name: each.RELEASE for each in (tt_metal_0_70_1, tt_metal_0_81_1)}

RELEASES = tuple(_KNOWN)
"""Names of the supported releases, the oldest first."""

CATALOGUE_RELEASE = tt_metal_0_70_1.RELEASE
"""Release of the calls in the catalogue and the dialect tables."""

DEFAULT_RELEASE = RELEASES[-1]
"""Default target release: the newest."""

PARAMETERS = tt_metal_0_70_1.PARAMETERS
"""Parameter names in the catalogue, by the last part of a function's name."""


def l1_base(arch: str) -> int:
    """Returns the L1 address from which on all releases leave memory to programs."""
    return max(each.l1_bases[arch] for each in _KNOWN.values())


def release_named(name: str) -> Release:
    """Returns the release of that name; raises KeyError if it is not known."""
    return _KNOWN[name]
