"""Layouts of tensors on grids of cores, and devices as grids.

    layout = TensorLayout.create((3, 64, 128), "f32").parallelize((3, 2)).tilize()
    print(layout)                               # the encoding, as #ttcore.metal_layout
    place = layout.locate((1, 6, 100))          # core, place in the core's shard, offset
    layout.index_at(place.core, place.offset)   # (1, 6, 100)

docs/layouts.md walks through it.
"""

from ttcodegen.layout.device import Device, from_shards, to_shards
from ttcodegen.layout.tensor_layout import Location, TensorLayout

__all__ = ["Device", "Location", "TensorLayout", "from_shards", "to_shards"]
