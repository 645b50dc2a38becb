"""`ttir.generic`: work for a grid of cores, with what each core does as a region.

    ttir.generic {grid = #ttcore.grid<8x8>, indexing_maps = [#map, #map],
                  iterator_types = [#parallel, #parallel], threads = [#ttir.thread<compute>]}
        ins(%a : tensor<...>) outs(%b : tensor<...>) {
      ^compute(%in: memref<...>, %out: memref<...>):
        ...
        ttir.yield
    } : tensor<...>

Its regions have TTIR ops on whole tensors, as created by `ttir-to-ttir-generic`, or ops on tiles,
listed in TILE_OPS. The latter are only parsed, verified and printed, so that such modules can be
inspected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    ContainerType,
    DenseArrayBase,
    SymbolRefAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Data, Operation, OpTraits, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.ttcore.layouts import GridAttr
from ttcodegen.dialects.ttcore.tile import IteratorType, IteratorTypeAttr, TileType


class RegionThread(StrEnum):
    """Processors that run a region."""

    COMPUTE = "compute"
    DATA_MOVEMENT = "datamovement"
    UNIFIED = "unified"


@dataclass(frozen=True)
class Thread:
    """A thread of `ttir.generic`; `kernel` is the function of an outlined region."""

    kind: RegionThread
    kernel: str | None = None


@irdl_attr_definition
class ThreadAttr(Data[Thread]):
    """`#ttir.thread<compute>`, `#ttir.thread<datamovement, @reader>`."""

    name = "ttir.thread"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Thread:
        with parser.in_angle_brackets():
            kind = parser.parse_str_enum(RegionThread)
            kernel: str | None = None
            if parser.parse_optional_punctuation(",") is not None:
                symbol = parser.parse_attribute()
                if not isinstance(symbol, SymbolRefAttr):
                    parser.raise_error("a thread names its kernel by its symbol")
                kernel = symbol.string_value()
        return Thread(kind, kernel)

    def print_parameter(self, printer: Printer) -> None:
        kernel = "" if self.data.kernel is None else f", @{self.data.kernel}"
        printer.print_string(f"<{self.data.kind.value}{kernel}>")


@irdl_op_definition
class GenericOp(IRDLOperation):
    """Work for a grid of cores.

    Operands are inputs, in 2025 circular buffers, and outputs, divided by `operandSegmentSizes`.
    """

    name = "ttir.generic"
    operands_ = var_operand_def()
    grid = prop_def(GridAttr)
    indexing_maps = prop_def(ArrayAttr)
    iterator_types = prop_def(ArrayAttr)
    threads = opt_prop_def(ArrayAttr)
    block_factors = opt_prop_def()
    operand_cb_mapping = opt_prop_def(DenseArrayBase)
    segments = prop_def(DenseArrayBase, prop_name="operandSegmentSizes")
    bodies = var_region_def()
    outputs = var_result_def()
    traits = traits_def(NoTerminator())

    @property
    def segment_sizes(self) -> list[int]:
        """Returns the numbers of inputs, circular buffers (if there is such a segment) and
        outputs."""
        return [int(size) for size in cast("Any", self.segments).iter_values()]

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """Returns the operands that are read."""
        return tuple(self.operands_[: self.segment_sizes[0]])

    @property
    def destinations(self) -> tuple[SSAValue, ...]:
        """Returns the operands that are written."""
        count = self.segment_sizes[-1]
        return tuple(self.operands_[len(self.operands_) - count :])

    def verify_(self) -> None:
        sizes = self.segment_sizes
        if len(sizes) not in (2, 3) or sum(sizes) != len(self.operands_):
            raise VerifyException(
                f"{self.name} has {len(self.operands_)} operands, but its segments "
                f"{' + '.join(map(str, sizes))}"
            )
        mapped = len(self.inputs) + len(self.destinations)
        maps = self.indexing_maps.data
        if maps and len(maps) != mapped:
            raise VerifyException(
                f"{self.name} has {mapped} inputs and outputs, but {len(maps)} indexing maps"
            )
        for attribute in self.iterator_types.data:
            if not isinstance(attribute, IteratorTypeAttr):
                raise VerifyException(f"{self.name}: {attribute} is no #ttcore.iterator_type")
        for attribute in maps:
            self._verify_map(attribute)
        if maps:
            self._verify_loops([m.data for m in maps if isinstance(m, AffineMapAttr)])
        self._verify_block_factors()
        self._verify_bodies(mapped)

    def _verify_map(self, attribute: Attribute) -> None:
        loops = len(self.iterator_types.data)
        if not isinstance(attribute, AffineMapAttr):
            raise VerifyException(f"{self.name}: {attribute} is no indexing map")
        if attribute.data.num_dims != loops:
            raise VerifyException(
                f"{self.name} has {loops} iterator types, but an indexing map of "
                f"{attribute.data.num_dims} dimensions"
            )

    def _verify_loops(self, maps: Sequence[AffineMap]) -> None:
        """Verifies ranks and loop sizes of tensors against the maps, and that outputs are not
        reduced over."""
        kinds = [attribute.data for attribute in self.iterator_types.data
                 if isinstance(attribute, IteratorTypeAttr)]  # fmt: skip
        sizes: dict[int, int] = {}
        for value, map_ in zip((*self.inputs, *self.destinations), maps, strict=True):
            shape = elements_of(value)
            if shape is None:
                continue
            if len(shape) != len(map_.results):
                raise VerifyException(
                    f"{self.name}: an indexing map of {len(map_.results)} results is for a tensor "
                    f"of rank {len(shape)}"
                )
            loops = [e.position if isinstance(e, AffineDimExpr) else None for e in map_.results]
            for loop, size in zip(loops, shape, strict=True):
                if loop is not None and sizes.setdefault(loop, size) != size:
                    raise VerifyException(
                        f"{self.name}: loop d{loop} has {sizes[loop]} steps for one operand, "
                        f"{size} for another"
                    )
            written = any(value is destination for destination in self.destinations)
            if written and any(p is not None and kinds[p] is IteratorType.REDUCTION for p in loops):
                raise VerifyException(f"{self.name}: outputs cannot depend on a reduction loop")

    def _verify_block_factors(self) -> None:
        factors = self.block_factors
        count: int | None = None
        if isinstance(factors, ArrayAttr):
            count = len(cast("ArrayAttr[Attribute]", factors).data)
        elif isinstance(factors, DenseArrayBase):
            count = len(cast("Any", factors))
        loops = len(self.iterator_types.data)
        if count is not None and count != loops:
            raise VerifyException(
                f"{self.name} has {loops} iterator types, but {count} block factors"
            )

    def _verify_bodies(self, mapped: int) -> None:
        if self.threads is not None and len(self.threads.data) != len(self.bodies):
            # Outlined regions are removed.
            kernels = [t for t in self.threads.data if isinstance(t, ThreadAttr) and t.data.kernel]
            if self.bodies or len(kernels) != len(self.threads.data):
                raise VerifyException(
                    f"{self.name} has {len(self.threads.data)} threads, but {len(self.bodies)} "
                    "regions"
                )
        for body in self.bodies:
            arguments = len(body.blocks[0].args) if body.blocks else 0
            if 0 < arguments < mapped:
                raise VerifyException(
                    f"{self.name} has {mapped} inputs and outputs, but a region with {arguments} "
                    "arguments"
                )

    @classmethod
    def parse(cls, parser: Parser) -> GenericOp:
        properties = dict(parser.parse_optional_attr_dict())
        known = {
            *("grid", "indexing_maps", "iterator_types", "threads", "block_factors"),
            "operand_cb_mapping",
        }
        attributes = {key: properties.pop(key) for key in list(properties) if key not in known}
        groups = [_parse_operands(parser, "ins")]
        if parser.parse_optional_keyword("cbs") is not None:
            groups.append(_parse_operands(parser))
        groups.append(_parse_operands(parser, "outs"))
        regions: list[Region] = []
        while (region := parser.parse_optional_region()) is not None:
            regions.append(region)
            if parser.parse_optional_punctuation(",") is None:
                break
        result_types: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":") is not None:
            result_types = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_type
            )
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(
            i32, [len(group) for group in groups]
        )
        return cls.create(
            operands=[value for group in groups for value in group],
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            regions=regions,
        )

    def print(self, printer: Printer) -> None:
        shown = {k: v for k, v in self.properties.items() if k != "operandSegmentSizes"}
        printer.print_op_attributes(shown | self.attributes)
        sizes = self.segment_sizes
        words = ("ins", "outs") if len(sizes) == 2 else ("ins", "cbs", "outs")
        start = 0
        for word, size in zip(words, sizes, strict=True):
            group = self.operands_[start : start + size]
            start += size
            printer.print_string(f" {word}(")
            printer.print_list(group, printer.print_ssa_value)
            if group:
                printer.print_string(" : ")
                printer.print_list(group, lambda value: printer.print_attribute(value.type))
            printer.print_string(")")
        for position, body in enumerate(self.bodies):
            printer.print_string(", " if position else " ")
            printer.print_region(body)
        if self.outputs:
            printer.print_string(" : ")
            printer.print_list(self.outputs, lambda result: printer.print_attribute(result.type))


def elements_of(value: SSAValue) -> tuple[int, ...] | None:
    """Returns the shape of a tensor of numbers, or None for tensors of tiles."""
    type_ = value.type
    if not isinstance(type_, TensorType):
        return None
    tensor = cast("TensorType[Attribute]", type_)
    return None if isinstance(tensor.element_type, TileType) else tensor.get_shape()


def _parse_operands(parser: Parser, word: str = "") -> list[SSAValue]:
    """Parses `ins(%a, %b : type, type)`."""
    if word:
        parser.parse_keyword(word)
    operands: list[UnresolvedOperand] = []
    values: list[SSAValue] = []
    with parser.in_parens():
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            if parser.parse_optional_punctuation(",") is None:
                break
        if operands:
            parser.parse_punctuation(":")
            for position, operand in enumerate(operands):
                if position:
                    parser.parse_punctuation(",")
                values.append(parser.resolve_operand(operand, parser.parse_type()))
    return values


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Terminator of a region of `ttir.generic`, with the results of the core."""

    name = "ttir.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())

    assembly_format = "($values^ `:` type($values))? attr-dict"


@irdl_op_definition
class ViewLayoutOp(IRDLOperation):
    """View of the same data with another layout."""

    name = "ttir.view_layout"
    input = operand_def()
    reinterpret_layout = opt_prop_def(prop_name="reinterpretLayout")
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class StreamLayoutOp(IRDLOperation):
    """Data streamed through the buffer `storage`."""

    name = "ttir.stream_layout"
    input = operand_def()
    storage = operand_def()
    result = result_def()


@irdl_op_definition
class CoreIndexOp(IRDLOperation):
    """Position of the core along a dimension of the grid."""

    name = "ttir.core_index"
    dim = prop_def()
    result = result_def()
    traits = traits_def(Pure())


@irdl_op_definition
class IterIndexOp(IRDLOperation):
    """Current iteration of a loop over blocks."""

    name = "ttir.iter_index"
    dim = prop_def()
    result = result_def()
    traits = traits_def(Pure())


# Ops on tiles


@dataclass(frozen=True, slots=True)
class TileOpDefinition:
    """Row of the table: number of tile operands and of optional scalars, and required attributes.

    A block op takes memrefs or tensors of tiles, and has no result.
    """

    name: str
    tiles: int
    scalars: int = 0
    attributes: tuple[str, ...] = ()
    is_block: bool = False


def _rows(names: str, tiles: int, **words: Any) -> dict[str, TileOpDefinition]:
    return {name: TileOpDefinition(name, tiles, **words) for name in names.split()}


TILE_OPS: Mapping[str, TileOpDefinition] = {
    **_rows(
        "tile_abs tile_acos tile_asin tile_atan tile_bitwise_not tile_ceil tile_cos tile_eqz "
        "tile_erf tile_erfc tile_exp tile_exp2 tile_expm1 tile_floor tile_frac tile_gelu tile_gez "
        "tile_gtz tile_hardsigmoid tile_lez tile_log tile_log1p tile_logical_not tile_ltz "
        "tile_negative tile_nez tile_recip tile_relu tile_rsqrt tile_selu tile_sigmoid tile_sign "
        "tile_signbit tile_silu tile_sin tile_softsign tile_sqrt tile_square tile_tan tile_tanh "
        "tile_transpose tile_trunc tile_typecast",
        1,
    ),
    **_rows("tile_clamp_scalar", 1, attributes=("min", "max")),
    **_rows("tile_bcast", 1, attributes=("bcast_type",)),
    # The right operand of these may be a scalar.
    **_rows("tile_add tile_sub tile_mul tile_div tile_pow", 2, scalars=1),
    **_rows(
        "tile_atan2 tile_bitwise_and tile_bitwise_or tile_bitwise_xor tile_eq tile_ge tile_gt "
        "tile_le tile_logical_left_shift tile_logical_right_shift tile_lt tile_maximum "
        "tile_minimum tile_ne tile_right_shift",
        2,
    ),
    **_rows("tile_where tile_matmul", 3),
    **_rows("tile_reduce_max tile_reduce_mean tile_reduce_sum", 3, attributes=("reduce_dim",)),
    **_rows("tile_matmul_block", 3, is_block=True),
    **_rows("tile_tilize_block tile_untilize_block", 2, is_block=True),
}
"""All ops on tiles, by name without dialect."""


class TileOp(Operation):
    """An op on tiles, described by its `definition`."""

    definition: ClassVar[TileOpDefinition]
    property_names: ClassVar[frozenset[str]] = frozenset()
    traits = OpTraits(tuple)

    def verify_(self) -> None:
        definition = self.definition
        if len(self.operands) != definition.tiles:
            raise VerifyException(
                f"{self.name} has {definition.tiles} operands, found {len(self.operands)}"
            )
        for name in definition.attributes:
            if name not in self.properties:
                raise VerifyException(f"{self.name} needs the attribute '{name}'")
        if definition.is_block:
            for operand in self.operands:
                if not isinstance(operand.type, ContainerType):
                    raise VerifyException(f"{self.name} takes blocks, found {operand.type}")
            return
        tiles = [operand.type for operand in self.operands]
        if definition.scalars and not isinstance(tiles[-1], TileType):
            tiles.pop()
        tiles += [result.type for result in self.results]
        for type_ in tiles:
            if not isinstance(type_, TileType):
                raise VerifyException(f"{self.name} takes and gives tiles, found {type_}")
        if len(self.results) != 1:
            raise VerifyException(f"{self.name} has 1 result, found {len(self.results)}")
        shapes = {tile.shape for tile in tiles if isinstance(tile, TileType)}
        if len(shapes) != 1 and self.definition.name != "tile_transpose":
            raise VerifyException(f"{self.name} takes and gives tiles of one shape")


@cache
def tile_op_classes() -> Mapping[str, type[TileOp]]:
    """Returns one op class per row of the table."""
    return {
        name: type(
            "".join(part.capitalize() for part in name.split("_")) + "Op",
            (TileOp,),
            {
                "name": f"ttir.{name}",
                "definition": definition,
                "property_names": frozenset(definition.attributes),
                "__doc__": f"`ttir.{name}`, as the table says.",
                "__module__": __name__,
            },
        )
        for name, definition in TILE_OPS.items()
    }


def generic_ops() -> list[type[Operation]]:
    """Returns the ops of this file."""
    return [
        CoreIndexOp,
        GenericOp,
        IterIndexOp,
        StreamLayoutOp,
        ViewLayoutOp,
        YieldOp,
        *tile_op_classes().values(),
    ]
