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
