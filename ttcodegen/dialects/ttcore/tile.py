"""`!ttcore.tile<32x32, bf16>`, the unit of storage and computation, and enumeration attributes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FixedBitwidthType, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.core.datatypes import DataType

TILE_SIDE = 32
"""Rows and columns of the tiles of the matrix engine."""

TILE_ELEMENTS = TILE_SIDE * TILE_SIDE
FACE_SIDE = 16
"""Rows and columns of a face (tt-metal, constants.hpp).

A tile is stored face by face; block floats share an exponent with their row of a face.
"""


def tiles_along(size: int) -> int:
    """Returns the number of tiles for a dimension of `size` elements."""
    return -(-size // TILE_SIDE)


def whole_tiles(size: int) -> int:
    """Returns `size` rounded up to whole tiles."""
    return tiles_along(size) * TILE_SIDE


@dataclass(frozen=True)
class TileFormat:
    """Storage format of numbers in a tile."""

    mlir: str
    cpp: str
    """Enumerator of `DataFormat` in kernels and on the host (tt-metal)."""
    bits: int
    """Bits of a number, without the shared exponent of block floats."""
    shares_exponent: bool = False

    def tile_bytes(self, height: int = TILE_SIDE, width: int = TILE_SIDE) -> int:
        """Returns the bytes of a tile; block floats add a byte of exponent per row of a face."""
        numbers = height * width
        exponents = -(-numbers // FACE_SIDE) if self.shares_exponent else 0
        # Exponents are padded to the alignment of the NoC.
        return numbers * self.bits // 8 + -(-exponents // 16) * 16


TILE_FORMATS = {
    format_.mlir: format_
    for format_ in (
        TileFormat("f32", "Float32", 32),
        TileFormat("f16", "Float16", 16),
        TileFormat("bf16", "Float16_b", 16),
        TileFormat("bfp_f8", "Bfp8", 8, shares_exponent=True),
        TileFormat("bfp_bf8", "Bfp8_b", 8, shares_exponent=True),
        TileFormat("bfp_f4", "Bfp4", 4, shares_exponent=True),
        TileFormat("bfp_bf4", "Bfp4_b", 4, shares_exponent=True),
        TileFormat("bfp_f2", "Bfp2", 2, shares_exponent=True),
        TileFormat("bfp_bf2", "Bfp2_b", 2, shares_exponent=True),
        TileFormat("u32", "UInt32", 32),
        TileFormat("u16", "UInt16", 16),
        TileFormat("u8", "UInt8", 8),
        TileFormat("si32", "Int32", 32),
    )
}
"""Formats by name in `!ttcore.tile` and `#ttcore.supportedDataTypes`."""

TILE_HEIGHTS = (1, 2, 4, 8, 16, 32)
TILE_WIDTHS = (16, 32)
"""Widths of tiles; the release supports all pairs of heights and widths (tt-metal, tile.hpp)."""


@irdl_attr_definition
class TileType(ParametrizedAttribute, FixedBitwidthType):
    """`!ttcore.tile<height x width, format>`."""

    name = "ttcore.tile"
    height: IntAttr
    width: IntAttr
    format_name: StringAttr

    def __init__(
        self,
        data_type: DataType | str,
        height: int | IntAttr = TILE_SIDE,
        width: int | IntAttr = TILE_SIDE,
    ) -> None:
        name = data_type.mlir if isinstance(data_type, DataType) else data_type
        super().__init__(
            IntAttr(height) if isinstance(height, int) else height,
            IntAttr(width) if isinstance(width, int) else width,
            StringAttr(name),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Returns rows and columns."""
        return self.height.data, self.width.data

    @property
    def format(self) -> TileFormat:
        """Returns the storage format."""
        return TILE_FORMATS[self.format_name.data]

    @property
    def data_type(self) -> DataType:
        """Returns the data type of a tensor of such tiles; raises KeyError if there is none."""
        return DataType.from_mlir(self.format_name.data)

    @property
    def size(self) -> int:
        """Returns the bytes of a tile."""
        return self.format.tile_bytes(*self.shape)

    @property
    def bitwidth(self) -> int:
        return 8 * self.size

    @property
    def compile_time_size(self) -> int:
        return self.size

    def verify(self) -> None:
        if self.format_name.data not in TILE_FORMATS:
            raise VerifyException(f"no tile holds numbers of the format {self.format_name.data}")
        if self.height.data not in TILE_HEIGHTS or self.width.data not in TILE_WIDTHS:
            raise VerifyException(
                "a tile has 1, 2, 4, 8, 16 or 32 rows and 16 or 32 columns, found "
                f"{self.height.data}x{self.width.data}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            dimensions = parser.parse_dimension_list()
            if len(dimensions) != 2:
                parser.raise_error("a tile has two dimensions")
            parser.parse_punctuation(",")
            name = parser.parse_identifier()
        return [IntAttr(dimensions[0]), IntAttr(dimensions[1]), StringAttr(name)]

    def print_parameters(self, printer: Printer) -> None:
        height, width = self.shape
        printer.print_string(f"<{height}x{width}, {self.format_name.data}>")


class Arch(StrEnum):
    """Architecture of chips."""

    GRAYSKULL = "grayskull"
    WORMHOLE_B0 = "wormhole_b0"
    BLACKHOLE = "blackhole"
    QUASAR = "quasar"


class MemorySpace(StrEnum):
    """Memory space: host memory, visible to the device or not, DRAM, or a core's L1."""

    SYSTEM = "system"
    MMIO = "mmio"
    DRAM = "dram"
    L1 = "l1"
    DESTINATION = "dst"


class IteratorType(StrEnum):
    """Iterator type of a loop dimension."""

    PARALLEL = "parallel"
    SYSTOLIC = "systolic"
    BROADCAST = "broadcast"
    REDUCTION = "reduction"


class OutOfBounds(StrEnum):
    """Value of padding."""

    UNDEF = "undef"
    ZERO = "zero"
    ONE = "one"
    INF = "inf"
    NEGINF = "neginf"


class TensorMemoryLayout(StrEnum):
    """Distribution of the shards of a tensor over memories."""

    NONE = "none"
    INTERLEAVED = "interleaved"
    SINGLE_BANK = "single_bank"
    HEIGHT_SHARDED = "height_sharded"
    WIDTH_SHARDED = "width_sharded"
    BLOCK_SHARDED = "block_sharded"
    SHARDED = "sharded"


class BufferAccess(StrEnum):
    """Access to a tensor: an alias of its memory, or a stream through a buffer."""

    ALIAS = "alias"
    STREAM = "stream"


class TensorReduceType(StrEnum):
    """Kind of a reduction of tensors."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    STD = "std"
    VAR = "var"
    PROD = "prod"
    INVALID = "invalid"


class ShardDirection(StrEnum):
    """Direction of a mesh shard op: divide a full tensor into shards, or assemble it."""

    FULL_TO_SHARD = "full_to_shard"
    SHARD_TO_FULL = "shard_to_full"


class ShardType(StrEnum):
    """Distribution of a tensor over devices."""

    MANUAL = "manual"
    IDENTITY = "identity"
    REPLICATE = "replicate"
    MAXIMAL = "maximal"
    DEVICES = "devices"


class ShardStatus(StrEnum):
    """State of an argument: already sharded or not."""

    PRESHARDED = "presharded"
    UNSHARDED = "unsharded"


class Topology(StrEnum):
    """Topology of the links between devices along a dimension of a mesh."""

    RING = "ring"
    LINEAR = "linear"
    MESH = "mesh"
    TORUS = "torus"
    DISABLED = "disabled"


class CPURole(StrEnum):
    """Role of a processor."""

    HOST = "host"
    DEVICE = "device"


class NocIndex(StrEnum):
    """One of the two networks on chip."""

    NOC0 = "noc0"
    NOC1 = "noc1"


@irdl_attr_definition
class ArchAttr(WordAttribute[Arch]):
    """`#ttcore.arch<wormhole_b0>`."""

    name = "ttcore.arch"


@irdl_attr_definition
class MemorySpaceAttr(WordAttribute[MemorySpace]):
    """`#ttcore.memory_space<l1>`."""

    name = "ttcore.memory_space"


@irdl_attr_definition
class IteratorTypeAttr(WordAttribute[IteratorType]):
    """`#ttcore.iterator_type<parallel>`."""

    name = "ttcore.iterator_type"


@irdl_attr_definition
class OutOfBoundsAttr(WordAttribute[OutOfBounds]):
    """`#ttcore.oob_val<undef>`."""

    name = "ttcore.oob_val"


@irdl_attr_definition
class TensorMemoryLayoutAttr(WordAttribute[TensorMemoryLayout]):
    """`#ttcore.tensor_memory_layout<sharded>`."""

    name = "ttcore.tensor_memory_layout"


@irdl_attr_definition
class BufferAccessAttr(WordAttribute[BufferAccess]):
    """`#ttcore.buffer_access<alias>`."""

    name = "ttcore.buffer_access"


@irdl_attr_definition
class StreamModeAttr(WordAttribute[BufferAccess]):
    """`#ttcore.stream_mode<alias>`."""

    name = "ttcore.stream_mode"


@irdl_attr_definition
class TensorReduceTypeAttr(WordAttribute[TensorReduceType]):
    """`#ttcore.reduce_type<sum>`."""

    name = "ttcore.reduce_type"


@irdl_attr_definition
class ShardDirectionAttr(WordAttribute[ShardDirection]):
    """`#ttcore.shard_direction<full_to_shard>`."""

    name = "ttcore.shard_direction"


@irdl_attr_definition
class ShardTypeAttr(WordAttribute[ShardType]):
    """`#ttcore.shard_type<devices>`."""

    name = "ttcore.shard_type"


@irdl_attr_definition
class ShardStatusAttr(WordAttribute[ShardStatus]):
    """`#ttcore.shard_status<unsharded>`."""

    name = "ttcore.shard_status"


@irdl_attr_definition
class TopologyAttr(WordAttribute[Topology]):
    """`#ttcore.topology<ring>`."""

    name = "ttcore.topology"


@irdl_attr_definition
class CPURoleAttr(WordAttribute[CPURole]):
    """`#ttcore.cpu_role<host>`."""

    name = "ttcore.cpu_role"


@irdl_attr_definition
class NocIndexAttr(WordAttribute[NocIndex]):
    """`#ttcore.noc_index<noc0>`."""

    name = "ttcore.noc_index"


WORD_ATTRIBUTES: list[type[Attribute]] = [
    ArchAttr,
    BufferAccessAttr,
    CPURoleAttr,
    IteratorTypeAttr,
    MemorySpaceAttr,
    NocIndexAttr,
    OutOfBoundsAttr,
    ShardDirectionAttr,
    ShardStatusAttr,
    ShardTypeAttr,
    StreamModeAttr,
    TensorMemoryLayoutAttr,
    TensorReduceTypeAttr,
    TopologyAttr,
]
