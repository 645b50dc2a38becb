"""The attributes of the `ttcore` dialect that are one word of a list."""

from __future__ import annotations

from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.enumerations import WordAttribute


class Arch(StrEnum):
    """An architecture of chips."""

    GRAYSKULL = "grayskull"
    WORMHOLE_B0 = "wormhole_b0"
    BLACKHOLE = "blackhole"
    QUASAR = "quasar"


class MemorySpace(StrEnum):
    """Where memory is: on the host, visible to the device or not, in DRAM or in a core's L1."""

    SYSTEM = "system"
    MMIO = "mmio"
    DRAM = "dram"
    L1 = "l1"
    DESTINATION = "dst"


class IteratorType(StrEnum):
    """What may be done along a dimension of a computation."""

    PARALLEL = "parallel"
    SYSTOLIC = "systolic"
    BROADCAST = "broadcast"
    REDUCTION = "reduction"


class OutOfBounds(StrEnum):
    """What padding holds."""

    UNDEF = "undef"
    ZERO = "zero"
    ONE = "one"
    INF = "inf"
    NEGINF = "neginf"


class TensorMemoryLayout(StrEnum):
    """How the shards of a tensor are spread over memories."""

    NONE = "none"
    INTERLEAVED = "interleaved"
    SINGLE_BANK = "single_bank"
    HEIGHT_SHARDED = "height_sharded"
    WIDTH_SHARDED = "width_sharded"
    BLOCK_SHARDED = "block_sharded"
    SHARDED = "sharded"


class BufferAccess(StrEnum):
    """Whether a buffer is the tensor's memory, or a place that its data passes through."""

    ALIAS = "alias"
    STREAM = "stream"


class TensorReduceType(StrEnum):
    """What a reduction of tensors computes."""

    SUM = "sum"
    MEAN = "mean"
    MAX = "max"
    MIN = "min"
    STD = "std"
    VAR = "var"
    PROD = "prod"
    INVALID = "invalid"


class ShardDirection(StrEnum):
    """Whether tensors are divided over devices, or put together."""

    FULL_TO_SHARD = "full_to_shard"
    SHARD_TO_FULL = "shard_to_full"


class ShardType(StrEnum):
    """How tensors are divided over devices."""

    MANUAL = "manual"
    IDENTITY = "identity"
    REPLICATE = "replicate"
    MAXIMAL = "maximal"
    DEVICES = "devices"


class ShardStatus(StrEnum):
    """Whether an argument comes in shards."""

    PRESHARDED = "presharded"
    UNSHARDED = "unsharded"


class Topology(StrEnum):
    """How devices along a dimension of a mesh are linked."""

    RING = "ring"
    LINEAR = "linear"
    MESH = "mesh"
    TORUS = "torus"
    DISABLED = "disabled"


class CPURole(StrEnum):
    """What a processor runs."""

    HOST = "host"
    DEVICE = "device"


class NocIndex(StrEnum):
    """One of the two networks on chip."""

    NOC0 = "noc0"
    NOC1 = "noc1"


@irdl_attr_definition
class ArchAttr(WordAttribute):
    """`#ttcore.arch<wormhole_b0>`."""

    name = "ttcore.arch"
    words = Arch


@irdl_attr_definition
class MemorySpaceAttr(WordAttribute):
    """`#ttcore.memory_space<l1>`."""

    name = "ttcore.memory_space"
    words = MemorySpace


@irdl_attr_definition
class IteratorTypeAttr(WordAttribute):
    """`#ttcore.iterator_type<parallel>`."""

    name = "ttcore.iterator_type"
    words = IteratorType


@irdl_attr_definition
class OutOfBoundsAttr(WordAttribute):
    """`#ttcore.oob_val<undef>`."""

    name = "ttcore.oob_val"
    words = OutOfBounds


@irdl_attr_definition
class TensorMemoryLayoutAttr(WordAttribute):
    """`#ttcore.tensor_memory_layout<sharded>`."""

    name = "ttcore.tensor_memory_layout"
    words = TensorMemoryLayout


@irdl_attr_definition
class BufferAccessAttr(WordAttribute):
    """`#ttcore.buffer_access<alias>`."""

    name = "ttcore.buffer_access"
    words = BufferAccess


@irdl_attr_definition
class StreamModeAttr(WordAttribute):
    """`#ttcore.stream_mode<alias>`."""

    name = "ttcore.stream_mode"
    words = BufferAccess


@irdl_attr_definition
class TensorReduceTypeAttr(WordAttribute):
    """`#ttcore.reduce_type<sum>`."""

    name = "ttcore.reduce_type"
    words = TensorReduceType


@irdl_attr_definition
class ShardDirectionAttr(WordAttribute):
    """`#ttcore.shard_direction<full_to_shard>`."""

    name = "ttcore.shard_direction"
    words = ShardDirection


@irdl_attr_definition
class ShardTypeAttr(WordAttribute):
    """`#ttcore.shard_type<devices>`."""

    name = "ttcore.shard_type"
    words = ShardType


@irdl_attr_definition
class ShardStatusAttr(WordAttribute):
    """`#ttcore.shard_status<unsharded>`."""

    name = "ttcore.shard_status"
    words = ShardStatus


@irdl_attr_definition
class TopologyAttr(WordAttribute):
    """`#ttcore.topology<ring>`."""

    name = "ttcore.topology"
    words = Topology


@irdl_attr_definition
class CPURoleAttr(WordAttribute):
    """`#ttcore.cpu_role<host>`."""

    name = "ttcore.cpu_role"
    words = CPURole


@irdl_attr_definition
class NocIndexAttr(WordAttribute):
    """`#ttcore.noc_index<noc0>`."""

    name = "ttcore.noc_index"
    words = NocIndex


WORD_ATTRIBUTES: list[type[WordAttribute]] = [
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
