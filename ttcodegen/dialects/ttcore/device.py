"""`#ttcore.device`: the device as one grid, its mesh, and traced modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.attribute_syntax import affine_map_text, parse_affine_map
from ttcodegen.dialects.ttcore.layouts import Grid, GridAttr, Shape, parse_shape, shape_text
from ttcodegen.dialects.ttcore.tile import Topology, TopologyAttr
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.cards import MOST_CHIPS

# `#ttcore.device`: a view of the system as one grid.
#
#     #ttcore.device<workerGrid = #ttcore.grid<8x16,
#         (d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0, d1 mod 8)>,
#         meshShape = 1x2, chipIds = [0, 1]>
#
# Maps of L1 and DRAM, `l1Map` and `dramMap`, are optional; `ttcodegen.layout.Device` creates them.

MEMORY_COORDINATES = 4
"""Number of results of memory maps: chip, row and column (or 0 and bank), byte."""


@dataclass(frozen=True)
class DeviceDescription:
    """Grid that programs see, and its mapping to chips.

    `l1_map` maps a grid position and a byte of the shard to chip, row, column and address; its
    symbol is the buffer address. `dram_map` maps the same to chip, 0, bank and address; its symbols
    are the shape of the grid, that of a shard, the page size, the buffer address and the element
    size.
    """

    worker_grid: Grid
    mesh_shape: Shape
    chip_ids: Shape
    dram_grid: Grid | None = None
    l1_map: AffineMap | None = None
    dram_map: AffineMap | None = None
    mesh_topology: tuple[Topology, ...] = ()


class _DeviceData(Data[DeviceDescription]):
    """Base of attributes and types with a device description."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DeviceDescription:
        return _parse_device(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(device_text(self.data))

    def verify(self) -> None:
        _verify_device(self.data)


@irdl_attr_definition
class DeviceAttr(_DeviceData):
    """`#ttcore.device<workerGrid = ..., meshShape = ..., chipIds = [...]>`."""

    name = "ttcore.device"


@irdl_attr_definition
class DeviceType(_DeviceData, TypeAttribute):
    """`!ttcore.device<...>`: handle of an open device, used until 2024."""

    name = "ttcore.device"


def _verify_device(device: DeviceDescription) -> None:
    grids = [device.worker_grid, *([] if device.dram_grid is None else [device.dram_grid])]
    for grid in grids:
        if min(grid.shape, default=1) < 1:
            raise VerifyException(f"a grid has cores, found {shape_text(grid.shape)}")
    if device.dram_grid is not None and len(device.dram_grid.shape) != 2:
        raise VerifyException(
            f"the grid of DRAM has two dimensions, found {shape_text(device.dram_grid.shape)}"
        )
    if len(device.mesh_topology) not in (0, len(device.mesh_shape)):
        raise VerifyException(
            f"a mesh of {len(device.mesh_shape)} dimensions has {len(device.mesh_topology)} "
            "topologies"
        )
    chips = prod(device.mesh_shape)
    if chips != len(device.chip_ids):
        raise VerifyException(
            f"a mesh of the shape {shape_text(device.mesh_shape)} has {chips} chips, but "
            f"{len(device.chip_ids)} are listed"
        )
    mapping = device.worker_grid.mapping
    if mapping is not None and len(mapping.results) != 3:
        raise VerifyException(
            "the map of the grid of workers leads to chip, row and column, but has "
            f"{len(mapping.results)} results"
        )
    for name, map_ in (("l1Map", device.l1_map), ("dramMap", device.dram_map)):
        if map_ is not None and len(map_.results) != MEMORY_COORDINATES:
            raise VerifyException(
                f"{name} has {MEMORY_COORDINATES} results, found {len(map_.results)}"
            )


def device_text(device: DeviceDescription) -> str:
    """Returns the text after `#ttcore.device`."""
    words = [f"workerGrid = #ttcore.grid{device.worker_grid}"]
    if device.dram_grid is not None:
        words.append(f"dramGrid = #ttcore.grid{device.dram_grid}")
    for name, map_ in (("l1Map", device.l1_map), ("dramMap", device.dram_map)):
        if map_ is not None:
            words.append(f"{name} = {affine_map_text(map_)}")
    words.append(f"meshShape = {shape_text(device.mesh_shape)}")
    words.append(f"chipIds = [{', '.join(map(str, device.chip_ids))}]")
    if device.mesh_topology:
        topologies = ", ".join(topology.value for topology in device.mesh_topology)
        words.append(f"meshTopology = [{topologies}]")
    return f"<{', '.join(words)}>"


def _parse_device(parser: AttrParser) -> DeviceDescription:
    position = parser.pos
    grids: dict[str, Grid] = {}
    maps: dict[str, AffineMap] = {}
    mesh_shape: Shape | None = None
    chip_ids: Shape = ()
    topology: tuple[Topology, ...] = ()
    with parser.in_angle_brackets():
        nested = parser.parse_optional_punctuation("<") is not None
        while True:
            name = parser.parse_optional_identifier()
            if name is not None:
                parser.parse_punctuation("=")
            match name:
                case "workerGrid" | "dramGrid":
                    grids[name] = _parse_grid(parser)
                case "l1Map" | "dramMap":
                    maps[name] = parse_affine_map(parser)
                case "meshShape":
                    mesh_shape = parse_shape(parser)
                case "chipIds":
                    chip_ids = _parse_chip_ids(parser)
                case "meshTopology":
                    topology = _parse_topologies(parser)
                case None if "workerGrid" not in grids:  # 2024: `<grid, [chips]>`
                    grids["workerGrid"] = _parse_grid(parser)
                case None:
                    chip_ids = _parse_chip_ids(parser)
                case _:
                    parser.raise_error(f"a device has no '{name}'")
            if parser.parse_optional_punctuation(",") is None:
                break
        if nested:
            parser.parse_punctuation(">")
    if "workerGrid" not in grids:
        parser.raise_error("a device has a workerGrid", position)
    return DeviceDescription(
        grids["workerGrid"],
        # Texts of 2024 only list the chips of a device.
        mesh_shape if mesh_shape is not None else (max(1, len(chip_ids)),),
        chip_ids,
        grids.get("dramGrid"),
        maps.get("l1Map"),
        maps.get("dramMap"),
        topology,
    )


def _parse_grid(parser: AttrParser) -> Grid:
    attribute = parser.parse_optional_attribute()
    if attribute is None:
        return GridAttr.parse_parameter(parser)
    if not isinstance(attribute, GridAttr):
        parser.raise_error("expected a #ttcore.grid")
    return attribute.data


def _parse_chip_ids(parser: AttrParser) -> Shape:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def _parse_topologies(parser: AttrParser) -> tuple[Topology, ...]:
    return tuple(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: TopologyAttr.parse_word(parser)
        )
    )


@dataclass(frozen=True)
class Mesh:
    """A named grid of devices."""

    name: str
    shape: Shape

    def __str__(self) -> str:
        return f'<"{self.name}" = {shape_text(self.shape)}>'


def _parse_mesh(parser: AttrParser) -> Mesh:
    with parser.in_angle_brackets():
        name = parser.parse_str_literal()
        parser.parse_punctuation("=")
        return Mesh(name, parse_shape(parser))


@irdl_attr_definition
class MeshAttr(Data[Mesh]):
    """`#ttcore.mesh<"mesh" = 1x2>`."""

    name = "ttcore.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Mesh:
        return _parse_mesh(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


@irdl_attr_definition
class MeshesAttr(Data[tuple[Mesh, ...]]):
    """`#ttcore.meshes<[<"mesh" = 1x2>]>`."""

    name = "ttcore.meshes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Mesh, ...]:
        with parser.in_angle_brackets():
            meshes = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse_mesh(parser)
            )
        return tuple(meshes)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")


@irdl_attr_definition
class MeshTopologyAttr(Data[tuple[Topology, ...]]):
    """`#ttcore.mesh_topology<[linear, ring]>`."""

    name = "ttcore.mesh_topology"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Topology, ...]:
        with parser.in_angle_brackets():
            return _parse_topologies(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(topology.value for topology in self.data)}]>")


@irdl_attr_definition
class TensorMeshAttr(ParametrizedAttribute):
    """`#ttcore.tensor_mesh<"mesh">`: encoding of tensors that are sharded over a mesh."""

    name = "ttcore.tensor_mesh"
    mesh: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_str_literal())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_string_literal(self.mesh.data)
        printer.print_string(">")


class _CoordinatesAttr(Data[Shape]):
    """Base of attributes of numbers joined by `x`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        enclosed = parser.parse_optional_punctuation("<") is not None
        shape = parse_shape(parser)
        if enclosed:
            parser.parse_punctuation(">")
        return shape

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{shape_text(self.data)}>")


@irdl_attr_definition
class CoreCoordAttr(_CoordinatesAttr):
    """`#ttcore.core_coord<3x4>`: row and column of a core."""

    name = "ttcore.core_coord"


@irdl_attr_definition
class TileSizeAttr(_CoordinatesAttr):
    """`#ttcore.tile_size<32x32>`: rows and columns of a tile."""

    name = "ttcore.tile_size"


@irdl_attr_definition
class ChipCoordAttr(_CoordinatesAttr):
    """`#ttcore.chip_coord<0x0x0x0>`: rack, shelf, row and column of a chip."""

    name = "ttcore.chip_coord"


DEVICE_ATTRIBUTES: list[type[Attribute]] = [
    ChipCoordAttr,
    CoreCoordAttr,
    DeviceAttr,
    DeviceType,
    MeshAttr,
    MeshTopologyAttr,
    MeshesAttr,
    TensorMeshAttr,
    TileSizeAttr,
]


# The mesh of a module, and the devices that participate in an op.

MESHES = "ttcore.meshes"
"""Module attribute with its meshes."""
HOSTS = "ttcodegen.hosts"
"""Module attribute with the rows and columns of hosts in its mesh."""

MeshShape = tuple[int, int]
"""Rows and columns of devices."""

ONE_CHIP: MeshShape = (1, 1)


def two_dimensional(shape: Sequence[int]) -> MeshShape | None:
    """Returns a mesh as rows and columns, or None if it has more dimensions.

    One dimension is a row; leading dimensions of size 1 are dropped.
    """
    sizes = list(shape)
    while len(sizes) > 2 and sizes[0] == 1:
        del sizes[0]
    if len(sizes) > 2:
        return None
    rows, columns = (1, 1, *sizes)[-2:]
    return rows, columns


def sizes_in(text: str) -> tuple[int, ...]:
    """Parses `2,4` or `2x4`; raises CompileError for other texts."""
    if re.fullmatch(r"\d{1,9}([,x]\d{1,9})*", text) is None:
        raise CompileError(
            f"'{text}' is no mesh of chips", remedy="give rows and columns, such as 2x4"
        )
    return tuple(map(int, re.split("[,x]", text)))


def require_possible(shape: Sequence[int], place: Operation | None = None) -> None:
    """Raises CompileError for a mesh that is not two-dimensional, or larger than any system."""
    if two_dimensional(shape) is None or any(size < 1 for size in shape):
        raise CompileError(
            f"a mesh of {shape_text(shape)} chips is not supported",
            place,
            remedy="a mesh has rows and columns of chips",
        )
    if prod(shape) > MOST_CHIPS:
        raise CompileError(
            f"a mesh of {shape_text(shape)} has more chips than any system",
            place,
            remedy=f"the largest systems have {MOST_CHIPS} chips, such as 32x4",
        )


def declared_mesh(op: Operation) -> MeshShape:
    """Returns the mesh that an op or an enclosing module declares: the first with several devices.

    One chip if none is declared, or only one that is not two-dimensional.

    Raises:
        CompileError: if it has more chips than any system, or none.
    """
    named = shape_in(op)
    around: Operation | None = op
    while not named and around is not None:
        meshes = around.attributes.get(MESHES)
        if isinstance(meshes, MeshesAttr):
            named = next((mesh.shape for mesh in meshes.data if prod(mesh.shape) > 1), ())
        around = around.parent_op()
    if prod(named) > MOST_CHIPS or any(size < 1 for size in named):
        require_possible(named, op)
    return two_dimensional(named) or ONE_CHIP


def declared_hosts(op: Operation) -> MeshShape:
    """Rows and columns of the hosts that have the mesh of the module around an op."""
    around: Operation | None = op
    while around is not None:
        hosts = around.attributes.get(HOSTS)
        if isinstance(hosts, DenseArrayBase):
            rows, columns = map(int, hosts.get_values())
            return rows, columns
        around = around.parent_op()
    return ONE_CHIP


def set_hosts(module: ModuleOp, hosts: MeshShape) -> None:
    """Makes a module say which hosts have its mesh."""
    module.attributes[HOSTS] = DenseArrayBase.from_list(i64, hosts)


def shape_in(op: Operation) -> tuple[int, ...]:
    """Returns the mesh shape that an op itself declares, or `()`."""
    mesh = op.properties.get("mesh_shape", op.attributes.get("mesh_shape"))
    if mesh is None:
        return ()
    return tuple(map(int, re.findall(r"-?\d+", str(mesh).rpartition(":")[2])))


def names_several_chips(module: ModuleOp) -> bool:
    """Returns whether a module declares a mesh of several devices.

    Other compilers print a mesh of one device where none was given.
    """
    meshes = module.attributes.get(MESHES)
    return isinstance(meshes, MeshesAttr) and any(prod(mesh.shape) > 1 for mesh in meshes.data)


def chips_of(attributes: Mapping[str, Any]) -> int:
    """Returns the number of devices in the mesh of a collective; 1 if it declares none."""
    return prod(attributes["mesh_shape"] or ())


def set_mesh(module: ModuleOp, shape: Sequence[int]) -> None:
    """Declares the mesh of a module; raises CompileError for one that no system has."""
    require_possible(shape, module)
    module.attributes[MESHES] = MeshesAttr((Mesh("mesh", tuple(shape)),))


def groups_along(mesh: MeshShape, axis: int) -> list[list[int]]:
    """Returns the device groups of a collective along an axis, numbered in row-major order.

    Axis 1 groups the devices of each row, axis 0 those of each column.
    """
    rows, columns = mesh
    if axis == 1:
        return [[row * columns + column for column in range(columns)] for row in range(rows)]
    return [[row * columns + column for row in range(rows)] for column in range(columns)]


def parts_of(shape: Sequence[int], placements: Sequence[int], mesh: MeshShape) -> list[int]:
    """Returns the number of shards per dimension of a tensor, given the sharded dimension per
    axis."""
    counts = [1] * len(shape)
    for axis, dim in enumerate(placements):
        if dim >= 0:
            counts[dim] *= mesh[axis]
    return counts


def coordinates(mesh: MeshShape) -> Iterator[tuple[int, int]]:
    """Yields row and column of each device in row-major order."""
    yield from product(range(mesh[0]), range(mesh[1]))


# Allocations at fixed addresses, as in modules of 2024.

_HOST_MEMORY = re.compile(r"<\s*system(_memory)?\s*>")


def allocation_fault(op: Operation) -> str | None:
    """Returns the error of an allocating op (`AllocOp::verify` of tt-mlir), or None.

    Device addresses are chosen at compile time, host addresses at run time.
    """
    said = {**op.attributes, **op.properties}
    size, address = said.get("size"), said.get("address")
    for name, number in (("size", size), ("address", address)):
        if isinstance(number, IntegerAttr) and not 0 <= number.value.data < 1 << 64:
            what = f"'{name}' is a number of 64 bits without a sign"
            return f"has no such memory: {what}, found {number.value.data}"
    space = said.get("memory_space", said.get("buffer_type"))
    if isinstance(size, IntegerAttr) and size.value.data == 0:
        return f"allocates some bytes, found a size of {size.value.data}"
    if not isinstance(address, IntegerAttr) or space is None:
        return None
    is_host = _HOST_MEMORY.search(str(space)) is not None
    if is_host == (address.value.data == 0):
        return None
    expected = "0 on the host" if is_host else "other than 0 on the device"
    return f"has an address {expected}, found {address.value.data}"


def expect_allocation(op: Operation) -> None:
    """Raises VerifyException for an op with an invalid allocation."""
    if (fault := allocation_fault(op)) is not None:
        raise VerifyException(f"{op.name} {fault}")


# Modules whose calls are captured as device traces and replayed.

_TRACED = "ttcodegen.traced"
"""Module attribute of traced modules."""


def mark_traced(module: ModuleOp) -> None:
    """Makes the lowering choose calls that a trace can capture."""
    module.attributes[_TRACED] = UnitAttr()


def is_traced(op: Operation) -> bool:
    """Returns whether an op is in a module that is captured as a trace."""
    around: Operation | None = op
    while around is not None:
        if _TRACED in around.attributes:
            return True
        around = around.parent_op()
    return False
