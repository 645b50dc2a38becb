"""Conversion of a StableHLO module to TTIR by symbolic execution.

Each operation, in order, emits TTIR ops from its converted operands. Calls are inlined, loops with
a known trip count unrolled, and branches with a known predicate taken, so that a converted function
has neither regions nor calls, and private functions disappear.

`Conversion.known` folds values that depend only on constants, with the numpy semantics of the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import (
    constant_array,
    element_of,
    elements,
    numpy_name,
    shape_of,
    tensor_type,
)
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttir.annotations import SHARDING
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Note,
    SourceLocation,
    copy_source_offset,
    place_of,
)
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.frontends.special_functions import Complex, joined, parted
from ttcodegen.frontends.stablehlo.meshes import (
    NamedMesh,
    argument_attributes,
    declared_sharding,
    donated_arguments,
    result_attributes,
)
from ttcodegen.frontends.stablehlo.reading.names import (
    is_meaningful,
    named_location,
    origin_in_frontend,
    within,
)
from ttcodegen.frontends.stablehlo.reading.operations import (
    StableHLOOp,
    is_complex,
    is_tensor,
    is_token,
    numpy_dtype,
    part_type,
    real_type,
)
from ttcodegen.frontends.translation import ILL_FORMED, reason_of
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes
from ttcodegen.parsing.structure import refuse_elements
from ttcodegen.transforms.const_eval import evaluate
from ttcodegen.transforms.loops import outline_loop
from ttcodegen.transforms.rewriting import is_repeatable

_LARGEST_KNOWN = 1 << 16
"""Limit on the elements of a value that is folded during conversion."""
_DEEPEST_CALL = 200
MOST_OPS = 200_000
"""Limit on the ops of a program after its loops are unrolled."""


class Refused(Exception):
    """Raised for a value whose producer was refused with a diagnostic."""


Value = SSAValue | Complex | tuple[Any, ...] | None
"""Converted value; a tuple for a tuple, None for a token or a refused value."""

Results = Value | list[Any]
"""Converted results of an operation: one value, or a list with one per result."""

Rule = Callable[["Conversion", StableHLOOp], Results]


@dataclass
class Conversion:
    """Converter of one module."""

    functions: dict[str, FuncOp]
    rules: dict[str, Rule]
    mesh: NamedMesh = field(default_factory=NamedMesh)
    on_chips: bool = False
    """True inside a manual computation, where each device has its own values."""
    findings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    arguments: dict[SSAValue, dict[str, str]] = field(
        default_factory=dict[SSAValue, dict[str, str]]
    )
    """Attributes of arguments found during conversion, by name."""
    loops: list[FuncOp] = field(default_factory=list[FuncOp])
    """Bodies of loops whose trip count is only known at run time."""
    donated: set[SSAValue] = field(default_factory=set[SSAValue])
    """Arguments donated by the caller: results may overwrite them."""
    _values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    _known: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, Array | None])
    _calls: list[str] = field(default_factory=list[str])
    _scopes: list[Attribute] = field(default_factory=list[Attribute])
    _enclosing: list[LocationAttr] = field(default_factory=list[LocationAttr])
    """Locations of the operations under conversion, outermost first."""
    _reported: set[tuple[str, Any]] = field(default_factory=set[tuple[str, Any]])
    _lifted: tuple[int, ...] | None = None
    _made: int = 0
    _name: str = ""
    """Name of the function under conversion."""
    _block: Block = field(default_factory=Block)

    def __post_init__(self) -> None:
        self.builder = OpBuilder(ttir_op_classes(), self._insert)

    def _insert(self, op: Operation) -> None:
        self._made += 1
        if self._made > MOST_OPS:
            raise CompileError(
                f"the program becomes more than {MOST_OPS} ops when its loops are unrolled",
                self.builder.origin,
                remedy="make the loops shorter, or compile the body of the loop alone",
            )
        self._block.add_op(op)

    @property
    def is_lifted(self) -> bool:
        """True if a scalar body is being applied to whole tensors."""
        return self._lifted is not None

    # Functions

    def function(self, source: FuncOp) -> FuncOp:
        """Converts a function; complex arguments get a last dimension of size 2."""
        body = source.body.block
        self._name = source.sym_name.data
        self._block = Block(arg_types=[real_type(argument.type) for argument in body.args])
        self._known.clear()
        self.donated = {self._block.args[index] for index in donated_arguments(source)}
        arguments: list[Value] = []
        for old, new in zip(body.args, self._block.args, strict=True):
            new.name_hint = old.name_hint
            new.source_offset = getattr(old, "source_offset", -1)  # pyright: ignore
            arguments.append(parted(self.builder, new) if is_complex(old.type) else new)
        results = self.run(body, arguments)
        try:
            returned = [self.joined(value) for value in results]
        except Refused:
            returned = []
        self._block.add_op(ReturnOp(*returned))
        type_ = [a.type for a in self._block.args], [value.type for value in returned]
        made = FuncOp(
            source.sym_name.data,
            type_,
            Region(self._block),
            source.sym_visibility,
            arg_attrs=ArrayAttr(
                argument_attributes(source, self._block.args, self.arguments, self.mesh)
            ),
            res_attrs=ArrayAttr(result_attributes(source, returned, self.mesh)),
        )
        made.location = source.location
        copy_source_offset(source, made)
        return made

    def joined(self, value: Value) -> SSAValue:
        """Returns a value as one tensor; raises Refused if it has none."""
        if isinstance(value, Complex):
            return joined(self.builder, value)
        if not isinstance(value, SSAValue):
            raise Refused
        return value

    def call(self, name: str, arguments: Sequence[Value], caller: Operation) -> list[Value]:
        """Inlines a call of a function of the module."""
        function = self.functions.get(name)
        if function is None or not function.body.blocks:
            raise CompileError(f"there is no function @{name}", caller)
        if name in self._calls or len(self._calls) > _DEEPEST_CALL:
            raise CompileError(f"function @{name} calls itself", caller)
        body = function.body.block
        if len(body.args) != len(arguments):
            raise CompileError(
                f"@{name} takes {len(body.args)} arguments, found {len(arguments)}", caller
            )
        self._calls.append(name)
        self._scopes.append(
            self.builder.origin.location if self.builder.origin else caller.location
        )
        try:
            return self.run(body, arguments)
        finally:
            self._calls.pop()
            self._scopes.pop()

    def run(self, block: Block, arguments: Sequence[Value]) -> list[Value]:
        """Converts the operations of a block; returns the values of its terminator."""
        for argument, value in zip(block.args, arguments, strict=True):
            self._values[argument] = value
        for op in block.ops:
            if isinstance(op, ReturnOp) or op.name in _RETURNS:
                # Only a use of a refused value raises.
                return [self._values.get(operand) for operand in op.operands]
            self._convert(op)
        raise CompileError("the region does not return anything", block.parent_op())

    def _convert(self, op: Operation) -> None:
        """Converts one operation; an operation that is refused is reported and skipped."""
        before = self.builder.origin
        try:
            with self._origin(op):
                values = self._dispatch_rule(op)
        except Refused:
            values = [None] * len(op.results)
        except CompileError as error:
            self._refuse(error, op)
            values = [None] * len(op.results)
        except VerifyException as error:
            self._refuse(CompileError(str(error), op), op)
            values = [None] * len(op.results)
        except ILL_FORMED as error:
            reason = reason_of(op, error)
            message = reason if f"'{op.name}'" in reason else f"'{op.name}': {reason}"
            self._refuse(CompileError(message, op, remedy=_remedy_for(reason)), op)
            values = [None] * len(op.results)
        finally:
            self.builder.origin = before
        if self.mesh.chips > 1 and not self.on_chips:
            self._note_sharding(op, values)
        for result, value in zip(op.results, values, strict=False):
            self._values[result] = value
            if isinstance(value, SSAValue) and is_meaningful(result.name_hint):
                if value.name_hint is None:
                    value.name_hint = result.name_hint

    def _note_sharding(self, op: Operation, values: Sequence[Value]) -> None:
        """Annotates a converted value with the sharding that its operation declares."""
        said = declared_sharding(op.attributes)
        if said is None and isinstance(op, StableHLOOp) and op.short_name in _CONSTRAINTS:
            said = op.properties.get("sharding") or StringAttr(str(op.given.get("sharding", "")))
        if said is None or len(values) != 1 or not isinstance(value := values[0], SSAValue):
            return
        wanted = self.mesh.wanted(said, len(shape_of(value.type)))
        if wanted is None or shape_of(op.results[0].type) != shape_of(value.type):
            return
        if isinstance(value.owner, Operation) and value is value.owner.results[0]:
            value.owner.attributes[SHARDING] = wanted.attribute()

    def _dispatch_rule(self, op: Operation) -> Sequence[Value]:
        if isinstance(op, CallOp):
            return self.call(op.callee.string_value(), self.values(op), op)
        name = op.short_name if isinstance(op, StableHLOOp) else operation_name(op)
        rule = self.rules.get(name)
        if rule is None and isinstance(op, CatalogueOp):
            return self._copied(op)
        if rule is None:
            raise CompileError(
                f"'{operation_name(op)}' is not supported",
                op,
                remedy=_ELSEWHERE,
            )
        found = rule(self, cast(StableHLOOp, op))
        # A tensor, or a tuple of the dialect, is one value; a list holds one for each result.
        values: list[Value] = list(found) if isinstance(found, list) else [found]
        return self._checked(op, values)

    def _copied(self, op: CatalogueOp) -> Sequence[Value]:
        """Copies an op that is already TTIR."""
        copy = type(op).create(
            operands=[self.tensor(value) for value in op.operands],
            result_types=[result.type for result in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        copy.source_offset = op.source_offset
        self._insert(copy)
        return list(copy.results)

    def _checked(self, op: Operation, values: list[Value]) -> list[Value]:
        """Returns the values; raises CompileError if their types differ from the declared ones."""
        if len(values) != len(op.results):
            raise CompileError(
                f"'{op.name}' has {len(values)} results, found {len(op.results)}", op
            )
        for value, result in zip(values, op.results, strict=True):
            declared = result.type
            if isinstance(value, Complex):
                found, declared = value.real.type, part_type(declared)
            elif isinstance(value, SSAValue):
                found = value.type
            else:
                continue
            if self._lifted is not None:
                continue
            if is_tensor(declared) and not _agree(found, declared):
                raise CompileError(
                    f"'{op.name}' gives {found} for these operands, found {declared}", op
                )
            refuse_elements(found, op)
        return values

    @contextmanager
    def _origin(self, op: Operation) -> Generator[None]:
        """Sets the origin of new ops; inside calls, with the caller's location."""
        named = op.location
        if self._scopes:
            named = within(named, self._scopes[-1])
        before, op.location = op.location, named_location(named)
        self._enclosing.append(before)
        self.builder.origin = op
        try:
            yield
        finally:
            op.location = before
            self._enclosing.pop()

    # Errors

    def _refuse(self, error: CompileError, op: Operation) -> None:
        """Records an error, with a note of the user's source line where it is known."""
        for diagnostic in error.diagnostics:
            place = diagnostic.place if diagnostic.place is not None else place_of(op)
            key = diagnostic.message, place
            if key in self._reported:
                continue
            self._reported.add(key)
            notes = list(diagnostic.notes)
            written = self._written_at(op)
            if written is not None:
                notes.append(Note("it comes from here", written))
            self.findings.append(
                Diagnostic(diagnostic.message, place, diagnostic.remedy, tuple(notes))
            )

    def _written_at(self, op: Operation) -> SourceLocation | None:
        """Location in the user's program: the operation's, or that of the innermost call
        with one."""
        places = map(origin_in_frontend, [op.location, *reversed(self._enclosing)])
        return next((place for place in places if place is not None), None)

    # Values

    def value(self, value: SSAValue) -> Value:
        """Returns the converted value of a StableHLO value."""
        found = self._values.get(value)
        if found is None and not is_token(value.type):
            raise Refused
        return found

    def is_only_read(self, value: SSAValue) -> bool:
        """Returns whether an argument has no use yet and at most one operation left that
        reads it."""
        aliases = [source for source, made in self._values.items() if made is value]
        return not value.uses and all(len(tuple(alias.uses)) <= 1 for alias in aliases)

    def values(self, op: Operation) -> list[Value]:
        """Returns the converted operands of an operation."""
        return [self.value(operand) for operand in op.operands]

    def tensor(self, value: SSAValue) -> SSAValue:
        """Returns the converted value as a real tensor."""
        found = self.value(value)
        if isinstance(found, Complex):
            raise ValueError("complex numbers are not supported here")
        if not isinstance(found, SSAValue):
            raise ValueError("a tensor is needed, not a tuple")
        if self._lifted and shape_of(found.type) == ():
            one = self.builder.reshape(found, [1] * len(self._lifted))
            return self.broadcast_to(one, self._lifted)
        return found

    @contextmanager
    def lifted(self, shape: tuple[int, ...]) -> Generator[None]:
        """Context in which scalars are tensors of the given shape."""
        before, self._lifted = self._lifted, shape
        try:
            yield
        finally:
            self._lifted = before

    @contextmanager
    def replaced(self, values: dict[SSAValue, Value]) -> Generator[None]:
        """Context in which StableHLO values map to other values."""
        before = {value: self._values.get(value) for value in values}
        self._values.update(values)
        try:
            yield
        finally:
            self._values.update(before)

    @contextmanager
    def aside(self) -> Generator[None]:
        """Discards the ops made inside: they are only inspected."""
        block, self._block = self._block, Block()
        try:
            yield
        finally:
            self._block = block

    @property
    def last_made(self) -> Operation | None:
        """The op that was inserted last, or None."""
        return self._block.last_op

    def discard_after(self, last: Operation | None) -> None:
        """Erases all ops inserted after the given one."""
        while (op := self._block.last_op) is not last:
            assert op is not None
            # Ops that `aside` discarded may still be listed as users.
            self._block.erase_op(op, safe_erase=False)

    def loop(
        self,
        op: Operation,
        carried: Sequence[Value],
        iterate: Callable[[Sequence[Value]], Sequence[Value]],
        going: Value | int,
        names: Sequence[str | None],
    ) -> list[Value]:
        """Emits a loop that runs on the device, as a function called per iteration.

        It runs while a condition holds, or for a trip count.

        Args:
            op: the loop, for the locations of errors.
            carried: the initial carried values.
            iterate: converts an iteration: from the carried values to the next ones, preceded by
                the condition unless the trip count is known.
            going: the condition of the first iteration, or the trip count.
            names: names of the carried values, None if the source has none.

        Raises:
            CompileError: on a mesh, or in a body that is applied to whole tensors.
            Refused: if an operation in it was refused.
        """
        if self.mesh.chips > 1 or self.is_lifted:
            where = "divided among devices" if self.mesh.chips > 1 else "part of a reduction"
            raise CompileError(
                f"'{op.name}': a loop that is not unrolled cannot be {where}",
                op,
                remedy="give the loop a fixed and short length",
            )
        trip_count = going if isinstance(going, int) else None
        flag = None if isinstance(going, int) else self.joined(going)
        given = [self.joined(value) for value in carried]
        block = Block(arg_types=[value.type for value in given])
        for argument, name in zip(block.args, names, strict=True):
            argument.name_hint = name if is_meaningful(name) else None
        outside, self._block = self._block, block
        donated, self.donated = self.donated, set()
        try:
            taken = [
                parted(self.builder, argument) if isinstance(value, Complex) else argument
                for argument, value in zip(block.args, carried, strict=True)
            ]
            returned = [self.joined(value) for value in iterate(taken)]
        finally:
            self._block, self.donated = outside, donated
        name = f"{self._name}_loop_{len(self.loops)}"
        found = outline_loop(name, block, flag, given, returned, trip_count)
        self._insert(found.call)
        copy_source_offset(op, found.call)
        copy_source_offset(op, found.function)
        self.loops.append(found.function)
        return [
            parted(self.builder, result) if isinstance(value, Complex) else result
            for result, value in zip(found.results, carried, strict=True)
        ]

    def tensors(self, op: Operation) -> list[SSAValue]:
        """Returns the converted operands of an operation as real tensors."""
        return [self.tensor(operand) for operand in op.operands]

    def known(self, value: SSAValue | Value) -> Array | None:
        """Elements of a value that depends only on constants; None otherwise or above the size
        limit."""
        if not isinstance(value, SSAValue):
            return None
        if value in self._known:
            return self._known[value]
        found = self._known[value] = self._evaluated(value)
        return found

    def _evaluated(self, value: SSAValue) -> Array | None:
        op = value.owner
        if not isinstance(op, CatalogueOp) or not is_tensor(value.type):
            return None
        if prod(shape_of(value.type)) > _LARGEST_KNOWN or not is_repeatable(op):
            return None
        if op.name == "ttir.constant":
            return constant_array(op.parameter("value"))
        operands: list[Array] = []
        for operand in op.operands:
            known = self.known(operand)
            if known is None:
                return None
            is_narrow = numpy_name(element_of(operand.type)) in ("bfloat16", "float16")
            operands.append(known.astype(np.float32) if is_narrow else known)
        try:
            results = evaluate(op, operands)
        except (ValueError, TypeError, IndexError, KeyError, VerifyException):
            return None
        for result, array in zip(op.results, results, strict=True):
            if result is not value:
                self._known[result] = array
        return results[list(op.results).index(value)]  # pyright: ignore[reportArgumentType]

    def number(self, value: SSAValue | Value) -> float | int | bool | None:
        """Returns the value of a splat, None if it is no known splat."""
        from ttcodegen.ops.core.builder import splat_of

        if isinstance(value, SSAValue) and (splat := splat_of(value)) is not None:
            return splat
        known = self.known(value)
        if known is None or known.size == 0:
            return None
        first = known.flat[0]
        return first.item() if bool((known == first).all()) else None

    def constant(self, array: Array, element: Attribute) -> SSAValue:
        """Emits a constant of the given element type."""
        dtype = numpy_name(element)
        if dtype is None:
            raise ValueError(f"constants of type {element} are not supported")
        narrowed = np.ascontiguousarray(np.asarray(array).astype(numpy_dtype(dtype)))
        value = elements(element, array.shape, narrowed.tobytes())
        return self.builder.emit("constant", [], tensor_type(element, array.shape), value=value)

    def broadcast_to(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcasts dimensions of size 1 to `shape`."""
        found = shape_of(value.type)
        if found == tuple(shape):
            return value
        number = self.number(value)
        if number is not None and len(found) == len(shape):
            return self.full_like(number, value, shape)
        factors = [wanted // size if size else 1 for wanted, size in zip(shape, found, strict=True)]
        result = tensor_type(element_of(value.type), shape)
        return self.builder.emit("broadcast", [value], result, broadcast_dimensions=factors)

    def full_like(self, number: float | bool, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Tensor filled with a number, with the element type of `value`."""
        return (
            self.constant(np.asarray(number), element_of(value.type))
            if not shape
            else self.filled(number, shape, element_of(value.type))
        )

    def filled(self, number: float | bool, shape: Sequence[int], element: Attribute) -> SSAValue:
        """Splat constant of the given shape and element type."""
        dtype = numpy_name(element)
        if dtype is None:
            raise ValueError(f"constants of type {element} are not supported")
        data = np.asarray(number).astype(numpy_dtype(dtype)).tobytes()
        value = elements(element, shape, data)
        return self.builder.emit("constant", [], tensor_type(element, shape), value=value)

    def filled_like(self, number: float, like: SSAValue) -> SSAValue:
        """Splat constant of another value's type."""
        return self.filled(number, shape_of(like.type), element_of(like.type))


_RETURNS = frozenset({"stablehlo.return", "mhlo.return", "sdy.return"})
_CONSTRAINTS = frozenset({"sharding_constraint", "reshard"})


def _agree(found: Attribute, declared: Attribute) -> bool:
    """Returns whether two tensor types are equal up to dynamic sizes."""
    if element_of(found) != element_of(declared):
        return False
    shape, expected = shape_of(found), shape_of(declared)
    return len(shape) == len(expected) and all(
        size == wanted or wanted < 0 for size, wanted in zip(shape, expected, strict=True)
    )


_ELSEWHERE = (
    "compute it in the program that calls the model, or with other ops; docs/frontends.md says "
    "what is not read"
)


def _remedy_for(reason: str) -> str | None:
    """Remedy for a rule's refusal, or None for malformed text."""
    if "only known at run time" in reason:
        return "make it a constant of the program, or a static argument of the function"
    return _ELSEWHERE if "supported" in reason else None
