"""Versions of the specification of TT-Lang, and the features that they added."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "0.22"
"""The newest version that programs are read in; what it renamed is read in both spellings."""


@dataclass(frozen=True)
class Feature:
    """A feature of the language since the version 0.17."""

    version: str
    """The version that added it, or the newest if none says so."""
    name: str
    is_compiled: bool = True
    """True if the compiler takes it, as the simulator does."""


FEATURES: tuple[Feature, ...] = (
    Feature("0.18", "`ttl.raw_element_read`, `raw_element_write`, `>` and `<` of elements"),
    Feature("0.22", "`ttl.make_dfb`"),
    Feature("0.22", "`ttl.make_tensor_backed_dfb` of whole shards, `publish`"),
    Feature("0.22", "`byte_offset` and parts of shards of `ttl.make_tensor_backed_dfb`", False),
    Feature("0.22", "`ttl.make_dfb_allocation_group`, `allocation_group=`", False),
    Feature("0.22", "`ttl.block.fill(layout=, dtype=, tile=)`"),
    Feature("0.22", "`ttl.math.gt`, `ge`, `lt`, `le`, `eq`, `ne`"),
    Feature("0.19", "operations with one body for all kernels"),
    Feature("0.19", "operations that are made of others"),
    Feature("0.20", "`ttl.math.exp(scale=, approx=, skip_clamp_check=)`"),
    Feature("0.20", "`ttl.math.exp(iterations=)` other than 8", False),
    Feature("0.21", "`ttl.read_index`"),
    Feature("0.22", "replacing a block that was waited for, after reading it"),
    Feature("0.22", "`ttnn.split_work_to_cores`, `num_cores_to_corerangeset`, `TensorSpec`, "
            "`is_sharded`, `get_memory_config`"),
    Feature("0.22", "`ttnn.NdShardSpec`", False),
)  # fmt: skip


def overview() -> str:
    """The features by version, and whether the simulator and the compiler take them."""
    lines = [
        f"TT-Lang, specification {VERSION}: programs of all versions up to it are read.",
        "",
        "version  simulator  compiler  feature",
        "0.17     yes        yes       all of it, but for grids of several chips",
    ]
    for each in FEATURES:
        made = "yes" if each.is_compiled else "no"
        lines.append(f"{each.version}     yes        {made:<9} {each.name.replace('`', '')}")
    return "\n".join(lines)
