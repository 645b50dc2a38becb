"""`ttl.block`: functions of whole blocks."""

from ttcodegen.lang.simulator.functions import (
    broadcast,
    fill,
    mask,
    mask_posinf,
    squeeze,
    transpose,
    unsqueeze,
    where,
)

__all__ = [
    "broadcast",
    "fill",
    "mask",
    "mask_posinf",
    "squeeze",
    "transpose",
    "unsqueeze",
    "where",
]
