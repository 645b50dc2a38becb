"""Random inputs within the range of a model, drawn by the uses of its arguments."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from ttcodegen.dialects.core.datatypes import (
    DataType,
    element_of,
    is_boolean,
    normalized_data_type,
    numpy_name,
    shape_of,
)
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp, Required
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.arguments import VARIANCES, argument_names, is_variance
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.ops.core.definition import (
    TTIR,
    Definition,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    traits_of,
)
from ttcodegen.ops.core.traits import Trait

# Uses of arguments: the operands that their elements reach.

_NEGLIGIBLE = 0.01


@dataclass(frozen=True)
class Use:
    """An operand of an op that elements of an argument reach unchanged, up to a small offset."""

    op: CatalogueOp
    spec: OperandSpec
    as_float: bool
    """True if integer elements were converted to floats before."""

    @property
    def name(self) -> str:
        """Returns the name of the op without dialect."""
        return _short_name(self.op)

    @property
    def traits(self) -> Trait:
        """Returns the traits of the op, or of the TTIR op that it implements."""
        return traits_of(_meant(self.op))


def _short_name(op: Operation) -> str:
    return op.name.partition(".")[2]


class Usage:
    """Uses of values through ops and calls of a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}

    def moved(self, value: SSAValue) -> list[Use]:
        """Returns the uses of `value` and of moved copies of it, also with a small constant added.

        The constant may be the epsilon of a variance.
        """
        return list(self._walk(value, _moves))

    def as_index(self, value: SSAValue) -> list[Use]:
        """Returns the uses of `value`, or of values computed from it, as an index."""
        uses = self._walk(value, lambda use: _moves(use) or _shifts_index(use))
        return [use for use in uses if use.spec.input_kind == "index"]

    def beyond_bounds(self, value: SSAValue) -> tuple[int, int] | None:
        """Returns one past the last index and one before the first, if all uses handle these.

        Uses handle out-of-bounds indices by clamping or ignoring them. None if `value` is no index,
        or some use does not handle them.
        """
        uses = list(self._walk(value, lambda use: _moves(use) or _is_free_index(use)))
        last = [use.op.parameter("max") for use in uses if use.name == "clamp_scalar"]
        for use in uses:
            if use.spec.input_kind == "index":
                # The library's scatter, of the same name, lacks the attribute and checks no bounds.
                if not use.op.parameters().get("scatter_dims_to_operand_dims"):
                    return None
                last += [size - 1 for size in use.op.shape(use.op.definition.operands[0].name)]
        return (int(max(last)) + 1, -1) if last and self.as_index(value) else None

    def _walk(self, value: SSAValue, follows: Callable[[Use], bool]) -> Iterator[Use]:
        was_float = _is_float(value)
        seen = {value}
        pending = [value]
        while pending:
            current = pending.pop()
            as_float = not was_float and _is_float(current)
            for use in current.uses:
                reached: list[SSAValue] = []
                op = use.operation
                if (callee := self._functions.get(callee_of(op) or "")) is not None:
                    # The condition of a loop is not passed to its body.
                    flags = isinstance(op, WhileLoopOp) and op.going is not None
                    position = use.index - flags
                    if 0 <= position < len(callee.args):
                        reached = [callee.args[position]]
                elif isinstance(op, CatalogueOp):
                    found = Use(op, _spec_of(op, use.index), as_float)
                    yield found
                    reached = list(op.results) if follows(found) else []
                for result in reached:
                    if result not in seen:
                        seen.add(result)
                        pending.append(result)


def _is_float(value: SSAValue) -> bool:
    data_type = normalized_data_type(element_of(value.type))
    return data_type is not None and data_type.is_float


def _spec_of(op: CatalogueOp, index: int) -> OperandSpec:
    """Returns the spec of an operand; for a ttnn call, that of the TTIR op that it implements."""
    for spec, size in zip(op.definition.operands, op.segments(), strict=True):
        if index < size:
            meant = _meant(op)
            return next((other for other in meant.operands if other.name == spec.name), spec)
        index -= size
    raise IndexError(f"{op.name} has no operand {index}")


def _meant(op: CatalogueOp) -> Definition:
    """Returns the TTIR op of the same name, else the op itself.

    The op itself also if the TTIR op requires attributes that the call lacks, and so is another op.
    """
    meant = TTIR.get(_short_name(op))
    if meant is None:
        return op.definition
    known = {spec.name for spec in op.definition.attributes}
    needed = {spec.name for spec in meant.attributes if spec.default is Required.REQUIRED}
    return meant if needed <= known else op.definition


def _moves(use: Use) -> bool:
    if _is_movement(use.op):
        return use.spec.name == use.op.definition.operands[0].name
    return use.name == "add" and any(map(_is_negligible, use.op.operands))


def _is_movement(op: CatalogueOp) -> bool:
    meant = _meant(op)
    if traits_of(op.definition) & Trait.PLACES:
        return True
    return isinstance(meant, TTIRDefinition) and meant.moves


def _is_negligible(value: SSAValue) -> bool:
    """Returns whether all elements are one small number, possibly reshaped or broadcast."""
    while isinstance(value.owner, CatalogueOp) and _is_movement(value.owner):
        value = value.owner.operands[0]
    splat = splat_of(value)
    return splat is not None and abs(splat) <= _NEGLIGIBLE


def comes_from_argument(value: SSAValue) -> bool:
    """Returns whether `value` consists of moved elements of an argument."""
    while isinstance(value.owner, CatalogueOp) and _is_movement(value.owner):
        value = value.owner.operands[0]
    return isinstance(value, BlockArgument)


def weights_of(op: CatalogueOp) -> list[SSAValue]:
    """Returns the operands that are weights of the op."""
    weights = {spec.name for spec in _meant(op).operands if spec.input_kind == "weight"}
    return [v for name, group in op.operand_groups().items() if name in weights for v in group]


def _is_free_index(use: Use) -> bool:
    """Returns whether the result may be out of bounds if the operand is."""
    return _shifts_index(use) and use.name != "clamp_scalar"


def _shifts_index(use: Use) -> bool:
    return Trait.INDEX_ARITHMETIC in use.traits and use.spec.name != "condition"


def depends_on_floats(module: ModuleOp, function: FuncOp) -> list[bool]:
    """Returns for each result of a function whether it is computed from floats."""
    return reaching(module, function, lambda v: _is_float(v) and not _is_boolean(v))


def depends_on_draws(module: ModuleOp, function: FuncOp, *, in_programs: bool) -> list[bool]:
    """Returns for each result of a function whether it depends on random numbers that differ by
    run.

    With `in_programs`, random numbers of device programs and of CPU functions that replace them are
    reproducible and do not count.
    """

    def is_drawn(value: SSAValue) -> bool:
        owner = value.owner
        if not isinstance(owner, CatalogueOp):
            return False
        meant = _meant(owner)
        if in_programs and isinstance(meant, TTIRDefinition) and meant.tile is not None:
            return False
        return isinstance(meant, TTIRDefinition | TTNNDefinition) and meant.draws

    return reaching(module, function, is_drawn)


def reaching(module: ModuleOp, function: FuncOp, wanted: Callable[[SSAValue], bool]) -> list[bool]:
    """Returns for each result of a function whether it is computed from a value of that kind."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    block = function.body.blocks.first
    terminator = block.last_op if block is not None else None
    assert terminator is not None
    return [_reaches(value, functions, wanted) for value in terminator.operands]


def _reaches(
    value: SSAValue, functions: dict[str, FuncOp], wanted: Callable[[SSAValue], bool]
) -> bool:
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if wanted(current):
            return True
        owner = current.owner
        if isinstance(owner, Operation):
            pending.extend(owner.operands)
            callee = functions.get(callee_of(owner) or "")
            block = callee.body.blocks.first if callee is not None else None
            if block is not None and block.last_op is not None:
                pending.extend(block.last_op.operands)
    return False


def _is_boolean(value: SSAValue) -> bool:
    return is_boolean(element_of(value.type))


# Drawing of inputs within the range of a model.
#
# Distributions follow from the uses of an argument: weights are scaled by the number of summed
# products, indices are in bounds, divisors and variances are away from zero, masks are masks.
# Where the uses do not determine it, the name from the frontend does.

Draw = Callable[[np.random.Generator, int], np.ndarray]
"""Draws a number of elements."""

MASKED = -10000.0
"""Additive mask value that makes softmax zero in all float types."""
_MASKED_PART = 0.25
_EPSILONS = (1e-6, 1e-5)
_LARGEST = 2**31 - 1
_UNSIGNED = (DataType.UINT8, DataType.UINT16, DataType.UINT32)
_FLOAT_PLACES = 256
"""Bound below which bf16 represents every integer."""
_CHUNK = 1 << 22
_MASK_NAME = re.compile(r"(^|[^a-z])(mask|masks)([^a-z]|$)")
_INVERSE_FREQUENCY_NAME = re.compile(r"inv_?freq")
_WIDE = 32
"""Bit width of integers that neither float32 nor the matrix engine represents."""


def draw_inputs(module: ModuleOp, function: FuncOp, seed: int) -> dict[str, np.ndarray]:
    """Returns inputs of a TTIR function by argument name, in their order and types.

    Values depend on the seed, the names of function and argument, and the uses. The device types of
    the source types represent them exactly, so that every run gets the same numbers.

    Raises:
        CompileError: at an argument whose type has no meaning in numpy.
    """
    usage = Usage(module)
    names = argument_names(function)
    drawings = [
        _drawing(usage, function, argument, name, seed)
        for name, argument in zip(names, function.args, strict=True)
    ]
    # Each argument has its own generator, and numpy releases the GIL while drawing.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        arrays = pool.map(_drawn, drawings)
        return dict(zip(names, arrays, strict=True))


def _drawn(drawing: Callable[[], np.ndarray]) -> np.ndarray:
    return drawing()


def _drawing(
    usage: Usage, function: FuncOp, argument: BlockArgument, name: str, seed: int
) -> Callable[[], np.ndarray]:
    """Returns a generator of the values of an argument."""
    element_type = element_of(argument.type)
    dtype, data_type = numpy_name(element_type), normalized_data_type(element_type)
    if dtype is None or data_type is None:
        raise CompileError(f"inputs of type {element_type} cannot be drawn", function)
    shape = shape_of(argument.type)
    uses = usage.moved(argument)
    hides = False
    if dtype == "bool":
        hides = is_mask(name, uses)
        draw = _booleans(1 - _MASKED_PART if hides else 0.5)
    elif data_type.is_float:
        hides = masks_scores(name, uses)
        draw = _attention_mask if hides else _floats(name, uses)
        if not hides and math.prod(shape) == 1 and _is_epsilon(usage, uses):
            draw = _uniform(*_EPSILONS)
    else:
        draw = _integers(name, uses, usage.as_index(argument), data_type)
    digest = hashlib.sha256("\0".join([str(seed), function.sym_name.data, name]).encode()).digest()

    def drawn() -> np.ndarray:
        if len(shape) > 1 and any(use.spec.input_kind == "expert_mapping" for use in uses):
            return np.broadcast_to(_expert_mapping(*shape[-2:]), shape).astype(np.dtype(dtype))
        array = _fill(shape, dtype, data_type, draw, np.random.default_rng(list(digest)))
        if hides and array.ndim and array.size:
            # A fully masked row has no softmax.
            array[..., 0] = dtype == "bool"
        return array

    return drawn


def _fill(
    shape: tuple[int, ...], dtype: str, data_type: DataType, draw: Draw, rng: np.random.Generator
) -> np.ndarray:
    """Returns an array of drawn elements, drawn in chunks to save memory in wider types."""
    array = np.empty(math.prod(shape), dtype=np.dtype(dtype))
    for start in range(0, array.size, _CHUNK):
        part = draw(rng, min(_CHUNK, array.size - start))
        if data_type is DataType.BFLOAT16:
            part = part.astype(ml_dtypes.bfloat16)
        array[start : start + _CHUNK] = part.astype(array.dtype, copy=False)
    return array.reshape(shape)


def is_mask(name: str, uses: Sequence[Use]) -> bool:
    """Returns whether an argument of that name and those uses is a mask."""
    return _MASK_NAME.search(name.lower()) is not None or any(
        use.spec.input_kind in ("mask", "attention_mask") for use in uses
    )


def masks_scores(name: str, uses: Sequence[Use]) -> bool:
    """Returns whether a float mask is added to scores, instead of multiplied."""
    if any(use.spec.input_kind == "attention_mask" for use in uses):
        return True
    return _MASK_NAME.search(name.lower()) is not None and any(use.name == "add" for use in uses)


# Floats


def _floats(name: str, uses: Sequence[Use]) -> Draw:
    if any(use.spec.input_kind == "variance" for use in uses) or is_variance(name):
        return _uniform(*VARIANCES)
    if is_mask(name, uses):
        return _booleans(0.5)
    if _INVERSE_FREQUENCY_NAME.search(name.lower()):
        return _inverse_frequencies
    if indexing := [use for use in uses if use.spec.input_kind == "index"]:
        high = min(*map(_places, indexing), _FLOAT_PLACES)
        return lambda rng, count: rng.integers(0, high, count)
    if (domain := common_domain(uses)) is not None:
        return _uniform(*domain)
    return _normal(1.0 / math.sqrt(_largest_fan_in(uses)))


def common_domain(uses: Sequence[Use]) -> tuple[float, float] | None:
    """Returns the common domain of well-conditioned uses; that of the first if it is empty."""
    domains = [use.spec.domain for use in uses if use.spec.domain is not None]
    if not domains:
        return None
    low, high = max(low for low, _ in domains), min(high for _, high in domains)
    return (low, high) if low <= high else domains[0]


def _is_epsilon(usage: Usage, uses: Sequence[Use]) -> bool:
    """Returns whether a number is added to a value that has to be positive, such as a variance."""
    sums = [use.op.results[0] for use in uses if use.name == "add"]
    reached = [use.spec.domain for result in sums for use in usage.moved(result)]
    return any(domain is not None and domain[0] >= 0 for domain in reached)


def _largest_fan_in(uses: Sequence[Use]) -> int:
    return max(map(_fan_in, uses), default=1) or 1


def _fan_in(use: Use) -> int:
    """Returns the number of summed products; 1 if the other factors are scaled for it."""
    if use.spec.fan_in is None:
        return 1
    if use.spec.input_kind != "weight" and any(map(comes_from_argument, weights_of(use.op))):
        return 1
    return use.spec.fan_in(use.op)


def _normal(scale: float) -> Draw:
    return lambda rng, count: rng.standard_normal(count, dtype=np.float32) * np.float32(scale)


def _uniform(low: float, high: float) -> Draw:
    return lambda rng, count: (
        rng.random(count, dtype=np.float32) * np.float32(high - low) + np.float32(low)
    )


def _inverse_frequencies(rng: np.random.Generator, count: int) -> np.ndarray:
    """Inverse frequencies of rotary embeddings: from 1 down to nearly 1/10000."""
    return np.float32(10000.0) ** -(np.arange(count, dtype=np.float32) / np.float32(count))


def _attention_mask(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(rng.random(count, dtype=np.float32) < _MASKED_PART, MASKED, 0.0)


def _expert_mapping(experts: int, devices: int) -> np.ndarray:
    """Mapping of consecutive experts to devices, in equal numbers."""
    homes = np.arange(experts) * devices // max(experts, 1)
    return homes[:, np.newaxis] == np.arange(devices)


def _booleans(probability: float) -> Draw:
    return lambda rng, count: rng.random(count, dtype=np.float32) < probability


# Integers


def _integers(name: str, uses: Sequence[Use], indexing: Sequence[Use], data_type: DataType) -> Draw:
    low, high = _integer_range(name, uses, indexing, data_type is DataType.INT32)
    bound = min(map(_largest_factor, uses), default=high)
    low, high = max(low, -bound), max(min(high, bound), low)
    return lambda rng, count: rng.integers(low, high + 1, count)


def _largest_factor(use: Use) -> int:
    """Returns the largest integer whose products, summed by that use, do not overflow the
    result."""
    if use.spec.fan_in is None:
        return _LARGEST
    element = element_of(use.op.result_type)
    if not isa(element, IntegerType):
        return _LARGEST
    largest: int = 2 ** (element.width.data - 1) - 1
    return max(math.isqrt(largest // max(use.spec.fan_in(use.op), 1)), 1)


def _integer_range(
    name: str, uses: Sequence[Use], indexing: Sequence[Use], signed: bool
) -> tuple[int, int]:
    """Returns the smallest and the largest value."""
    if indexing:
        return 0, min(_places(use) for use in indexing) - 1
    if is_mask(name, uses):
        return 0, 1
    if (domain := common_domain(uses)) is not None:
        low, high = math.ceil(domain[0]), math.floor(domain[1])
        low = low if signed else max(low, 0)
        if low <= high:
            return low, high
    if uses and (bound := min(map(_exact_bound, uses))) > 0:
        return (-bound if signed else 0), bound
    # Integers that are compared or converted to floats are mostly positions or counts; those that
    # are converted to unsigned integers have no sign.
    counts = any(use.as_float or _compares(use) or _becomes_unsigned(use) for use in uses)
    return (-8, 8) if signed and uses and not counts else (0, 8)


def _compares(use: Use) -> bool:
    return Trait.COMPARES in use.traits or use.name == "where"


def _exact_bound(use: Use) -> int:
    """Returns the largest integer that the use computes with exactly in 32 bits.

    0 if its result is not returned directly, or if floats may represent the integers.
    """
    if not use.op.results:
        return 0
    result = use.op.results[0]
    element = element_of(result.type)
    is_wide = isa(element, IntegerType) and element.width.data >= _WIDE
    exact = Trait.EXACT_ON_INTEGERS in use.traits and is_wide
    if not exact or not all(isinstance(each.operation, ReturnOp) for each in result.uses):
        return 0
    summands = math.prod(shape_of(use.op.operands[0].type)) if Trait.SUMS in use.traits else 2
    return _LARGEST // max(summands, 1)


def _becomes_unsigned(use: Use) -> bool:
    if use.name != "typecast":
        return False
    data_type = normalized_data_type(element_of(use.op.result_type))
    return data_type in _UNSIGNED


def _places(use: Use) -> int:
    """Returns the number of valid indices; one if the op has no such bound."""
    return max(use.spec.places(use.op), 1) if use.spec.places is not None else 1
