"""The attributes of the `ttcore` dialect that are one word of a list."""

from __future__ import annotations

from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.records import WordAttribute


class Arch(StrEnum):
    """An architecture of chips."""

    GRAYSKULL = "grayskull"
    WORMHOLE_B0 = "wormhole_b0"
    BLACKHOLE = "blackhole"
    QUASAR = "quasar"


class MemorySpace(StrEnum):
    """Memory space: on the host, visible to the device or not, in DRAM or in a core's L1."""

    SYSTEM = "system"
    MMIO = "mmio"
    DRAM = "dram"
    L1 = "l1"
    DESTINATION = "dst"


class IteratorType(StrEnum):
    """Iterator type of a dimension of a computation."""

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
    """True if a buffer is the tensor's memory, or a place that its data passes through."""

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
    """True if tensors are divided over devices, or put together."""

    FULL_TO_SHARD = "full_to_shard"
    SHARD_TO_FULL = "shard_to_full"


class ShardType(StrEnum):
    """Distribution of tensors over devices."""

    MANUAL = "manual"
    IDENTITY = "identity"
    REPLICATE = "replicate"
    MAXIMAL = "maximal"
    DEVICES = "devices"


class ShardStatus(StrEnum):
    """True if an argument comes in shards."""

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
