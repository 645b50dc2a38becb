"""How the C++ of host programs gives the shards of tensors."""

from __future__ import annotations

from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.foundation.diagnostics import CompileError


def shards_text(shards: Shards, memory_layout: str) -> str:
    """The shards of a tensor as an initializer of `support::Shards`.

    Raises:
        CompileError: if its cores are no rectangle.
    """
    if len(shards.core_ranges) != 1:
        raise CompileError(
            "programs take and give tensors whose shards are on one rectangle of cores",
            remedy="choose a core grid, or one CoreRange",
        )
    (cores,) = shards.core_ranges
    sizes = ", ".join(map(str, shards.shape))
    places = (cores.first_column, cores.first_row, cores.last_column, cores.last_row)
    return (
        f"{{tt::tt_metal::TensorMemoryLayout::{memory_layout.upper()}, {{{sizes}}}, "
        f"{{{', '.join(map(str, places))}}}, "
        f"tt::tt_metal::ShardOrientation::{shards.orientation.name}}}"
    )
