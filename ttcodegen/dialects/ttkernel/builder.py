"""Builder of kernels: functions of `ttkernel`, `scf` and `arith` ops.

    kernel = KernelBuilder("eltwise_add", ThreadType.COMPUTE)
    lhs, rhs, out = (kernel.circular_buffer(n, 2, TileType("bf16")) for n in ("lhs", "rhs", "out"))
    tiles = kernel.compile_time_argument("tiles")
    kernel.op("binary_op_init_common", lhs, rhs, out)
    kernel.op("add_tiles_init", lhs, rhs)
    with kernel.loop(tiles):
        kernel.op("cb_wait_front", lhs, 1)
        ...
        kernel.op("add_tiles", lhs, rhs, 0, 0, 0)
    module = ModuleOp([kernel.finish()])

Numbers among the operands become constants of type `index` (`f32` for floats), one per kernel and
value. Trivial arithmetic is folded: factors of 1, terms of 0, loops of one iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ttcodegen.dialects.operations.functions import KERNEL_THREAD
from ttcodegen.dialects.ttkernel.attributes import CBType, ThreadType, ThreadTypeAttr
from ttcodegen.dialects.ttkernel.operation import (
    BITS,
    COMMENT,
    DESTINATION_TILES,
    STAGE,
    STAGE_PURPOSE,
    TTKernelOp,
    constant_integer,
    create,
    kernel_function_type,
)

Inserted = TypeVar("Inserted", bound=Operation)

Value = SSAValue | int | float
"""A kernel value, or a number."""

index = IndexType()

_OF_FLOATS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "+": arith.AddfOp,
    "-": arith.SubfOp,
    "*": arith.MulfOp,
    "/": arith.DivfOp,
}
_OF_BITS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "&": arith.AndIOp,
    "|": arith.OrIOp,
    "^": arith.XOrIOp,
    "<<": arith.ShLIOp,
    ">>": arith.ShRUIOp,
}


class KernelBuilder:
    """A kernel under construction; ops are appended to the innermost open region."""

    def __init__(
        self, name: str, thread: ThreadType, *, destination_tiles: int | None = None
    ) -> None:
        self._entry = Block()
        self.function = FuncOp(name, kernel_function_type(()), Region(self._entry))
        self.function.attributes[KERNEL_THREAD] = ThreadTypeAttr(thread)
        if destination_tiles is not None:
            self.function.attributes[DESTINATION_TILES] = IntegerAttr(destination_tiles, i64)
        self.thread = thread
        self._builder = Builder(InsertPoint.at_end(self._entry))
        self._constants: dict[tuple[int | float, bool | str], SSAValue] = {}
        self._tables: dict[tuple[int, ...], SSAValue] = {}
        self._bits: dict[float, SSAValue] = {}
        self._last_constant: Operation | None = None
        self._comment: str | None = None
        self._stage: tuple[Block, str] | None = None
        self._stage_purpose: str | None = None

    def op(self, name: str, *operands: Value, **attributes: object) -> TTKernelOp:
        """Adds `ttkernel.<name>` without results; attributes are Python values."""
        return self.add(name, operands, attributes)

    def get(
        self,
        name: str,
        *operands: Value,
        result_type: Attribute = index,
        name_hint: str | None = None,
        **attributes: object,
    ) -> SSAValue:
        """Adds `ttkernel.<name>` with one result, and returns the result."""
        result = self.add(name, operands, attributes, [result_type]).results[0]
        result.name_hint = name_hint
        return result

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        attributes: Mapping[str, object] | None = None,
        result_types: Sequence[Attribute] = (),
    ) -> TTKernelOp:
        """Adds `ttkernel.<name>`; raises KeyError if there is no such op or attribute."""
        values = [self.value(operand) for operand in operands]
        return self._insert(create(name, values, attributes, result_types))

    @property
    def last_op(self) -> Operation | None:
        """Returns the last op of the open region."""
        return self._builder.insertion_point.block.last_op

    def is_last(self, name: str) -> bool:
        """Returns whether the last op of the open region is `ttkernel.<name>`."""
        return self.last_op is not None and self.last_op.name == f"ttkernel.{name}"

    def comment(self, text: str) -> None:
        """Sets the comment of the next op."""
        self._comment = text

    def _insert(self, op: Inserted) -> Inserted:
        if self._comment is not None:
            op.attributes[COMMENT] = StringAttr(self._comment)
            self._comment = None
        if self._stage is not None and self._stage[0] is self._builder.insertion_point.block:
            op.attributes[STAGE] = StringAttr(self._stage[1])
            if self._stage_purpose is not None:
                op.attributes[STAGE_PURPOSE] = StringAttr(self._stage_purpose)
                self._stage_purpose = None
        return self._builder.insert(op)

    @contextmanager
    def stage(self, name: str, purpose: str) -> Generator[None]:
        """Scope that becomes a C++ function of that name if the kernel is long.

        `purpose` is a sentence on it. Names are unique within a block; stages of inner blocks may
        be nested.
        """
        outer = self._stage, self._stage_purpose
        self._stage = (self._builder.insertion_point.block, name)
        self._stage_purpose = purpose
        yield
        self._stage, self._stage_purpose = outer

    # Arguments

    def compile_time_argument(self, name: str, result_type: Attribute = index) -> SSAValue:
        """Returns a named compile-time argument."""
        return self.get(
            "get_named_compile_time_arg_val",
            arg_name=name,
            result_type=result_type,
            name_hint=name if SSAValue.is_valid_name(name) else None,
        )

    def circular_buffer(self, name: str, pages: int, element_type: Attribute) -> SSAValue:
        """Returns a circular buffer of `pages` pages, whose index is a named compile-time
        argument."""
        return self.compile_time_argument(name, CBType(pages, element_type))

    def argument(
        self, position: int, name_hint: str | None = None, result_type: Attribute = index
    ) -> SSAValue:
        """Returns the run-time argument at a position, which is per core."""
        return self.get("get_arg_val", position, result_type=result_type, name_hint=name_hint)

    def argument_at(self, number: Value, first: int, name: str) -> SSAValue:
        """Returns an element of an array of run-time arguments from position `first`.

        C++ has a constant `name` for `first`.
        """
        return self.get("get_arg_val", self.sum(self.named_constant(first, name), number))

    # Numbers and control

    def value(self, operand: Value) -> SSAValue:
        """Returns a value as it is, or a number as a constant."""
        return operand if isinstance(operand, SSAValue) else self.constant(operand)

    def constant(self, number: float) -> SSAValue:
        """Returns a constant of type index, or f32 for a float, at the start of the kernel."""
        is_float = isinstance(number, float)
        # 1 and 1.0 are equal, and would share a key.
        key = (number, is_float)
        if key not in self._constants:
            op = arith.ConstantOp(
                FloatAttr(number, Float32Type())
                if isinstance(number, float)
                else IntegerAttr(number, index)
            )
            self._add_constant(op)
            self._constants[key] = op.result
        return self._constants[key]

    def named_constant(self, number: int, name: str) -> SSAValue:
        """Returns an index constant that has a name in C++."""
        key = (number, name)
        if key not in self._constants:
            op = arith.ConstantOp(IntegerAttr(number, index))
            op.result.name_hint = name
            self._add_constant(op)
            self._constants[key] = op.result
        return self._constants[key]

    def element(self, numbers: Sequence[int], position: Value, name: str) -> SSAValue:
        """Returns an element of a constant table, declared as `name` in C++; equal tables are
        shared."""
        key = tuple(numbers)
        if key not in self._tables:
            kind = TensorType(index, [len(key)])
            op = arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, key))
            op.result.name_hint = name
            self._add_constant(op)
            self._tables[key] = op.result
        op = tensor.ExtractOp(self._tables[key], self.value(position), index)
        return self._insert(op).result

    def _add_constant(self, op: Operation) -> None:
        """Inserts a constant at the start of the kernel, in order of first use."""
        if self._last_constant is not None:
            self._entry.insert_op_after(op, self._last_constant)
        elif self._entry.first_op is not None:
            self._entry.insert_op_before(op, self._entry.first_op)
        else:
            self._entry.add_op(op)
        self._last_constant = op

    def bits(self, number: float) -> SSAValue:
        """Returns the bits of a 32-bit float as an i32 constant."""
        if number not in self._bits:
            op = arith.BitcastOp(self.constant(float(number)), i32)
            self._add_constant(op)
            self._bits[number] = op.result
        return self._bits[number]

    def pattern(self, bits: int) -> SSAValue:
        """Returns an index constant that C++ prints in hexadecimal."""
        key = (bits, "bits")
        if key not in self._constants:
            op = arith.ConstantOp(IntegerAttr(bits, index))
            op.attributes[BITS] = UnitAttr()
            self._add_constant(op)
            self._constants[key] = op.result
        return self._constants[key]

    def smaller(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns the minimum of two unsigned integers."""
        return self._insert(arith.MinUIOp(self.value(lhs), self.value(rhs))).result

    def larger(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns the maximum of two unsigned integers."""
        return self._insert(arith.MaxUIOp(self.value(lhs), self.value(rhs))).result

    def both(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Returns the conjunction of two conditions."""
        return self._insert(arith.AndIOp(lhs, rhs)).result

    def either(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Returns the disjunction of two conditions."""
        return self._insert(arith.OrIOp(lhs, rhs)).result

    def named(self, value: SSAValue, name: str) -> SSAValue:
        """Names a computed value in C++; constants and named values keep theirs."""
        if value.name_hint is None and number_of(value) is None:
            value.name_hint = name
        return value

    def sum(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs + rhs."""
        if number_of(lhs) == 0:
            return self.value(rhs)
        if number_of(rhs) == 0:
            return self.value(lhs)
        return self._insert(arith.AddiOp(self.value(lhs), self.value(rhs))).result

    def difference(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs - rhs."""
        if number_of(rhs) == 0:
            return self.value(lhs)
        if number_of(lhs) == number_of(rhs) == 1:
            return self.value(0)
        return self._insert(arith.SubiOp(self.value(lhs), self.value(rhs))).result

    def product(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs * rhs."""
        if number_of(lhs) == 1 or number_of(rhs) == 0:
            return self.value(rhs)
        if number_of(rhs) == 1 or number_of(lhs) == 0:
            return self.value(lhs)
        return self._insert(arith.MuliOp(self.value(lhs), self.value(rhs))).result

    def quotient(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs / rhs of unsigned integers."""
        if number_of(rhs) == 1 or number_of(lhs) == 0:
            return self.value(lhs)
        return self._insert(arith.DivUIOp(self.value(lhs), self.value(rhs))).result

    def remainder(self, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs % rhs of unsigned integers."""
        if number_of(rhs) == 1 or number_of(lhs) == 0:
            return self.value(0)
        return self._insert(arith.RemUIOp(self.value(lhs), self.value(rhs))).result

    def of_bits(self, symbol: str, lhs: Value, rhs: Value) -> SSAValue:
        """Returns the result of a bitwise operator `& | ^ << >>` on unsigned integers."""
        return self._insert(_OF_BITS[symbol](self.value(lhs), self.value(rhs))).results[0]

    def as_float(self, number: Value) -> SSAValue:
        """Converts an unsigned integer to a float; a number becomes a constant."""
        if isinstance(number, SSAValue) and number.type != index:
            return number
        if not isinstance(number, SSAValue):
            return self.constant(float(number))
        bits = self._insert(arith.IndexCastOp(number, i32)).result
        return self._insert(arith.UIToFPOp(bits, Float32Type())).result

    def float_of_bits(self, bits: SSAValue) -> SSAValue:
        """Reinterprets the bits of an unsigned integer as a float."""
        word = self._insert(arith.IndexCastOp(bits, i32)).result
        return self._insert(arith.BitcastOp(word, Float32Type())).result

    def of_floats(self, symbol: str, lhs: Value, rhs: Value) -> SSAValue:
        """Returns the result of an operator `+ - * /` on floats."""
        return self._insert(_OF_FLOATS[symbol](self.as_float(lhs), self.as_float(rhs))).results[0]

    def chosen(self, condition: SSAValue, lhs: Value, rhs: Value) -> SSAValue:
        """Returns condition ? lhs : rhs."""
        return self._insert(arith.SelectOp(condition, self.value(lhs), self.value(rhs))).result

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> SSAValue:
        """Returns lhs `predicate` rhs: eq, ne, ult, ule, ugt, uge."""
        op = arith.CmpiOp(self.value(lhs), self.value(rhs), predicate)
        return self._insert(op).result

    @contextmanager
    def loop(
        self, end: Value, *, start: Value = 0, step: Value = 1, name_hint: str | None = None
    ) -> Generator[SSAValue]:
        """Opens `for (start; < end; += step)` and yields the counter.

        A loop from 0 to 1 is omitted: its counter is the constant 0.
        """
        if (number_of(start), number_of(end)) == (0, 1):
            yield self.value(0)
            return
        body = Block(arg_types=[index])
        body.args[0].name_hint = name_hint
        bounds = (self.value(start), self.value(end), self.value(step))
        self._insert(scf.ForOp(*bounds, [], Region(body)))
        with self._inside(body):
            yield body.args[0]

    def variable(self, start: Value, name_hint: str | None = None) -> SSAValue:
        """Declares an integer variable with an initial value."""
        slot = self._insert(memref.AllocaOp.get(index, shape=[])).memref
        slot.name_hint = name_hint
        self.assign(slot, start)
        return slot

    def assign(self, slot: SSAValue, value: Value) -> None:
        """Assigns to a variable."""
        self._insert(memref.StoreOp.get(self.value(value), slot, []))

    def load(self, slot: SSAValue) -> SSAValue:
        """Returns the current value of a variable."""
        return self._insert(memref.LoadOp.get(slot, [])).res

    @contextmanager
    def when(self, condition: SSAValue) -> Generator[None]:
        """Opens `if (condition)`."""
        body = Block()
        self._insert(scf.IfOp(condition, [], Region(body)))
        with self._inside(body):
            yield

    def remove_empty(self) -> None:
        """Removes the last conditional if its body is empty."""
        op = self.last_op
        if isinstance(op, scf.IfOp) and len(op.true_region.block.ops) == 1:
            op.detach()
            op.erase()

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Opens the else branch of the preceding `when`."""
        op = self._builder.insertion_point.block.last_op
        assert isinstance(op, scf.IfOp)
        assert not op.false_region.blocks
        body = Block()
        op.false_region.add_block(body)
        with self._inside(body):
            yield
        if isinstance(body.first_op, scf.YieldOp):
            op.false_region.detach_block(body)

    @contextmanager
    def repeat(self) -> Generator[Callable[[SSAValue], None]]:
        """Opens `while (condition)`.

        Yields a function to be called once with the condition, after the ops that compute it;
        subsequent ops are the body.
        """
        before, body = Block(), Block()
        self._insert(scf.WhileOp([], [], Region(before), Region(body)))
        outer = self._builder.insertion_point
        self._builder.insertion_point = InsertPoint.at_end(before)

        def begin(condition: SSAValue) -> None:
            self._builder.insert(scf.ConditionOp(condition))
            self._builder.insertion_point = InsertPoint.at_end(body)

        yield begin
        self._builder.insert(scf.YieldOp())
        self._builder.insertion_point = outer

    @contextmanager
    def _inside(self, body: Block) -> Generator[None]:
        outer = self._builder.insertion_point
        self._builder.insertion_point = InsertPoint.at_end(body)
        yield
        self._builder.insert(scf.YieldOp())
        self._builder.insertion_point = outer

    @contextmanager
    def destination_registers(self) -> Generator[None]:
        """Opens a scope of destination registers: computation, `start_packing`, then packing."""
        self.op("tile_regs_acquire")
        yield
        self.op("tile_regs_release")

    def start_packing(self) -> None:
        """Passes the destination registers from the engines to the packer."""
        self.op("tile_regs_commit")
        self.op("tile_regs_wait")

    def remove(self, value: SSAValue) -> None:
        """Erases the op that defines an unused value."""
        owner = value.owner
        assert isinstance(owner, Operation)
        owner.detach()
        owner.erase()

    def finish(self) -> FuncOp:
        """Returns the finished kernel without unused constants."""
        self._builder.insert(ReturnOp())
        for op in reversed(self._entry.ops):
            if isinstance(op, arith.ConstantOp) and op.result.first_use is None:
                self.remove(op.result)
        return self.function


def number_of(value: Value) -> int | None:
    """Returns the integer value of a constant, or None if it is computed at run time."""
    if isinstance(value, SSAValue):
        return constant_integer(value)
    return value if isinstance(value, int) else None
