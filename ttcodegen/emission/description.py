"""Description of a compiled module for the project writer: interface, structure, tolerances."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import Arithmetic, default_config
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.emitc.spelling import identifier, type_name
from ttcodegen.foundation.diagnostics import CompileError
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

if TYPE_CHECKING:
    import numpy as np

    from ttcodegen.cost import FunctionEstimate
    from ttcodegen.numerics.tolerances import Tolerance


# What the project writer needs to know of a compiled module.

MAX_RANK = 8
"""The highest rank of a tensor of tt-metal (`MAX_NUM_DIMENSIONS`)."""


class TensorKind(StrEnum):
    """Kind of a tensor in its function; parameters and constants are weights."""

    INPUT = "input"
    PARAMETER = "parameter"
    CONSTANT = "constant"
    OUTPUT = "output"


@dataclass(frozen=True)
class Drawing:
    """Distribution of random values of a tensor for which there is no file.

    uniform: in [low, high); normal: mean `low`, standard deviation `high`; integer: from `low` to
    `high`, both included; boolean: zeros and ones.
    """

    distribution: Literal["uniform", "normal", "integer", "boolean"] = "uniform"
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class TensorDescription:
    """An argument or a result of an entry function."""

    name: str
    """As the source names it."""
    field: str
    """Its C++ name in the structures of the function."""
    kind: TensorKind
    shape: tuple[int, ...]
    data_type: DataType
    layout: Layout
    buffer_type: str
    """dram, l1 or system_memory (the host)."""
    source_dtype: str
    """The numpy dtype of the source's element type."""
    drawing: Drawing | None = None
    """None draws what suits the type and the kind."""
    tolerance: Tolerance | None = None
    """Of an output: how closely a card can meet it."""
    memory_layout: str | None = None
    shards: Shards | None = None
    """Of a tensor that a program of one's own has in shards."""
    divided: tuple[int, ...] = ()
    """Of one that the host divides among the chips of a mesh: for each axis the dimension that is
    divided along it, -1 for none."""
    path: str = ""
    """Its access path in a structure of nested ones; empty for a direct member."""
    tuned_type: str = ""
    """The constant of src/tuning.hpp that is the data type, if a person may choose another."""

    @property
    def effective_tolerance(self) -> Tolerance:
        """Tolerance of an output on a device; without better knowledge by its type."""

        return self.tolerance or source_tolerance(self.data_type, self.source_dtype)

    @property
    def effective_drawing(self) -> Drawing:
        """Distribution of random values.

        Without a better hint weights are scaled so that sums over a row stay in range, integers are
        small enough to index anything, and booleans are booleans.
        """
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
        """True if the value stays the same from one call to the next."""
        return self.kind in (TensorKind.PARAMETER, TensorKind.CONSTANT)


@dataclass(frozen=True)
class FunctionDescription:
    """An entry function."""

    name: str
    """As the source names it."""
    cpp_name: str
    arguments: tuple[TensorDescription, ...]
    """Inputs and weights in the order of the source."""
    outputs: tuple[TensorDescription, ...]
    has_constants: bool
    """True if there is a function `prepare_<cpp_name>` whose result the function takes."""
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
        """The name of one of the C++ structures: Inputs, Weights, Constants, Outputs."""
        return type_name(self.cpp_name) + suffix


@dataclass(frozen=True)
class DataFile:
    """Values that go into the data folder."""

    name: str
    """The file's name without folder and ending."""
    array: np.ndarray


@dataclass(frozen=True)
class StateTensor:
    """A tensor that functions change in place and share, which a loaded module keeps."""

    name: str
    array: np.ndarray
    """Its elements before the first call."""
    inputs: Mapping[str, str]
    """Names of the arguments that it is, by functions."""
    outputs: Mapping[str, str]
    """Names of the results that it is after a call, by functions that change it."""

    @property
    def file(self) -> str | None:
        """The name of the file with its elements; None for zeros, which need none."""
        return f"state.{identifier(self.name)}" if self.array.any() else None


@dataclass(frozen=True)
class StageDescription:
    """A part of a function that runs on a device of its own."""

    function: FunctionDescription
    inputs: tuple[tuple[int, int], ...]
    """For each input the stage that it is an output of, -1 for an input of the whole function, and
    the number there."""
    weights: tuple[int, ...]
    """Its weights, by their numbers among those of the whole function."""

    def to_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
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
    """A function in stages."""

    stages: tuple[StageDescription, ...]
    outputs: tuple[tuple[int, int], ...]
    """For each output of the whole function the stage that makes it, and the number there."""
    micro_batches: int = 1


Fabric = Literal["linear", "ring", "torus"]
"""Lines along the axes of a mesh, rings along them, or a torus of two dimensions."""

ProjectKind = Literal["so", "exe", "both", "runner", "sources"]
KINDS_WITH_EXECUTABLE = ("exe", "both", "runner")
KINDS_WITH_LIBRARY = ("so", "both")


@dataclass(frozen=True)
class DeviceManifest:
    """Manifest of a module of device programs; empty for other modules."""

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
    """Kind of the project: a shared object, an executable, or both; an executable that only runs
    what files hold; or the C++ alone, for a program that calls its functions."""
    mesh: tuple[int, int] = (1, 1)
    """Rows and columns of the mesh of chips that the functions run on."""
    hosts: tuple[int, int] = (1, 1)
    """Rows and columns of the hosts that the mesh is divided among, one process of the executable
    on each."""
    fabric: Fabric = "linear"
    """The links that the project configures for a mesh."""
    has_flatbuffer: bool = True
    """True if the project has the same program as a flatbuffer."""
    traced: bool = False
    """True if its calls are captured as traces of the device, and replayed."""
    card: str = ""
    """The card that the CPU backend emulates for it, as in `card_text`."""
    weights: tuple[DataFile, ...] = ()
    """Weights whose values are known, under the names that `weight_file` gives."""
    structures: Mapping[str, tuple[Structure, Structure]] = field(
        default_factory=dict[str, "tuple[Structure, Structure]"]
    )
    """By the name of a function: how its inputs hang together, as a tuple of what is given by
    place and a dictionary of what is given by name, and how its outputs do."""
    weight_files: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Files of weights that functions share, by the names of function and weight."""
    state: tuple[StateTensor, ...] = ()
    """Tensors that functions change in place, and share."""
    pipelines: tuple[PipelineDescription, ...] = ()
    """The functions in stages, if they are; the C++ has the stages."""
    generation: Mapping[str, Any] | None = None
    """Of a decoder: its functions by their roles, as the manifest has them."""

    @property
    def cpp_functions(self) -> tuple[FunctionDescription, ...]:
        """The functions that the C++ has."""
        stages = [stage.function for each in self.pipelines for stage in each.stages]
        return tuple(stages) or self.functions

    @cached_property
    def _whole_weights(
        self,
    ) -> Mapping[tuple[str, str], tuple[FunctionDescription, TensorDescription]]:
        """The whole function and its weight, by the names of a stage and of a weight there."""
        return {
            (stage.function.name, weight.name): (function, function.weights[number])
            for function, pipeline in zip(self.functions, self.pipelines, strict=False)
            for stage in pipeline.stages
            for weight, number in zip(stage.function.weights, stage.weights, strict=True)
        }

    @property
    def has_library(self) -> bool:
        """True if the project has a shared object with a C API."""
        return self.kind in KINDS_WITH_LIBRARY

    @property
    def has_executable(self) -> bool:
        """True if the project has a program with a command line."""
        return self.kind in KINDS_WITH_EXECUTABLE

    @property
    def has_entry_points(self) -> bool:
        """True if there is anything that calls the functions by their descriptions."""
        return self.has_library or self.has_executable

    def weight_file(self, function: FunctionDescription, weight: TensorDescription) -> str:
        """The name, without folder and ending, of the file with the values of a weight.

        Functions of a module may use one name for different things, so the name of the function
        is part of it where there are several, unless they are known to be one tensor; and it is
        not that of a module's constant.
        """
        function, weight = self._whole_weights.get((function.name, weight.name), (function, weight))
        shared = self.weight_files.get((function.name, weight.name))
        if shared is not None:
            return shared
        name = weight.field
        if len(self.functions) > 1:
            name = f"{function.cpp_name}.{name}"
        taken = {file.name for file in self.data}
        return f"{name}.weight" if name in taken else name


# How a model's arguments and results hang together: tuples, lists and dictionaries of tensors.
#
# A program has a flat list of inputs and outputs. The manifest keeps the structure that they had
# in the model, so that a loaded function takes and gives what the model did.


class StructureError(ValueError):
    """Mismatch between a given structure and the expected one."""


@dataclass(frozen=True)
class Structure:
    """A tensor, something that is no tensor, or a container of such."""

    kind: str
    """tensor, value, tuple, list, dict or record (a tuple or an object with named fields)."""
    index: int = 0
    """Of a tensor: which of the flat list it is."""
    value: Any = None
    """Of what is no tensor: what the model was compiled for. Of a record: what it is called."""
    keys: tuple[Any, ...] = ()
    """Of a dictionary or a record: what the parts are called."""
    parts: tuple[Structure, ...] = ()

    @staticmethod
    def of(value: Any, leaf: Callable[[Any], Structure]) -> Structure:
        """The structure of containers; `leaf` gives that of whatever is none."""

        def parts(values: Sequence[Any]) -> tuple[Structure, ...]:
            return tuple(Structure.of(each, leaf) for each in values)

        if value is None:
            return Structure("value")
        if isinstance(value, Mapping):
            entries = cast("Mapping[Any, Any]", value)
            return Structure("dict", keys=tuple(entries), parts=parts(list(entries.values())))
        names = getattr(value, "_fields", None)
        if isinstance(value, tuple) and names:
            record = cast("tuple[Any, ...]", value)
            return Structure("record", 0, type(record).__name__, tuple(names), parts(record))
        if isinstance(value, tuple):
            return Structure("tuple", parts=parts(cast("Sequence[Any]", value)))
        if isinstance(value, list):
            return Structure("list", parts=parts(cast("Sequence[Any]", value)))
        return leaf(value)

    def tensors(self, value: Any, path: str = "") -> Iterator[tuple[int, Any]]:
        """Each tensor of what hangs together so, with its index in the flat list.

        Raises:
            StructureError: at the first location that is otherwise.
        """
        match self.kind:
            case "tensor":
                yield self.index, value
            case "value":
                if not _equal(value, self.value):
                    raise StructureError(
                        f"{_named(path)}the model was compiled for {self.value!r}, found {value!r}"
                    )
            case "dict":
                if not isinstance(value, Mapping) or set(cast("Any", value)) != set(self.keys):
                    raise StructureError(
                        f"{_named(path)}expected a dictionary of {', '.join(map(str, self.keys))}"
                    )
                entries = cast("Mapping[Any, Any]", value)
                for key, part in zip(self.keys, self.parts, strict=True):
                    yield from part.tensors(entries[key], f"{path}[{key!r}]")
            case "record" if not isinstance(value, (tuple, list)):
                for key, part in zip(self.keys, self.parts, strict=True):
                    yield from part.tensors(getattr(value, str(key)), f"{path}.{key}")
            case _:
                listed = cast("Sequence[Any]", value)
                if not isinstance(value, (tuple, list)) or len(listed) != len(self.parts):
                    raise StructureError(
                        f"{_named(path)}expected a {self.kind} of {len(self.parts)}"
                    )
                for index, part in enumerate(self.parts):
                    yield from part.tensors(listed[index], f"{path}[{index}]")

    def build(self, tensors: Sequence[Any]) -> Any:
        """The tensors of a flat list, put together."""
        match self.kind:
            case "tensor":
                return tensors[self.index]
            case "value":
                return self.value
            case "dict":
                return {k: p.build(tensors) for k, p in zip(self.keys, self.parts, strict=True)}
            case "record":
                # The class of the model is not known here, only what its fields are called.
                record: Any = cast("Any", collections).namedtuple(str(self.value), self.keys)
                return record(*(part.build(tensors) for part in self.parts))
            case "list":
                return [part.build(tensors) for part in self.parts]
            case _:
                return tuple(part.build(tensors) for part in self.parts)

    def names(self, prefix: str) -> Iterator[tuple[int, str]]:
        """Candidate name of each tensor by the keys that lead to it: `logits`, `cache.0.key`."""
        if self.kind == "tensor":
            yield self.index, prefix
            return
        for key, part in zip(self.keys or range(len(self.parts)), self.parts, strict=True):
            alone = len(self.parts) == 1 and self.kind in ("tuple", "list")
            inner = prefix if alone else f"{prefix}.{key}" if prefix else str(key)
            yield from part.names(inner)

    def to_json(self) -> Any:
        """As the manifest has it."""
        match self.kind:
            case "tensor":
                return self.index
            case "value":
                return {"value": self.value}
            case "dict" | "record":
                entries = [[k, p.to_json()] for k, p in zip(self.keys, self.parts, strict=True)]
                name = {"name": self.value} if self.kind == "record" else {}
                return {self.kind: entries, **name}
            case _:
                return {self.kind: [part.to_json() for part in self.parts]}

    @staticmethod
    def from_json(content: Any) -> Structure:
        """Raises ValueError, TypeError or KeyError if it is nothing that `to_json` gives."""
        if isinstance(content, int):
            return Structure("tensor", index=content)
        fields = dict(cast("Mapping[str, Any]", content))
        for kind in ("tuple", "list"):
            if kind in fields:
                return Structure(kind, parts=tuple(map(Structure.from_json, fields[kind])))
        for kind in ("dict", "record"):
            if kind in fields:
                keys = tuple(key for key, _ in fields[kind])
                parts = tuple(Structure.from_json(part) for _, part in fields[kind])
                return Structure(kind, value=fields.get("name"), keys=keys, parts=parts)
        return Structure("value", value=fields["value"])


def static(value: Any) -> Structure:
    """Non-tensor leaves.

    Raises:
        CompileError: if the manifest could not hold it.
    """
    if isinstance(value, (bool, int, float, str)):
        return Structure("value", value=value)
    raise CompileError(
        f"arguments of type {type(value).__name__} are not supported",
        remedy="give tensors, numbers, text, and tuples, lists and dictionaries of them",
    )


def _equal(value: Any, expected: Any) -> bool:
    try:
        return bool(value == expected)
    except ValueError:
        return False


def _named(path: str) -> str:
    return f"argument {path}: " if path else ""


# How closely a card can meet what an output should be, by what the output was computed of.


def output_tolerance(value: SSAValue, source_dtype: str) -> Tolerance:
    """The tolerance of an output of a lowered function; `source_dtype` is its data type in the
    source."""
    found = source_tolerance(declared_data_type(value), source_dtype)
    if found is EQUAL:
        return found
    for op in _producers(value):
        if any(is_narrow(declared_data_type(result)) for result in op.results):
            found = loosest(found, SIXTEEN_BITS)
        found = loosest(found, _engine_tolerance(op))
    return usually(squeezed(found, _saturation(value)))


def source_tolerance(data_type: DataType, source_dtype: str) -> Tolerance:
    """The closest tolerance of outputs of a type, which are exact if those of the source are."""
    if source_dtype == "bool" or source_dtype.startswith(("int", "uint")):
        return EQUAL
    return tolerance_of_type(data_type)


_ARCHITECTURE = "wormhole_b0"
"""Configurations of the other one are as exact."""


def _engine_tolerance(op: TTNNOp) -> Tolerance:
    """Tolerance due to the engines of a call, by its configuration or the library's default."""
    definition = op.definition
    if not isinstance(definition, TTNNDefinition):
        return VECTOR_ENGINE
    if op.name == LIBRARY_CALL:
        # Which engines its kernels use is not known here.
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
            _ARCHITECTURE,
        )
    arithmetic = Arithmetic.of(config)
    # The exponentials of attention are approximations whatever is configured.
    approximates = row == "attention" or (row == "softmax" and arithmetic.approximate)
    if arithmetic.second_bits < 7 or approximates:
        return FEW_BITS
    if arithmetic.first_bits < 7 or arithmetic.narrow_sums:
        return SIXTEEN_BITS
    return MATRIX_ENGINE


def _saturation(value: SSAValue) -> Saturation | None:
    """The saturating function that gave a value, by itself or as the activation of a product."""
    op = value.owner
    while isinstance(op, TTNNOp) and op.operands and not _computes(op):
        op = op.operands[0].owner
    if not isinstance(op, TTNNOp):
        return None
    return saturation_of(op.definition.short_name, op.parameters())


def _computes(op: TTNNOp) -> bool:
    return isinstance(op.definition, TTNNDefinition) and op.definition.computes


def _producers(value: SSAValue) -> list[TTNNOp]:
    """The ttnn calls that a value was computed by, in no order."""
    found: dict[Operation, None] = {}
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            pending += owner.operands
    return [op for op in found if isinstance(op, TTNNOp)]
