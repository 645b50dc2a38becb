"""Golden runs of the source in numpy, and golden values in a flatbuffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import ml_dtypes  # registers bfloat16 with numpy
import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import numpy_name
from ttcodegen.dialects.operations.functions import callee_of, location_text
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.array_files import load_array
from ttcodegen.foundation.diagnostics import CompileError, Source, source_offset
from ttcodegen.foundation.messages import did_you_mean
from ttcodegen.frontends import source_module
from ttcodegen.naming.arguments import argument_names
from ttcodegen.numerics.comparison import Tolerance, compare
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.numerics.execution import (
    ExecutionError,
    Executor,
    Function,
    Observation,
    Observer,
    Step,
)
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.numerics.rounding import in_compute_dtype
from ttcodegen.ops.core.definition import TTNNDefinition
from ttcodegen.ops.dialects import TTNNOp
from ttcodegen.transforms.rewriting import body_of

# Golden run: the source program in numpy, before any lowering.
#
# Floats are computed in float32 (float64 in float64) and not rounded between ops; integers wrap
# in their own type; i1 is bool.

assert ml_dtypes is not None


@dataclass(frozen=True)
class SourceTensor:
    """A tensor of the source."""

    shape: tuple[int, ...]
    dtype: str

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array in the compute dtype."""
        return in_compute_dtype(array, self.dtype)

    def keeps(self, moved: SourceTensor) -> bool:
        """Returns whether both have one dtype: nothing is rounded then."""
        return self.dtype == moved.dtype


class Golden:
    """Runs the functions of a TTIR module, which must not change meanwhile.

    Raises:
        CompileError: at an op or a type that has no meaning in numpy.
    """

    def __init__(self, module: ModuleOp, observe: Observer | None = None) -> None:
        functions = [_function(op) for op in module.ops if isinstance(op, FuncOp)]
        self._executor = Executor({function.name: function for function in functions}, observe)

    def run(self, name: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results of a function: float32, float64, integers and bool; inputs are not
        modified.

        Raises:
            CompileError: if there is no such function, or the inputs do not fit it.
            ExecutionError: if an op fails or gives another shape than the source declares.
        """
        return self._executor.run(name, inputs)


def _function(function: FuncOp) -> Function:
    block = body_of(function)
    tensors: list[SourceTensor] = []
    index: dict[SSAValue, int] = {}
    types: dict[Attribute, SourceTensor] = {}

    def add(value: SSAValue, op: Operation) -> int:
        tensor = types.get(value.type)
        if tensor is None:
            tensor = types[value.type] = _tensor(value.type, op)
        index[value] = len(tensors)
        tensors.append(tensor)
        return index[value]

    names = argument_names(function)
    arguments = [
        (name, add(argument, function)) for name, argument in zip(names, block.args, strict=True)
    ]
    steps: list[Step] = []
    results: list[int] = []
    for op in block.ops:
        operands = tuple([index[value] for value in op.operands])
        if isinstance(op, ReturnOp):
            results.extend(operands)
            continue
        step_results = tuple([add(result, op) for result in op.results])
        steps.append(_step(op, operands, step_results))
    return Function.of(function.sym_name.data, tensors, arguments, steps, results)


def _tensor(type_: Attribute, op: Operation) -> SourceTensor:
    tensor = cast("TensorType[Attribute]", type_) if isinstance(type_, TensorType) else None
    dtype = numpy_name(tensor.element_type) if tensor is not None else None
    if tensor is None or dtype is None:
        raise CompileError(f"values of type {type_} cannot be computed on the host", op)
    return SourceTensor(tuple(tensor.get_shape()), dtype)


def _step(op: Operation, operands: tuple[int, ...], results: tuple[int, ...]) -> Step:
    location = location_text(op)
    if (callee := callee_of(op)) is not None:
        trips = op.trips if isinstance(op, WhileLoopOp) else None
        counted = None if trips is None else {file.TRIP_COUNT: trips}
        return Step(op.name, location, operands, results, attributes=counted, callee=callee)
    if not isinstance(op, CatalogueOp) or op.definition.numpy is None:
        raise CompileError(f"'{operation_name(op)}' cannot be computed on the host", op)
    try:
        sizes, attributes = tuple(op.segments()), op.parameters()
    except VerifyException as error:
        raise CompileError(str(error), op) from None
    if op.definition.chips is not None:
        attributes["mesh_shape"] = declared_mesh(op)
    return Step(op.name, location, operands, results, op.definition, sizes, attributes)


# Embedding of golden values in a flatbuffer.
#
# The source is run on drawn inputs. Ops of the lowered program are matched to source ops by their
# position in the source text, and compared in a run of the lowered program without rounding.
# Tensors whose elements lowering reordered (a transpose exchanged with a sum) get no golden
# value; tensors that should equal the source and do not get one, so that a run shows it.


# Float32 sums in possibly different orders.
_SAME = Tolerance(0.9999, 0.01, 0.01, deviation=2.0**-14, rounding=2.0**-12, agreement=0.99)


def embed_goldens(source: Source, lowered: ModuleOp, flatbuffer: bytes, seed: int) -> bytes:
    """Returns the file with golden values.

    Args:
        source: the text that was compiled.
        lowered: the module that the file was written from.
        flatbuffer: the file.
        seed: of the inputs.

    Raises:
        CompileError: if the source cannot be run in numpy, or the values do not fit into the file.
    """
    module = source_module(source, mesh=declared_mesh(lowered))
    binary = read_ttnn(flatbuffer)
    values: dict[str, dict[int, np.ndarray]] = {program.name: {} for program in binary.programs}
    for function in module.ops:
        if isinstance(function, FuncOp) and function.sym_name.data in values:
            program = binary.program(function.sym_name.data)
            if program.kind == "entry":
                _add_values(_SourceRun(module, function, seed), lowered, binary, program, values)
    return with_goldens(binary, values)


class _SourceRun:
    """A run of a source function on drawn inputs."""

    def __init__(self, module: ModuleOp, function: FuncOp, seed: int) -> None:
        self._places = {
            op.sym_name.data: _places(op) for op in module.ops if isinstance(op, FuncOp)
        }
        self.values: dict[tuple[int, int], np.ndarray | None] = {}
        """Results of ops by text position of the op and result index; None for ops that ran
        repeatedly."""
        self.inputs = list(draw_inputs(module, function, seed).values())
        name = function.sym_name.data
        try:
            self.outputs = Golden(module, self._observe).run(name, self.inputs)
        except ExecutionError as error:
            raise CompileError(f"'{name}' has no golden values: {error}", function) from None

    def _observe(self, observation: Observation) -> None:
        function = observation.function
        if observation.step.callee is not None:
            return
        # Results are numbered after the arguments, in the order of the ops.
        first = observation.step.results[0] if observation.step.results else None
        place = None if first is None else self._places[function.name].get(first)
        if place is None:
            return
        for index, array in enumerate(observation.results):
            key = (place, index)
            self.values[key] = None if key in self.values else np.array(array)


def _places(function: FuncOp) -> dict[int, int]:
    """Returns the text position of each op, by the number of its first result."""
    places: dict[int, int] = {}
    number = len(function.args)
    for op in body_of(function).ops:
        offset = source_offset(op)
        if op.results and offset is not None:
            places[number] = offset
        number += len(op.results)
    return places


def _add_values(
    run: _SourceRun,
    lowered: ModuleOp,
    binary: file.Binary,
    program: file.Program,
    values: dict[str, dict[int, np.ndarray]],
) -> None:
    """Adds the golden values of a program and of its callees."""
    computed = _unrounded(binary, program, run.inputs)
    functions = {op.sym_name.data: op for op in lowered.ops if isinstance(op, FuncOp)}
    for name, results in computed.items():
        candidates = _candidates(functions[name], binary.program(name), run)
        for tensor, candidate in candidates.items():
            if tensor in results and candidate.holds(results[tensor]):
                values[name][tensor] = candidate.golden
    own = values[program.name]
    own |= {e.tensor: a for e, a in zip(program.inputs, run.inputs, strict=True)}
    # Returned values have to be right in any case.
    own |= {e.tensor: a for e, a in zip(program.outputs, run.outputs, strict=True)}


@dataclass(frozen=True)
class _Candidate:
    """A source value that a tensor may hold."""

    golden: np.ndarray
    is_result: bool
    """True if the tensor is the last one computed for the source op."""

    def holds(self, computed: np.ndarray) -> bool:
        """Returns whether the value is the golden value of a tensor that holds `computed` without
        rounding."""
        expected = self.golden
        if expected.dtype.kind == "b":
            computed = computed != 0
        if compare(computed, expected, _SAME).passed:
            return True
        moved = compare(_sorted(computed), _sorted(expected), _SAME).passed
        return self.is_result and not moved


def _sorted(array: np.ndarray) -> np.ndarray:
    return np.sort(array, axis=None)


def _only_moves(op: Operation) -> bool:
    if not isinstance(op, TTNNOp) or not isinstance(op.definition, TTNNDefinition):
        return False
    return not op.definition.computes


def _candidates(function: FuncOp, program: file.Program, run: _SourceRun) -> dict[int, _Candidate]:
    """Returns source values that tensors of a program may hold, by tensor number."""
    found: dict[int, _Candidate] = {}
    last: dict[tuple[int, int], int] = {}
    ops: list[Operation] = [op for op in body_of(function).ops if not isinstance(op, ReturnOp)]
    for op, operation in zip(ops, program.operations, strict=True):
        place = source_offset(op)
        if place is None:
            continue
        computes = not _only_moves(op)
        for index, tensor in enumerate(operation.results):
            golden = run.values.get((place, index))
            if golden is None or golden.shape != program.tensors[tensor].type.shape:
                continue
            found[tensor] = _Candidate(golden, False)
            if computes and program.kind == "entry":
                last[place, index] = tensor
    for tensor in last.values():
        found[tensor] = replace(found[tensor], is_result=True)
    return found


def _unrounded(
    binary: file.Binary, program: file.Program, inputs: Sequence[np.ndarray]
) -> Mapping[str, Mapping[int, np.ndarray]]:
    """Returns the values of all tensors without rounding, by program and number."""
    computed: dict[str, dict[int, np.ndarray]] = {program.name: {}}

    def observe(observation: Observation) -> None:
        known = computed.setdefault(observation.function.name, {})
        for tensor, array in zip(observation.step.results, observation.results, strict=True):
            known[tensor] = array

    try:
        Interpreter(binary, observe, rounds=False).run(program.name, inputs)
    except ExecutionError as error:
        raise CompileError(f"'{program.name}' has no golden values: {error}") from None
    return computed


def with_goldens(binary: file.Binary, values: Mapping[str, Mapping[int, np.ndarray]]) -> bytes:
    """Returns the file with golden values, given by program and tensor number."""
    constants = list(binary.constants)
    known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def index_of(array: np.ndarray) -> int:
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in known:
            known[key] = len(constants)
            constants.append(file.Constant(*key))
        return known[key]

    programs = tuple(
        replace(
            program,
            goldens=tuple(
                file.Golden(tensor, index_of(array))
                for tensor, array in sorted(values[program.name].items())
            ),
        )
        for program in binary.programs
    )
    size = sum(len(constant.elements) + 32 for constant in constants)
    schema = load_schema("ttnn.fbs")
    return encode(schema, replace(binary, programs=programs, constants=tuple(constants)), size)


# Embedding of external golden values, named by tensors.

_STORED = {"f": np.float32, "i": np.int32, "u": np.uint32, "b": np.bool_}


def embed_golden_map(flatbuffer: bytes, goldens: Mapping[str, np.ndarray]) -> bytes:
    """Returns the file with golden values for the tensors that the keys name.

    A key is the name of an input or output, `input_N` or `output_N` by index, or the location of an
    op: the last op there whose result has the value's shape. It applies to all programs with such a
    tensor.

    Raises:
        CompileError: if no program has what a key names, or only in another shape.
    """
    binary = read_ttnn(flatbuffer)
    values: dict[str, dict[int, np.ndarray]] = {program.name: {} for program in binary.programs}
    named = {program.name: _tensors_by_key(program) for program in binary.programs}
    for key, given in goldens.items():
        array = np.ascontiguousarray(given.astype(_STORED.get(given.dtype.kind, given.dtype)))
        shapes: set[tuple[int, ...]] = set()
        found = False
        for program in binary.programs:
            for tensor in reversed(named[program.name].get(key, [])):
                shapes.add(program.tensors[tensor].type.shape)
                if program.tensors[tensor].type.shape == array.shape:
                    values[program.name][tensor] = array
                    found = True
                    break
        if not found:
            raise CompileError(
                _misfit(key, array, shapes, {k for keys in named.values() for k in keys})
            )
    return with_goldens(binary, values)


def _tensors_by_key(program: file.Program) -> dict[str, list[int]]:
    """Returns the tensors that a key may name, in execution order."""
    found: dict[str, list[int]] = {}
    for operation in program.operations:
        if operation.location is not None:
            found.setdefault(operation.location, []).extend(operation.results)
    for kind, entries in (("input", program.inputs), ("output", program.outputs)):
        for place, entry in enumerate(entries):
            found[f"{kind}_{place}"] = [entry.tensor]
            if entry.name:
                found[entry.name] = [entry.tensor]
    return found


def _misfit(key: str, array: np.ndarray, shapes: set[tuple[int, ...]], known: set[str]) -> str:
    if not shapes:
        return f"no program has an input, output or location '{key}'{did_you_mean(key, known)}"
    having = " or ".join(str(shape) for shape in sorted(shapes))
    return f"the golden value of '{key}' has the shape {array.shape}, what it is for {having}"


def read_golden_map(folder: Path) -> dict[str, np.ndarray]:
    """Returns the golden values in a folder, by the relative paths of their .npy files.

    Raises:
        CompileError: if there are none, or one is damaged.
    """
    found: dict[str, np.ndarray] = {}
    for path in sorted(folder.rglob("*.npy")):
        array = load_array(path)
        if array.dtype.kind not in _STORED:
            raise CompileError(f"'{path}' holds no real numbers")
        found[str(path.relative_to(folder).with_suffix(""))] = array
    if not found:
        raise CompileError(f"there is no .npy file in '{folder}'")
    return found
