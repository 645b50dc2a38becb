"""Page layouts and kinds of memory."""

from __future__ import annotations

from enum import Enum


class Layout(Enum):
    """The page layout of a tensor."""

    TILE = "tile"
    ROW_MAJOR = "row_major"


class Memory(Enum):
    """Where a tensor lives, as far as an op cares."""

    DEVICE = "device"
    HOST = "host"


LAYOUTS_WANTED = "ttcodegen.layouts_wanted"
"""Marks a module whose TTNN ops, there already or made by the next pass, are to get layouts."""
