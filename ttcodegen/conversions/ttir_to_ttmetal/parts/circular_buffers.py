"""The circular buffers of a program: how many tiles each has room for, and what they are called.

Everything that a kernel calls after a tensor is the tensor's name with an ending (`x_address`,
`x_layout`, `x_tensor`, `x_elements`) or with the prefix `cb_`, with which no name of a tensor
begins: so none collides with what the kernel or the device's API calls something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.dialects.ttmetal.programs import CircularBuffer, NamedConstant
from ttcodegen.dialects.ttmetal.tuning import Name, Size, names_in
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.emitc.identifiers import NameScope
from ttcodegen.layout.tiled_shape import tile_bytes_of

DOUBLE = 2
"""Tiles of a circular buffer, so that one is filled while the other is read."""
BUFFER_DEPTH = Name("buffer_depth")
"""The setting for the tiles of a circular buffer; `DOUBLE` by default."""
_WITHOUT_TENSOR = frozenset(
    [
        *("elements", "greatest", "inverse", "later", "left", "order", "partial", "reduced"),
        *("factor", "latest", "products", "right", "scaler", "scores", "seen", "sum", "weights"),
    ]
)
"""Circular buffers that do not hold a tensor as stored in DRAM."""


@dataclass
class CircularBuffers:
    """The circular buffers of a program under construction, in the order of their indices.

    A circular buffer is known by its name, which is the tensor's if no other one has it.
    """

    names: Mapping[SSAValue, str]
    """What tensors are called: identifiers, all different."""
    declare: Callable[[str, int, str], Name]
    """Declares a tuning knob of the program: its name, what it is at first, a remark."""
    _buffers: list[CircularBuffer] = field(default_factory=list[CircularBuffer], init=False)
    _scope: NameScope = field(init=False)
    _has_depth: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._scope = NameScope([*_WITHOUT_TENSOR, *_names_after_cb()])

    def __iter__(self) -> Iterator[CircularBuffer]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, index: int) -> CircularBuffer:
        return self._buffers[index]

    def add(self, name: str, data_type: DataType, pages: Size) -> str:
        """A circular buffer that holds no tensor; gives its name."""
        assert name in _WITHOUT_TENSOR
        return self._add(name, data_type, pages)

    def add_tensor(self, value: SSAValue, pages: Size = BUFFER_DEPTH) -> str:
        """A circular buffer for tiles of a tensor; gives its name."""
        return self.add_value(value, declared_data_type(value), pages)

    def add_value(self, value: SSAValue, data_type: DataType, pages: Size) -> str:
        """A circular buffer for tiles of a value that never leaves the core; gives its name."""
        name = self.names[value]
        name = f"{name}_tiles" if name in _WITHOUT_TENSOR else name
        return self._add(self._scope.unique(name), data_type, pages)

    def add_kept(self, buffer: str, slots: int) -> str:
        """Room for tiles that are kept to go through another circular buffer; gives its name."""
        [kept] = [b for b in self._buffers if b.name == buffer]
        return self._add(self._scope.unique(f"{buffer}_kept"), kept.data_type, slots)

    def wide(self, copied: Iterable[str]) -> tuple[int, ...]:
        """The indices of those of 32-bit elements among the circular buffers whose tiles
        `copy_tile` brings to the registers at full width; what the matrix engine reads is cut to
        19 bits."""
        names = set(copied)
        found = (b for b in self._buffers if TILE_FORMATS[b.data_type.mlir].bits == 32)
        return tuple(b.index for b in found if b.name in names)

    def constants(self, names: Iterable[str]) -> tuple[NamedConstant, ...]:
        """The compile-time arguments for circular buffers of a kernel."""
        used = set(names)
        return tuple(NamedConstant(b.constant, b.index) for b in self._buffers if b.name in used)

    def _add(self, name: str, data_type: DataType, pages: Size) -> str:
        if BUFFER_DEPTH.name in names_in(pages):
            self._declare_depth()
        index = len(self._buffers)
        self._buffers.append(
            CircularBuffer(index, name, data_type, pages, tile_bytes_of(data_type))
        )
        return name

    def _declare_depth(self) -> None:
        """Makes the setting for the depth of circular buffers when the first needs it."""
        if not self._has_depth:
            self._has_depth = True
            self.declare(
                BUFFER_DEPTH.name,
                DOUBLE,
                "Tiles in each circular buffer: with 2, the next tile is read while the last is "
                "computed; 1 saves L1 but serializes them; more hides variations in latency.",
            )


@cache
def _names_after_cb() -> frozenset[str]:
    """What may not follow `cb_` in the name of a circular buffer: functions begin in this way."""
    found = (name.removeprefix("cb_") for name in kernel_ops() if name.startswith("cb_"))
    return frozenset(found)
