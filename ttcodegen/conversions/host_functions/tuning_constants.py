"""src/tuning.hpp: tuning knobs and weight data types of a program as named constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from ttcodegen.conversions.host_functions.interface import Entry
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import Layout, Orientation
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.dialects.ttnn.program_configs import (
    MATMUL_HEADER,
    Conv2dConfig,
    CoreGrid,
    CoreSet,
    FusedActivation,
    ProgramConfig,
    Word,
)
from ttcodegen.emitc.builder import EmitCBuilder, open_file
from ttcodegen.emitc.spelling import NameScope
from ttcodegen.naming.modules import (
    NAMESPACE,
    PRODUCT_COMPUTE,
    PRODUCT_MEMORY,
    PRODUCT_PROGRAM,
    PRODUCT_WEIGHTS,
    TRACE_REGION,
    NamedCall,
    compute_name,
    memory_name,
    program_config_names,
    qualified,
    shard_places,
    sharded_memory_names,
)
from ttcodegen.naming.sources import name_or_kind
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import (
    COMPUTE_CONFIG_ATTRIBUTE,
    CONV2D_CONFIG_ATTRIBUTE,
    CONVOLUTION_COMPUTE,
    CONVOLUTION_CONFIG,
    MATMUL_CONFIG_ATTRIBUTE,
    NORM_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
    core_set_text,
)
from ttcodegen.ops.core.definition import has_trait, traits_of
from ttcodegen.ops.core.traits import Trait
from ttcodegen.transforms.rewriting import body_of

# Weights of matmuls, whose data type is a tuning constant.


@dataclass(frozen=True)
class ProductWeights:
    """Weights of matmuls whose data type is one constant."""

    data_type: DataType | None
    """Data type of the weights; None if there are none."""
    arguments: frozenset[SSAValue]
    """Weights that are arguments of functions."""
    makers: frozenset[Operation]
    """Constants and typecasts of the prepare function that determine the data type of weights."""


def product_weights(entries: Sequence[Entry]) -> ProductWeights:
    """Returns the weights that only matmuls use, as their second operand.

    If they are of several data types, only those of the most frequent one."""
    arguments: list[tuple[DataType, SSAValue]] = []
    makers: list[tuple[DataType, Operation]] = []
    for entry in entries:
        for tensor in entry.weights:
            placement = placement_of(tensor.value)
            if _is_matmul_weight(tensor.value) and placement.layout is Layout.TILE:
                arguments.append((placement.data_type, tensor.value))
        if entry.load is None or entry.const_eval is None:
            continue
        returned = body_of(entry.const_eval).last_op
        assert returned is not None
        for held, value in zip(entry.load.results, returned.operands, strict=True):
            maker = _producer(value)
            if maker is not None and _is_matmul_weight(held):
                makers.append((placement_of(held).data_type, maker))
    counts = Counter(data_type for data_type, _ in [*arguments, *makers])
    if not counts:
        return ProductWeights(None, frozenset(), frozenset())
    ((most, _),) = counts.most_common(1)
    return ProductWeights(
        most,
        frozenset(value for data_type, value in arguments if data_type is most),
        frozenset(op for data_type, op in makers if data_type is most),
    )


def _is_matmul_weight(value: SSAValue) -> bool:
    uses = list(value.uses)
    return bool(uses) and all(
        has_trait(use.operation, Trait.MATRIX_PRODUCT) and use.index == 1 for use in uses
    )


def _producer(value: SSAValue) -> Operation | None:
    """Returns the constant or typecast that determines the data type of a value, if any."""
    while isinstance(value, OpResult) and _is_used_once(value):
        if value.op.name in ("ttnn.constant", "ttnn.typecast"):
            return value.op
        maker = value.op
        if not isinstance(maker, CatalogueOp) or Trait.PLACES not in traits_of(maker.definition):
            return None
        value = maker.operands[0]
    return None


def _is_used_once(value: SSAValue) -> bool:
    return sum(use.operation.name != "ttnn.deallocate" for use in value.uses) == 1


# The content of src/tuning.hpp.

HEADER = "tuning.hpp"
_HEAD = "Tuning knobs: change a constant and rebuild. See the chapter Tuning of README.md."
"""Comment at the head of the file."""
_COMPUTE_TYPE = "ttnn::DeviceComputeKernelConfig"
_MEMORY_TYPE = "const ttnn::MemoryConfig&"
_MEMORY_COMMENTS = {
    "weights": "Memory of weights and constants: {} or {}.",
    "activations": "Memory of activations: {} or {}.",
}
_BUFFERS = ("ttnn::DRAM_MEMORY_CONFIG", "ttnn::L1_MEMORY_CONFIG")
_CONFIGURATIONS = (
    COMPUTE_CONFIG_ATTRIBUTE,
    CONV2D_CONFIG_ATTRIBUTE,
    MATMUL_CONFIG_ATTRIBUTE,
    NORM_CONFIG_ATTRIBUTE,
    SDPA_CONFIG_ATTRIBUTE,
)
_WORDS = {
    "tile": "ttnn::Layout::TILE",
    "row_major": "ttnn::Layout::ROW_MAJOR",
    "f32": "ttnn::DataType::FLOAT32",
    "bf16": "ttnn::DataType::BFLOAT16",
    "bfp_bf8": "ttnn::DataType::BFLOAT8_B",
    "bfp_bf4": "ttnn::DataType::BFLOAT4_B",
}
_COMPUTE_ALTERNATIVES = (
    "math_fidelity: LoFi, HiFi2, HiFi3 or HiFi4, from fast to precise. math_approx_mode, "
    "fp32_dest_acc_en, packer_l1_acc: true or false."
)


_MATMUL_CONFIG = "ttnn::operations::matmul::MatmulProgramConfig"


@dataclass(frozen=True)
class _Undecided:
    """Decision that all calls of a kind share, and that is the library's by default."""

    type: str
    """Type of the value, if there is one."""
    header: str
    comment: tuple[str, ...]


_WEIGHTS_COMMENT = (
    "Data type of weights that only matmuls use: ttnn::DataType::FLOAT32, BFLOAT16, or the block "
    "floats BFLOAT8_B and BFLOAT4_B, which take about a half and a quarter of the memory of "
    "BFLOAT16, at less precision."
)
_COMPUTE_CHOICES = (
    "std::nullopt: the default of ttnn. Example: ttnn::DeviceComputeKernelConfig{"
    ".math_fidelity = MathFidelity::HiFi2, .fp32_dest_acc_en = true, .packer_l1_acc = true}.",
    _COMPUTE_ALTERNATIVES,
)
_UNDECIDED = {
    PRODUCT_MEMORY: _Undecided(
        "ttnn::MemoryConfig",
        "ttnn/types.hpp",
        (
            "Memory config of the results of matmul and linear: std::nullopt for the default of "
            "ttnn, ttnn::DRAM_MEMORY_CONFIG or ttnn::L1_MEMORY_CONFIG.",
            "A single call is tuned by its options, {.memory_config = ...}; likewise for the two "
            "constants below.",
        ),
    ),
    PRODUCT_PROGRAM: _Undecided(
        _MATMUL_CONFIG,
        MATMUL_HEADER,
        (
            "Program config of matmuls: std::nullopt for the automatic choice of ttnn, or "
            "ttnn::operations::matmul::MatmulMultiCoreReuseProgramConfig, "
            "MatmulMultiCoreReuseMultiCastProgramConfig or "
            "MatmulMultiCoreReuseMultiCast1DProgramConfig, with blocks that divide the shapes.",
        ),
    ),
    PRODUCT_COMPUTE: _Undecided(
        _COMPUTE_TYPE, "", ("Compute kernel config of matmuls.", *_COMPUTE_CHOICES)
    ),
    CONVOLUTION_CONFIG: _Undecided(
        "ttnn::prim::Conv2dConfig",
        "ttnn/operations/conv/conv2d/device/conv2d_device_operation_types.hpp",
        (
            "Config of convolutions. std::nullopt: the default of ttnn. Example: "
            "ttnn::prim::Conv2dConfig{.weights_dtype = ttnn::DataType::BFLOAT8_B, "
            ".act_block_h_override = 64, "
            ".shard_layout = ttnn::TensorMemoryLayout::HEIGHT_SHARDED}.",
            "To tune a single layer, add a constant and name it in the call.",
        ),
    ),
    CONVOLUTION_COMPUTE: _Undecided(
        _COMPUTE_TYPE, "", ("Compute kernel config of convolutions.", *_COMPUTE_CHOICES)
    ),
}
"""In the order of the file."""


TRACE_REGION_COMMENT = (
    "Bytes of DRAM that each device sets aside for captured traces. With 0 the library puts a "
    "trace into free DRAM, and takes as much as the captured commands need; a number keeps other "
    "tensors off, and is refused when it is too small."
)
"""The meaning of 0 follows tt_metal/distributed/mesh_trace.cpp of tt-metal."""


_SHARDED_COMMENT = (
    "Tensors divided among {count} {places}: layout, memory, {places} and the shape of a shard. "
    "Alternatives: other shapes and {places}, ttnn::L1_MEMORY_CONFIG or ttnn::DRAM_MEMORY_CONFIG."
)


class Tuning:
    """Names the tuning decisions of a program, in the order of their first use."""

    def __init__(self) -> None:
        self._computes: dict[ComputeConfig, str] = {}
        self._programs: dict[ProgramConfig, str] = {}
        self._program_comments: dict[str, str] = {}
        """Comments of the program configs, by name."""
        self._memories: dict[tuple[str, str], str] = {}
        self._sharded: dict[str, TensorPlacement] = {}
        """Sharded memory configs by name, each with a tensor that has it."""
        self._undecided: set[str] = set()
        self._weights = ProductWeights(None, frozenset(), frozenset())
        self.shared: dict[str, str] = {}
        """Values of shared constants that differ from the library's defaults."""
        self.has_traces = False
        """True if the device is opened with a region for traces."""

    @property
    def is_used(self) -> bool:
        """Returns whether the functions refer to any of the constants."""
        found = self._computes or self._memories or self._programs or self._undecided
        return bool(found or self._sharded or self._weights.data_type)

    def undecided(self, name: str) -> str:
        """Constant that all calls of a kind share, for a decision of the library."""
        self._undecided.add(name)
        return qualified(name)

    def compute(self, config: ComputeConfig) -> str:
        """Constant that holds a compute kernel config."""
        return qualified(self._computes[config])

    def program(self, config: ProgramConfig) -> str:
        """Constant that holds a program config."""
        return qualified(self._programs[config])

    def data_type(self, op: Operation) -> str | None:
        """Constant for the data type of an op's result, if there is one."""
        return qualified(PRODUCT_WEIGHTS) if op in self._weights.makers else None

    def memory(self, kind: str, buffer: str) -> str:
        """Constant that holds an interleaved memory config.

        Args:
            kind: weights or activations.
            buffer: DRAM or L1.
        """
        name = memory_name(kind, buffer)
        self._memories.setdefault((kind, buffer), name)
        return qualified(name)

    def sharded(self, placement: TensorPlacement) -> str:
        """Constant that holds a sharded memory config.

        Tensors with equal shards share one, named after the division and the shape of a shard."""
        assert placement.memory_layout is not None
        found = next(
            each
            for each in sharded_memory_names(placement)
            if _has_equal_shards(self._sharded.setdefault(each, placement), placement)
        )
        return qualified(found)

    def collect(self, entries: Sequence[Entry]) -> None:
        """Names all configs that the functions of these entries use.

        Compute configs are named after their modes, program configs after the results of their
        calls."""
        self._weights = product_weights(entries)
        scope = NameScope([*_UNDECIDED, PRODUCT_WEIGHTS])
        products: Counter[ComputeConfig | None] = Counter()
        calls = list(_calls(entries))
        configured: dict[ProgramConfig, list[tuple[CatalogueOp, NamedCall]]] = {}
        # A config is named after the call that uses it, not after the preparation of its weights.
        calls.sort(key=lambda call: has_trait(call[0], Trait.PREPARES_WEIGHTS))
        for op, values, weights in calls:
            if has_trait(op, Trait.PREPARES_WEIGHTS):
                self._share_weights_type(op)
            if has_trait(op, Trait.MATRIX_PRODUCT):
                config = op.parameter(COMPUTE_CONFIG_ATTRIBUTE.name)
                products[config if isinstance(config, ComputeConfig) else None] += 1
            for spec in op.definition.attributes:
                config = op.parameter(spec.name) if spec in _CONFIGURATIONS else None
                if isinstance(config, ComputeConfig) and config not in self._computes:
                    self._computes[config] = scope.unique(compute_name(config))
                elif isinstance(config, ProgramConfig):
                    configured.setdefault(config, []).append((op, (op, values, weights)))
        for config, found in configured.items():
            self._name_program(config, found, scope)
        if products:
            self._undecided |= {PRODUCT_MEMORY, PRODUCT_PROGRAM, PRODUCT_COMPUTE}
            ((most, _),) = products.most_common(1)
            if most is not None:
                self.shared[PRODUCT_COMPUTE] = self.compute(most)

    def _name_program(
        self,
        config: ProgramConfig,
        configured: Sequence[tuple[CatalogueOp, NamedCall]],
        scope: NameScope,
    ) -> None:
        prepares = Trait.PREPARES_WEIGHTS
        own = [each for each in configured if not has_trait(each[0], prepares)] or configured
        names = program_config_names([call for _, call in own])
        name = next(each for each in names if not scope.is_taken(each))
        self._programs[config] = scope.unique(name)
        kinds = " and ".join(dict.fromkeys(name_or_kind(op) for op, _ in own))
        shapes = dict.fromkeys(" by ".join(map(str, op.result_shape)) for op, _ in own)
        result = f" with a result of {next(iter(shapes))}" if len(shapes) == 1 else ""
        if len(own) > 1:
            kinds = f"{len(own)} calls of {kinds}"
        self._program_comments[name] = f"Program config of {kinds}{result}."

    def _share_weights_type(self, op: CatalogueOp) -> None:
        """Sets the data type of weights in the config that all convolutions share.

        The library prepares a bias only if the config has that data type."""
        if op.parameter(CONV2D_CONFIG_ATTRIBUTE.name) is None:
            data_type = placement_of(op.results[0]).data_type
            shared = program_initializer(Conv2dConfig(weights_dtype=Word(data_type.mlir)))
            self.shared[CONVOLUTION_CONFIG] = f"{Conv2dConfig.cpp}{shared}"

    def write(self, module: ModuleOp, name: str, title: str) -> bool:
        """Writes the file for a module; returns whether it has any content."""
        if not (self.is_used or self.has_traces):
            return False
        file = open_file(module, f"src/{HEADER}")
        file.comment(title)
        file.verbatim("//")
        file.comment(_HEAD)
        file.verbatim("#pragma once")
        file.blank()
        if self.has_traces:
            file.include("cstddef")
        if self._undecided:
            file.include("optional")
        file.include("ttnn/operations/core/compute_kernel/compute_kernel_config.hpp")
        headers = {config.header for config in self._programs}
        headers |= {_UNDECIDED[name].header for name in self._undecided}
        for header in sorted(headers - {"", "ttnn/types.hpp"}):
            file.include(header)
        file.include("ttnn/types.hpp")
        file.blank()
        # Lets hand-written configs use the spelling of the documentation.
        with file.namespace(name):
            file.verbatim("using tt::tt_metal::MathFidelity;")
        file.blank()
        with file.namespace(f"{name}::{NAMESPACE}"):
            self._write_constants(file)
        return True

    def _write_constants(self, file: EmitCBuilder) -> None:
        is_first = not self.has_traces
        if self.has_traces:
            file.comment(TRACE_REGION_COMMENT)
            file.verbatim(f"constexpr std::size_t {TRACE_REGION} = 0;")
        for (kind, buffer), name in sorted(self._memories.items()):
            if not is_first:
                file.blank()
            is_first = False
            file.comment(_MEMORY_COMMENTS[kind].format(*_BUFFERS))
            # A reference is not implicitly internal: without inline each including file would
            # define it.
            file.verbatim(f"inline {_MEMORY_TYPE} {name} = ttnn::{buffer}_MEMORY_CONFIG;")
        for name, placement in sorted(self._sharded.items()):
            if not is_first:
                file.blank()
            is_first = False
            shards = placement.shards
            assert shards is not None
            places = shard_places(placement)
            file.comment(_SHARDED_COMMENT.format(count=shards.cores, places=places))
            file.global_constant(name, "ttnn::MemoryConfig", sharded_initializer(placement))
        if self._weights.data_type is not None:
            if not is_first:
                file.blank()
            is_first = False
            file.comment(_WEIGHTS_COMMENT)
            data_type = self._weights.data_type.cpp
            file.global_constant(PRODUCT_WEIGHTS, "ttnn::DataType", f"ttnn::DataType::{data_type}")
        for config, name in self._computes.items():
            if not is_first:
                file.blank()
            is_first = False
            file.comment(_comment(config))
            file.comment(_COMPUTE_ALTERNATIVES)
            file.global_constant(name, _COMPUTE_TYPE, initializer(config))
        for name in [name for name in _UNDECIDED if name in self._undecided]:
            if not is_first:
                file.blank()
            is_first = False
            undecided = _UNDECIDED[name]
            for line in undecided.comment:
                file.comment(line)
            value = self.shared.get(name, "std::nullopt").removeprefix(f"{NAMESPACE}::")
            file.global_constant(name, f"std::optional<{undecided.type}>", value)
        for config, name in self._programs.items():
            if not is_first:
                file.blank()
            is_first = False
            file.comment(self._program_comments[name])
            file.global_constant(name, config.cpp, program_initializer(config))


def _has_equal_shards(first: TensorPlacement, second: TensorPlacement) -> bool:
    return (first.buffer_type, first.memory_layout, first.shards) == (
        second.buffer_type,
        second.memory_layout,
        second.shards,
    )


def sharded_initializer(placement: TensorPlacement) -> str:
    """Braced C++ initializer of the memory config of a sharded tensor."""
    shards = placement.shards
    assert shards is not None
    assert placement.memory_layout is not None
    height, width = shards.shape
    orientation = ""
    if shards.orientation is Orientation.COL_MAJOR:
        orientation = ", tt::tt_metal::ShardOrientation::COL_MAJOR"
    return (
        f"{{ttnn::TensorMemoryLayout::{placement.memory_layout.upper()}, "
        f"ttnn::BufferType::{placement.buffer_type.upper()}, "
        f"tt::tt_metal::ShardSpec({core_set_text(shards.core_ranges)}, "
        f"{{{height}, {width}}}{orientation})}}"
    )


def _calls(
    entries: Iterable[Entry],
) -> Iterator[tuple[CatalogueOp, ValueNames, Mapping[SSAValue, str]]]:
    """Yields the calls of entries, with the names of values and of weights in their function."""
    for entry in entries:
        names = entry.names
        if names.const_eval is not None and names.prepared is not None:
            yield from ((op, names.prepared, {}) for op in _ops(names.const_eval))
        for inner in (names, *(loop.names for loop in entry.loops)):
            weights = inner.given.weight_names
            yield from ((op, inner.values, weights) for op in _ops(inner.function))


def _ops(function: FuncOp) -> Iterator[CatalogueOp]:
    return (op for op in body_of(function).ops if isinstance(op, CatalogueOp))


def _comment(config: ComputeConfig) -> str:
    if config.is_exact:
        return "For operations on 32-bit floats: the highest precision of the device."
    return f"Math fidelity {config.math_fidelity.cpp}."


def initializer(config: ComputeConfig) -> str:
    """Braced C++ initializer of a compute config; trailing defaults are omitted."""
    written = [f".{field.name} = {_text(getattr(config, field.name))}" for field in fields(config)]
    default = ComputeConfig()
    for field in reversed(fields(config)):
        if getattr(config, field.name) != getattr(default, field.name):
            break
        written.pop()
    return "{" + ", ".join(written) + "}"


def program_initializer(config: ProgramConfig) -> str:
    """Braced C++ initializer of a program config."""
    written: list[str] = []
    given = dict(config.given())
    for field in fields(config):
        name = field.name
        if name not in given and name not in config.always:
            continue
        value = given.get(name)
        written.append(f".{config.spelled.get(name, name)} = {_program_value(value)}")
        if name in config.unset:
            written.append(f".{config.unset[name]} = {{}}")
    return "{" + ", ".join(written) + "}"


def _program_value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "{}"
        case Word():
            return _WORDS.get(value.text) or f"ttnn::TensorMemoryLayout::{value.text.upper()}"
        case CoreGrid():
            return f"{{{value.columns}, {value.rows}}}"
        case CoreSet():
            return core_set_text(value.ranges)
        case FusedActivation():
            op_type = f"ttnn::operations::unary::UnaryOpType::{value.op_type.upper()}"
            params = "".join(f", {float(param)!r}F" for param in value.params)
            return f"ttnn::operations::unary::UnaryWithParam({op_type}{params})"
        case _:
            return str(value)


def _text(value: bool | MathFidelity) -> str:
    return f"MathFidelity::{value.cpp}" if isinstance(value, MathFidelity) else str(value).lower()
