"""Description of a compiled module for the project writer: interface, structure, tolerances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import Arithmetic, default_config
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.emitc.spelling import identifier, type_name
from ttcodegen.naming.arguments import VARIANCES, is_variance
from ttcodegen.numerics.tolerances import (
    EQUAL,
    FEW_BITS,
    MATRIX_ENGINE,
    SIXTEEN_BITS,
    VECTOR_ENGINE,
    Saturation,
    Tolerance,
    is_narrow,
    loosest,
    saturation_of,
    squeezed,
    tolerance_of_type,
    usually,
)
from ttcodegen.ops.core.calls import COMPUTE_CONFIG_ATTRIBUTE
from ttcodegen.ops.core.definition import Layout, TTNNDefinition
from ttcodegen.ops.dialects import TTNNOp
from ttcodegen.ops.tt_lang import LIBRARY_CALL
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

if TYPE_CHECKING:
    import numpy as np

    from ttcodegen.cost import FunctionEstimate
    from ttcodegen.emission.buckets import Buckets
    from ttcodegen.emission.structure import Structure
    from ttcodegen.numerics.tolerances import Tolerance


# Description of a compiled module for the project writer.


class TensorKind(StrEnum):
    """Kind of a tensor in its function; parameters and constants are weights."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    OUTPUT = "output"


@dataclass(frozen=True)
class Drawing:
    """Distribution of random values of a tensor without a file.

    uniform: in [low, high); normal: mean `low`, standard deviation `high`; integer: from `low` to
    `high`, both included; boolean: zeros and ones."""

    distribution: Literal["uniform", "normal", "integer", "boolean"] = "uniform"
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class TensorDescription:
    """An argument or a result of an entry function."""

    name: str
    """Name in the source."""
    field: str
    """C++ name in the structures of the function."""
    kind: TensorKind
    shape: tuple[int, ...]
    data_type: DataType
    layout: Layout
    buffer_type: str
    """dram, l1 or system_memory (the host)."""
    source_dtype: str
    """Numpy dtype of the source's element type."""
    drawing: Drawing | None = None
    """None chooses a distribution by type and kind."""
    tolerance: Tolerance | None = None
    """For an output, the tolerance that a card can meet."""
    memory_layout: str | None = None
    shards: Shards | None = None
    """Shards, if the source program places the tensor in shards."""
    divided: tuple[int, ...] = ()
    """Dimension that the host divides along each mesh axis, -1 for none."""
    path: str = ""
    """Access path in nested structures; empty for a direct member."""
    tuned_type: str = ""
    """Constant of src/tuning.hpp with the data type, if it can be tuned."""

    @property
    def effective_tolerance(self) -> Tolerance:
        """Tolerance of an output on a device, by default that of its type."""

        return self.tolerance or source_tolerance(self.data_type, self.source_dtype)

    @property
    def effective_drawing(self) -> Drawing:
        """Distribution of random values.

        By default weights are scaled so that sums over a row stay in range, integers are small
        enough to be indices, and booleans are booleans."""
        if self.drawing is not None:
            return self.drawing
        if self.source_dtype == "bool":
            return Drawing("boolean")
        if not self.data_type.is_float:
            return Drawing("integer", 0, 1)
        if is_variance(self.name):
            return Drawing("uniform", *VARIANCES)
        if self.is_weight and len(self.shape) > 1:
            bound = 1 / math.sqrt(max(1, *self.shape[-2:]))
            return Drawing("uniform", -bound, bound)
        return Drawing("uniform", -1, 1)

    @property
    def is_weight(self) -> bool:
        """Returns whether the value is the same in every call."""
        return self.kind in (TensorKind.PARAMETER, TensorKind.CONSTANT)


@dataclass(frozen=True)
class FunctionDescription:
    """An entry function."""

    name: str
    """Name in the source."""
    cpp_name: str
    arguments: tuple[TensorDescription, ...]
    """Inputs and weights in the order of the source."""
    outputs: tuple[TensorDescription, ...]
    has_constants: bool
    """True if a function `prepare_<cpp_name>` computes constants that the function takes."""
    estimate: FunctionEstimate | None = None
    """Estimated time of its calls on the device, by the cost model."""

    @property
    def inputs(self) -> tuple[TensorDescription, ...]:
        """Inputs that change from call to call."""
        return tuple(a for a in self.arguments if not a.is_weight)

    @property
    def weights(self) -> tuple[TensorDescription, ...]:
        """Parameters and constants."""
        return tuple(a for a in self.arguments if a.is_weight)

    def struct(self, suffix: str) -> str:
        """Name of a C++ structure: Inputs, Weights, Constants, Outputs."""
        return type_name(self.cpp_name) + suffix


@dataclass(frozen=True)
class DataFile:
    """Array that is stored in the data folder."""

    name: str
    """File name without folder and extension."""
    array: np.ndarray


@dataclass(frozen=True)
class StateTensor:
    """Tensor that functions update in place and share, and that a loaded module keeps."""

    name: str
    array: np.ndarray
    """Initial elements."""
    inputs: Mapping[str, str]
    """Name of the argument that it is, by function."""
    outputs: Mapping[str, str]
    """Name of the result that is its new value, by function that updates it."""

    @property
    def file(self) -> str | None:
        """Name of the file with its elements; None for zeros, which need no file."""
        return f"state.{identifier(self.name)}" if self.array.any() else None


@dataclass(frozen=True)
class StageDescription:
    """Pipeline stage of a function, which runs on a device of its own."""

    function: FunctionDescription
    inputs: tuple[tuple[int, int], ...]
    """Source of each input: stage and output index, or -1 and input index of the whole function."""
    weights: tuple[int, ...]
    """Indices of its weights among those of the whole function."""

    def to_json(self) -> dict[str, Any]:
        """Entry of the manifest."""
        estimate = self.function.estimate
        return {
            "function": self.function.cpp_name,
            "inputs": [
                {"stage": stage, "output": index} if stage >= 0 else {"input": index}
                for stage, index in self.inputs
            ],
            "weights": list(self.weights),
            **({} if estimate is None else {"estimate": estimate.to_json()}),
        }


@dataclass(frozen=True)
class PipelineDescription:
    """A function that is divided into pipeline stages."""

    stages: tuple[StageDescription, ...]
    outputs: tuple[tuple[int, int], ...]
    """Stage and output index of each output of the whole function."""
    micro_batches: int = 1


Fabric = Literal["linear", "ring", "torus"]
"""Lines along the axes of a mesh, rings along them, or a torus of two dimensions."""

ProjectKind = Literal["so", "exe", "both", "runner", "sources"]
KINDS_WITH_EXECUTABLE = ("exe", "both", "runner")
KINDS_WITH_LIBRARY = ("so", "both")


@dataclass(frozen=True)
class DeviceManifest:
    """Manifest entries of a module of device programs; empty for other modules."""

    kernels: tuple[dict[str, Any], ...] = ()
    programs: tuple[dict[str, Any], ...] = ()
    cpu_functions: tuple[dict[str, Any], ...] = ()
    exchanges: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class ModuleDescription:
    """A compiled module, as its project describes it."""

    name: str
    """Namespace, file names and CMake targets: see `module_name`."""
    functions: tuple[FunctionDescription, ...]
    target: str
    arch: str
    release: str
    """The tt-metal release that the sources are written for."""
    input_hash: str
    """SHA-256 of the source, in hexadecimal."""
    data: tuple[DataFile, ...] = ()
    """Module constants."""
    kernels: tuple[Mapping[str, Any], ...] = ()
    """Kernels of device programs in the manifest."""
    programs: tuple[Mapping[str, Any], ...] = ()
    """Device programs in the manifest."""
    cpu_functions: tuple[Mapping[str, Any], ...] = ()
    """CPU functions between device programs in the manifest."""
    exchanges: tuple[Mapping[str, Any], ...] = ()
    """Exchanges between devices in the manifest."""
    kind: ProjectKind = "both"
    """Kind of the project.

    A shared object, an executable, or both; an executable that only runs inputs from files; or the
    C++ alone, for a program that calls its functions."""
    mesh: tuple[int, int] = (1, 1)
    """Rows and columns of the mesh of devices that the functions run on."""
    hosts: tuple[int, int] = (1, 1)
    """Rows and columns of the hosts that share the mesh, with one process each."""
    fabric: Fabric = "linear"
    """Fabric that the project configures for a mesh."""
    has_flatbuffer: bool = True
    """True if the project contains the program as a flatbuffer, too."""
    traced: bool = False
    """True if its calls are captured as traces of the device, and replayed."""
    card: str = ""
    """Card that the CPU backend emulates for it, as in `card_text`."""
    weights: tuple[DataFile, ...] = ()
    """Weights with known values, under the names that `weight_file` returns."""
    structures: Mapping[str, tuple[Structure, Structure]] = field(
        default_factory=dict[str, "tuple[Structure, Structure]"]
    )
    """Structures of the inputs and outputs of each function.

    The inputs are a tuple of the positional arguments and a dictionary of the keyword arguments."""
    weight_files: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Files of weights that functions share, by the names of function and weight."""
    state: tuple[StateTensor, ...] = ()
    """Tensors that functions update in place, and share."""
    pipelines: tuple[PipelineDescription, ...] = ()
    """Pipeline stages of the functions, if any; the C++ then has the stages."""
    generation: Mapping[str, Any] | None = None
    """For a decoder, its functions by role, as in the manifest."""
    buckets: Buckets | None = None
    """For a model with dynamic dimensions, its functions by their sizes."""

    @property
    def cpp_functions(self) -> tuple[FunctionDescription, ...]:
        """Functions that the C++ has."""
        stages = [stage.function for each in self.pipelines for stage in each.stages]
        return tuple(stages) or self.functions

    @cached_property
    def _whole_weights(
        self,
    ) -> Mapping[tuple[str, str], tuple[FunctionDescription, TensorDescription]]:
        """Whole function and its weight, by the names of a stage and of a weight there."""
        return {
            (stage.function.name, weight.name): (function, function.weights[number])
            for function, pipeline in zip(self.functions, self.pipelines, strict=False)
            for stage in pipeline.stages
            for weight, number in zip(stage.function.weights, stage.weights, strict=True)
        }

    @property
    def has_library(self) -> bool:
        """Returns whether the project has a shared object with a C API."""
        return self.kind in KINDS_WITH_LIBRARY

    @property
    def has_executable(self) -> bool:
        """Returns whether the project has a program with a command line."""
        return self.kind in KINDS_WITH_EXECUTABLE

    @property
    def has_entry_points(self) -> bool:
        """Returns whether the project calls the functions by their descriptions."""
        return self.has_library or self.has_executable

    def weight_file(self, function: FunctionDescription, weight: TensorDescription) -> str:
        """Returns the name of the file with the values of a weight, without folder and extension.

        With several functions it includes the function's name, unless the weight is shared. It
        differs from the names of module constants."""
        function, weight = self._whole_weights.get((function.name, weight.name), (function, weight))
        shared = self.weight_files.get((function.name, weight.name))
        if shared is not None:
            return shared
        name = weight.field
        if len(self.functions) > 1:
            name = f"{function.cpp_name}.{name}"
        taken = {file.name for file in self.data}
        return f"{name}.weight" if name in taken else name


# Tolerances of outputs on a card, by the ops that compute them.


def output_tolerance(value: SSAValue, source_dtype: str) -> Tolerance:
    """Tolerance of an output of a lowered function; `source_dtype` is its dtype in the source."""
    found = source_tolerance(declared_data_type(value), source_dtype)
    if found is EQUAL:
        return found
    for op in _producers(value):
        if any(is_narrow(declared_data_type(result)) for result in op.results):
            found = loosest(found, SIXTEEN_BITS)
        found = loosest(found, _engine_tolerance(op))
    return usually(squeezed(found, _saturation(value)))


def source_tolerance(data_type: DataType, source_dtype: str) -> Tolerance:
    """Minimum tolerance of outputs of a type: integers of the source are exact."""
    if source_dtype == "bool" or source_dtype.startswith(("int", "uint")):
        return EQUAL
    return tolerance_of_type(data_type)


def _engine_tolerance(op: TTNNOp) -> Tolerance:
    """Tolerance due to the engines of a call, by its config or the library's default."""
    definition = op.definition
    if not isinstance(definition, TTNNDefinition):
        return VECTOR_ENGINE
    if op.name == LIBRARY_CALL:
        # The engines of its kernels are unknown here.
        return MATRIX_ENGINE
    name = COMPUTE_CONFIG_ATTRIBUTE.name
    config = op.parameter(name) if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else None
    row = definition.compute_row(op.parameter)
    if row is None:
        return MATRIX_ENGINE if COMPUTE_CONFIG_ATTRIBUTE in definition.attributes else VECTOR_ENGINE
    if config is None:
        config = default_config(
            row,
            [declared_data_type(operand) for operand in op.operands],
            declared_data_type(op.results[0]),
            DEFAULT_ARCHITECTURE,
        )
    arithmetic = Arithmetic.of(config)
    # The exponentials of attention are approximations in every config.
    approximates = row == "attention" or (row == "softmax" and arithmetic.approximate)
    if arithmetic.second_bits < 7 or approximates:
        return FEW_BITS
    if arithmetic.first_bits < 7 or arithmetic.narrow_sums:
        return SIXTEEN_BITS
    return MATRIX_ENGINE


def _saturation(value: SSAValue) -> Saturation | None:
    """Saturating function that computes a value, by itself or as the activation of a matmul."""
    op = value.owner
    while isinstance(op, TTNNOp) and op.operands and not _computes(op):
        op = op.operands[0].owner
    if not isinstance(op, TTNNOp):
        return None
    return saturation_of(op.definition.short_name, op.parameters())


def _computes(op: TTNNOp) -> bool:
    return isinstance(op.definition, TTNNDefinition) and op.definition.computes


def _producers(value: SSAValue) -> list[TTNNOp]:
    """Ttnn calls that a value depends on, in no order."""
    found: dict[Operation, None] = {}
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            pending += owner.operands
    return [op for op in found if isinstance(op, TTNNOp)]
