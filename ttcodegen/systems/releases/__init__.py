"""The releases of tt-metal that C++ is written for, each a table of where it differs."""

from __future__ import annotations

from ttcodegen.systems.releases import tt_metal_0_70_1, tt_metal_0_81_1
from ttcodegen.systems.releases.release import Release

_KNOWN = {each.RELEASE.name: each.RELEASE for each in (tt_metal_0_70_1, tt_metal_0_81_1)}

RELEASES = tuple(_KNOWN)
"""The names of all of them, the oldest first."""

CATALOGUE_RELEASE = tt_metal_0_70_1.RELEASE
"""The one whose calls the catalogue and the tables of the dialects state."""

DEFAULT_RELEASE = RELEASES[-1]
"""The one that is written for unless another is named: the newest."""

PARAMETERS = tt_metal_0_70_1.PARAMETERS
"""The names of parameters as the catalogue has them, by the last part of a function's name."""


def release_named(name: str) -> Release:
    """The release of that name; raises KeyError if it is not known."""
    return _KNOWN[name]
