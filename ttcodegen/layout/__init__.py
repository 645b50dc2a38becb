"""Layouts of tensors on grids of cores, and device grids.

- `collapse`: Collapse of tensor dimensions to a physical shape, and its inverse
- `device`: Device grids, L1 banks, and conversion of tensor data to shards
- `placements`: Tiled shapes, and bytes of tensors in memory
- `tensor_layout`: Tensor layouts: the core and address of each element

    layout = TensorLayout.create((3, 64, 128), "f32").parallelize((3, 2)).tilize()
    print(layout)                               # the encoding, as #ttcore.metal_layout
    found = layout.locate((1, 6, 100))          # core, position in its shard, offset
    layout.index_at(found.core, found.offset)   # (1, 6, 100)

docs/layouts.md walks through it.
"""

from ttcodegen.layout.device import Device, from_shards, to_shards
from ttcodegen.layout.tensor_layout import Location, TensorLayout

__all__ = ["Device", "Location", "TensorLayout", "from_shards", "to_shards"]
