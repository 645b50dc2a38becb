"""How exact the products of the matrix engine are."""

from __future__ import annotations

from xdsl.utils.str_enum import StrEnum


class MathFidelity(StrEnum):
    """How many passes the matrix engine multiplies in: how exact products are."""

    LOFI = "lofi"
    HIFI2 = "hifi2"
    HIFI3 = "hifi3"
    HIFI4 = "hifi4"

    @property
    def cpp(self) -> str:
        """The enumerator of `tt::tt_metal::MathFidelity`."""
        return {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}[self.value]
