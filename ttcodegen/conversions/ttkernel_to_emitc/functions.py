"""Lowering of a kernel's function to a readable C++ file with `kernel_main`.

The C++ of each op is in the dialect's table; this module writes the frame of the file, loops and
arithmetic. Calls and arguments have modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.conversions.ttkernel_to_emitc.calls import CallWriter
from ttcodegen.conversions.ttkernel_to_emitc.kernel_functions import (
    spelled,
)
from ttcodegen.conversions.ttkernel_to_emitc.statements import (
    BEGIN_ZONE,
    CASTS,
    END_ZONE,
    FUNCTIONS,
    OF_CONDITIONS,
    OPERATORS,
    changes_before_use,
    chosen,
    is_flag,
    looked_up,
    repeated,
    settle_zones,
)
from ttcodegen.dialects.ttkernel.operation import (
    BITS,
    COMMENT,
    TTKernelOp,
    constant_integer,
    cpp_type,
)
from ttcodegen.dialects.ttmetal.programs import (
    NAMED_ARGUMENT,
    RUN_TIME_ARGUMENT,
    Kernel,
    Program,
)
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.inlining import standard_headers
from ttcodegen.emitc.operators import ComparisonPredicate
from ttcodegen.emitc.spelling import Text, float_value, identifier
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.sources import constant_name, name_in_text
from ttcodegen.systems.releases.release import Release
from ttcodegen.transforms.rewriting import body_of

_BRACED = (scf.ForOp, scf.IfOp, scf.WhileOp)
_BEGINNING = frozenset({"ttkernel.tile_regs_acquire", BEGIN_ZONE})
_ENDING = frozenset({"ttkernel.tile_regs_release", END_ZONE})
"""Ops that begin and end a step: an empty line is written before and after it."""
_VARIABLE = "variable"
"""Default name of an unnamed variable."""
_LOGICAL_OPERATORS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or"}
_ORDERS = (
    ComparisonPredicate.LT,
    ComparisonPredicate.LE,
    ComparisonPredicate.GT,
    ComparisonPredicate.GE,
)
_PREDICATES = (ComparisonPredicate.EQ, ComparisonPredicate.NE, *_ORDERS, *_ORDERS)
"""Indexed by the predicate number of `arith.cmpi`; kernels count with unsigned integers."""


def write_kernel(
    file: EmitCBuilder,
    function: FuncOp,
    kernel: Kernel,
    program: Program,
    title: str,
    release: Release,
) -> None:
    """Writes the file of a kernel.

    Args:
        file: the file to write to.
        function: the kernel's function, of `ttkernel`, `scf` and `arith` ops.
        kernel: the declaration of its arguments.
        program: the program of the kernel.
        title: lines for the head of the file.
        release: the tt-metal release whose kernel API is called.

    Raises:
        CompileError: if an op has no C++.
        ValueError: if the function uses arguments that the kernel does not declare.
    """
    settle_zones(function)
    writer = _KernelWriter(file, function, kernel, program, release)
    writer.write_arguments(function)
    writer.write_ops(body_of(function).ops)
    writer.finish()
    _prepend(file, f"{title}\n\n{kernel.purpose}", writer.headers)


_INCLUDED_BEFORE = {
    "api/compute/binary_comp.h": "api/compute/atan2.h",
    "api/compute/eltwise_unary/cbrt.h": "api/compute/bcast.h",
}
"""Headers of tt-metal that compile only after another; includes are sorted by name."""


def _prepend(file: EmitCBuilder, title: str, headers: set[str]) -> None:
    """Inserts the title and the includes, which are known once the body is written."""
    preface = EmitCBuilder(Block())
    preface.comment(title)
    for header in sorted(standard_headers(file.block.walk()) | {"cstdint"}):
        preface.include(header)
    preface.blank()
    needed = {before for header, before in _INCLUDED_BEFORE.items() if header in headers}
    for header in sorted(headers | needed):
        preface.include(header, standard=False)
    preface.blank()
    first = file.block.first_op
    assert first is not None
    ops = list(preface.block.ops)
    for op in ops:
        op.detach()
    file.block.insert_ops_before(ops, first)


class _KernelWriter(CallWriter):
    """Writes the body of a kernel."""

    def write_ops(self, ops: Iterable[Operation]) -> None:
        """Writes ops in order; stages that are functions of their own are called."""
        called: frozenset[Operation] = frozenset()
        for op in ops:
            stage = self.stage_at(op)
            if stage is not None:
                called = frozenset(stage.ops)
                self.call_stage(stage, self._write_stage)
            elif op not in called:
                self._set_off(op, is_first=op.prev_op in called)
                self._write_op(op)

    def _write_stage(self, ops: Iterable[Operation]) -> None:
        """Writes the ops at the start of a stage's function."""
        for number, op in enumerate(ops):
            self._set_off(op, is_first=number == 0)
            self._write_op(op)

    def _write_op(self, op: Operation) -> None:
        rule = _RULES.get(type(op))
        if rule is not None:
            rule(self, op)
        elif isinstance(op, TTKernelOp):
            self._call(op)
        else:
            raise CompileError(f"a kernel cannot run '{op.name}'", op)

    def _set_off(self, op: Operation, *, is_first: bool) -> None:
        """Writes an empty line before a new step, and the comment of the op.

        The line is omitted at the start of a function and after the call of a stage."""
        comment = op.attributes.get(COMMENT)
        before = op.prev_op
        while isinstance(before, arith.ConstantOp):
            before = before.prev_op
        begins = isinstance(op, _BRACED) or op.name in _BEGINNING
        ended = before is not None and (before.name in _ENDING or isinstance(before, _BRACED))
        written = before is not None and before.name not in (NAMED_ARGUMENT, RUN_TIME_ARGUMENT)
        is_end = isinstance(op, scf.YieldOp | ReturnOp)
        if written and not is_first and not is_end and (begins or ended or comment is not None):
            self.body.blank()
        if isinstance(comment, StringAttr):
            self.body.comment(comment.data)

    def constant(self, op: arith.ConstantOp) -> None:
        """Writes an integer or float at its use, or as a named constant; or a table."""
        result = op.result
        if isinstance(op.value, DenseIntOrFPElementsAttr):
            self.table(op, op.value)
            return
        type_ = cpp_type(result.type)
        value = cast("IntegerAttr[Any] | FloatAttr[Any]", op.value).value.data
        spell = _spelled_bits if BITS in op.attributes else spelled
        if type_ == "uint32_t":
            literal = self.body.literal(spell(int(value)), type_)
        elif type_ == "float":
            literal = self.body.literal(float_value(value).text, type_)
        else:
            literal = self.body.constant(value, type_)
        name = constant_name(result, int(value)) if type_ == "uint32_t" else None
        if name is not None:
            self._declared(result, self._constant(identifier(name), int(value)), type_)
        else:
            self.values[result] = literal

    def element(self, op: tensor.ExtractOp) -> None:
        """Element of a constant table."""
        name = op.result.name_hint
        variable = None if name is None else self._variable(name)
        self.values[op.result] = looked_up(
            self.body, self[op.tensor], self[op.indices[0]], variable
        )

    def choice(self, op: arith.SelectOp) -> None:
        """Conditional expression: one of two values."""
        operands = [self[operand] for operand in op.operands]
        self._set(op, lambda _type: chosen(self.body, *operands))

    def operator(self, op: Operation) -> None:
        """Arithmetic."""
        left, right = (self[operand] for operand in op.operands)
        operator = OPERATORS[type(op)]
        if is_flag(op.results[0]):
            operator = _LOGICAL_OPERATORS.get(operator, operator)
        self._set(op, lambda type_: self.body.binary(operator, left, right, type_))

    def function(self, op: Operation) -> None:
        """Arithmetic without an operator in C++: a call such as `std::min`."""
        plain = cpp_type(op.results[0].type)
        operands = [self[operand] for operand in op.operands]

        def call(type_: str) -> SSAValue:
            function = FUNCTIONS[type(op)]
            return self.body.call(
                function, *operands, type=type_, template_args=(plain,), pure=True
            )

        self._set(op, call)

    def _set(self, op: Operation, make: Callable[[str], SSAValue]) -> None:
        """Sets the value of an op; a named one becomes a constant of that name."""
        result = op.results[0]
        name = result.name_hint
        type_ = cpp_type(result.type)
        if name is None:
            self.values[result] = make(type_)
            return
        if type_ == "uint32_t" and self.declared_size(result, name):
            return
        value = make(f"const {type_}")
        self.values[result] = self.body.named(value, self._variable(name))

    def compare(self, op: arith.CmpiOp) -> None:
        """A comparison of unsigned numbers."""
        predicate = _PREDICATES[op.predicate.value.data]
        left, right = self[op.lhs], self[op.rhs]
        self._set(op, lambda type_: self.body.compare(predicate, left, right, type_))

    def cast(self, op: Operation) -> None:
        """A conversion; none is written between index and i32, which are both uint32_t."""
        source, result = op.operands[0], op.results[0]
        before, after = cpp_type(source.type), cpp_type(result.type)
        converted = self[source] if before == after else self.body.cast(self[source], after)
        self.values[result] = converted

    def for_(self, op: scf.ForOp) -> None:
        """A counting loop."""
        if op.iter_args:
            raise CompileError("a loop of a kernel carries no values", op)
        block = op.body.block
        counter = block.args[0]
        bounds = self[op.lb], self[op.ub], self[op.step]
        # The start may be a named constant; the counter does not take its name.
        inner = self.body.for_(*bounds, type=cpp_type(counter.type), name=counter.name_hint)
        self.values[counter] = inner.arguments[0]
        self._nested(inner, block)

    def variable(self, op: memref.AllocaOp) -> None:
        """A mutable integer, initialized by the store after it."""
        held = op.memref.type
        type_ = cpp_type(held.element_type)
        if held.get_shape() or type_ != "uint32_t":
            raise CompileError(
                f"a kernel cannot have a variable of type {held}",
                op,
                remedy="let it hold one unsigned number of 32 bits, as memref<index> does",
            )
        name = self._variable(name_in_text(op.memref, _VARIABLE))
        first = op.next_op
        start: Text | None = None
        if isinstance(first, memref.StoreOp) and first.memref is op.memref:
            number = constant_integer(first.value)
            start = None if number is None else Text(spelled(number))
        self.values[op.memref] = self.body.variable(name, type_, start)

    def store(self, op: memref.StoreOp) -> None:
        """A new value of a variable."""
        is_first = op.prev_op is op.memref.owner and constant_integer(op.value) is not None
        if not is_first:
            self.body.assign(self[op.memref], self[op.value])

    def load(self, op: memref.LoadOp) -> None:
        """Current value of a variable: its name, or a copy if it changes before the use."""
        held = not changes_before_use(op)
        value = self.body.load(self[op.memref], held=held)
        if not held:
            name = name_in_text(op.memref, _VARIABLE)
            value = self.body.named(value, self._variable(f"{name}_before"))
        self.values[op.res] = value

    def if_(self, op: scf.IfOp) -> None:
        """A branch without values."""
        if op.results:
            raise CompileError("a branch of a kernel yields no values", op)
        otherwise = op.false_region.blocks.first
        bodies = self.body.if_(self[op.cond], otherwise=otherwise is not None)
        blocks = [op.true_region.block] + ([otherwise] if otherwise is not None else [])
        for inner, block in zip(bodies, blocks, strict=True):
            self._nested(inner, block)

    def while_(self, op: scf.WhileOp) -> None:
        """A loop that runs while a condition holds."""
        *computing, last = op.before_region.block.ops
        wrong = [each for each in computing if not isinstance(each, OF_CONDITIONS)]
        if op.arguments or op.results or wrong or not isinstance(last, scf.ConditionOp):
            raise CompileError("a loop of a kernel carries no values, and asks for numbers", op)

        def condition(body: EmitCBuilder) -> SSAValue:
            outer, self.body = self.body, body
            self.write_ops(computing)
            self.body = outer
            return self[last.operands[0]]

        repeated(self.body, condition, lambda body: self._nested(body, op.after_region.block))

    def _nested(self, inner: EmitCBuilder, block: Block) -> None:
        outer, self.body = self.body, inner
        self.write_ops(block.ops)
        inner.end_block()
        self.body = outer

    def end(self, op: Operation) -> None:
        """No statement: the end of a body is written where the body was begun."""

    def bitcast(self, op: arith.BitcastOp) -> None:
        """Bits of a float; those of a constant are written at their use."""
        type_ = cpp_type(op.result.type)
        number = op.input.owner
        if isinstance(number, arith.ConstantOp):
            value = cast("FloatAttr[Any]", number.value).value.data
            literal = f"__builtin_bit_cast({type_}, {float_value(value).text})"
            self.values[op.result] = self.body.literal(literal, type_)
            return
        name = None if op.result.has_one_use() else self._variable("number_bits")
        self.values[op.result] = self.body.call(
            "__builtin_bit_cast", Text(type_), self[op.input], type=type_, name=name, pure=True
        )


def _spelled_bits(number: int) -> str:
    return f"0x{number % 2**32:x}"


_RULES: Mapping[type[Operation], Callable[[_KernelWriter, Any], None]] = {
    arith.ConstantOp: _KernelWriter.constant,
    **dict.fromkeys(OPERATORS, _KernelWriter.operator),
    **dict.fromkeys(FUNCTIONS, _KernelWriter.function),
    **dict.fromkeys(CASTS, _KernelWriter.cast),
    arith.CmpiOp: _KernelWriter.compare,
    arith.BitcastOp: _KernelWriter.bitcast,
    memref.AllocaOp: _KernelWriter.variable,
    memref.LoadOp: _KernelWriter.load,
    memref.StoreOp: _KernelWriter.store,
    scf.ForOp: _KernelWriter.for_,
    scf.IfOp: _KernelWriter.if_,
    scf.WhileOp: _KernelWriter.while_,
    tensor.ExtractOp: _KernelWriter.element,
    arith.SelectOp: _KernelWriter.choice,
    scf.YieldOp: _KernelWriter.end,
    ReturnOp: _KernelWriter.end,
}
"""Emission rules of ops that are not calls."""
