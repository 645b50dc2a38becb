"""True if a program fits the device: its DRAM, its L1, its cores and its data types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.functions import argument_type
from ttcodegen.dialects.ttcore.dialect import ArgumentType, LoadCachedOp, system_of
from ttcodegen.dialects.ttmetal.programs import DEALLOCATE_BUFFER, RUN_PROGRAM
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Note
from ttcodegen.layout.placements import TiledShape, bank_bytes, tile_bytes_of
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, ChipDescription
from ttcodegen.transforms.functions.const_eval_hoist import is_const_eval
from ttcodegen.transforms.rebuilding import body_of
from ttcodegen.transforms.ttnn.deallocate import buffer_owners

if TYPE_CHECKING:
    # Programs of the library are checked without the dialects of device programs, which take
    # longer to import than a small model to compile.
    from ttcodegen.dialects.ttmetal.dialect import RunProgramOp

_DEALLOCATIONS = ("ttnn.deallocate", DEALLOCATE_BUFFER)


@dataclass(frozen=True)
class CheckMemory(ModulePass):
    """Refuses programs that the device of the module cannot hold.

    Tensors count from the op that makes them until they are deallocated, weights and what is
    computed from them always; a program computes its constants before its first run. Circular
    buffers of programs of the device count while the program runs; what calls of a library allocate
    for themselves is not known.

    Raises CompileError that names the op at which the memory does not suffice, and what takes it;
    the data types that the chip lacks; or tensors that are divided among more cores than there are.
    """

    name = "ttcore-check-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = system_of(op) or default_system(DEFAULT_ARCHITECTURE)
        functions = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        diagnostics = Diagnostics()
        for function in functions:
            _check_types(function, system.chip, diagnostics)
        diagnostics.raise_errors()
        for function in functions:
            _Usage(function, system.chip).check()


@dataclass(frozen=True)
class CheckSizes(ModulePass):
    """Refuses programs with inputs, outputs or constants of which one alone is larger than the DRAM
    of the module's device, before anything is computed of them.

    Raises CompileError with all such values.
    """

    name = "ttcore-check-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = (system_of(op) or default_system(DEFAULT_ARCHITECTURE)).chip
        room = (chip.dram_unreserved_end - chip.dram_unreserved_base) * chip.num_dram_channels
        diagnostics = Diagnostics()
        for function in (f for f in op.body.block.ops if isinstance(f, FuncOp)):
            for value, owner in _stored_values(function):
                needed = _least_bytes(value)
                if needed > room:
                    diagnostics.error(
                        f"a tensor of type {value.type} does not fit into the DRAM of {chip.arch}: "
                        f"it needs {_shown(needed)}, {_shown(room)} can be used",
                        owner,
                    )
        diagnostics.raise_errors()


def _stored_values(function: FuncOp) -> Iterator[tuple[SSAValue, Operation | SSAValue]]:
    """The arguments, what is returned, and what is made of nothing."""
    block = body_of(function)
    for argument in block.args:
        yield argument, argument
    for op in block.ops:
        values = op.operands if isinstance(op, ReturnOp) else () if op.operands else op.results
        for value in values:
            yield value, op


def _least_bytes(value: SSAValue) -> int:
    """Lower bound on a tensor's bytes in tiles.

    An argument counts in its narrowest type, since weights may become block floats.
    """
    data_type = normalized_data_type(element_of(value.type))
    if data_type is None or isinstance(value, BlockArgument):
        data_type = DataType.BFLOAT4_B
    return TiledShape(shape_of(value.type)).tiles * tile_bytes_of(data_type)


def _placements(op: Operation) -> Iterator[TensorPlacement]:
    values: list[SSAValue] = list(op.results)
    if isinstance(op, FuncOp):
        values += body_of(op).args
    for value in values:
        if (placement := _placement(value.type)) is not None:
            yield placement


def _placement(type_: Attribute) -> TensorPlacement | None:
    """The layout of a tensor, None if none was assigned."""
    if isinstance(type_, TensorType) and isinstance(type_.encoding, TTNNLayoutAttr):
        return type_.encoding.data
    return None


def _check_types(function: FuncOp, chip: ChipDescription, diagnostics: Diagnostics) -> None:
    warned: set[str] = set()
    for op in function.walk():
        for placement in _placements(op):
            name = placement.data_type.mlir
            if name not in chip.supported_data_types and name not in warned:
                warned.add(name)
                diagnostics.error(
                    f"the chip has no tensors of {name}",
                    op,
                    remedy=f"it has {', '.join(chip.supported_data_types)}",
                )
            shards = placement.shards
            if shards is not None and shards.cores > chip.cores:
                diagnostics.error(
                    f"a tensor is divided among {shards.cores} cores, the chip has {chip.cores}", op
                )


@dataclass(frozen=True)
class Banks:
    """The memory that a tensor takes: `bytes` of each bank of a kind of memory."""

    memory: str
    bytes: int


def banks_of(placement: TensorPlacement, chip: ChipDescription) -> Banks | None:
    """The bytes of a tensor, None if it is on the host."""
    if placement.buffer_type == "system_memory":
        return None
    in_dram = placement.buffer_type == "dram"
    alignment = chip.noc_dram_address_align_bytes if in_dram else chip.noc_l1_address_align_bytes
    banks = chip.num_dram_channels if in_dram else chip.cores
    return Banks(placement.buffer_type, bank_bytes(placement, banks, alignment))


@dataclass
class _Usage:
    """Follows what a function takes of the banks, op by op."""

    function: FuncOp
    chip: ChipDescription
    taken: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """By memory, then by what it is taken for: bytes of each bank."""
    known: dict[TensorPlacement, Banks | None] = field(
        default_factory=dict[TensorPlacement, "Banks | None"]
    )
    """The bytes of tensors by layout: most tensors share a layout with others."""

    def check(self) -> None:
        """Raises CompileError at the first op for which no room is left."""
        block = body_of(self.function)
        owners = buffer_owners(block)
        for argument in block.args:
            weight = is_const_eval(self.function) or argument_type(
                self.function, argument.index
            ) in (ArgumentType.PARAMETER, ArgumentType.CONSTANT)
            self._take(argument, "weights" if weight else "inputs", self.function)
        for op in block.ops:
            kind = "constants" if isinstance(op, LoadCachedOp) else "activations"
            for result in op.results:
                if owners[result] is result:
                    self._take(result, kind, op)
            if op.name in _DEALLOCATIONS and owners[op.operands[0]] is op.operands[0]:
                self._give_back(op.operands[0])
            if op.name == RUN_PROGRAM:
                self._run(cast("RunProgramOp", op))

    def _banks(self, value: SSAValue) -> Banks | None:
        placement = _placement(value.type)
        if placement is None:
            return None
        if placement not in self.known:
            self.known[placement] = banks_of(placement, self.chip)
        return self.known[placement]

    def _take(self, value: SSAValue, kind: str, op: Operation) -> None:
        banks = self._banks(value)
        if banks is None:
            return
        kinds = self.taken.setdefault(banks.memory, {})
        kinds[kind] = kinds.get(kind, 0) + banks.bytes
        if sum(kinds.values()) > self._limit(banks.memory):
            raise self._full(banks.memory, kinds, op)

    def _run(self, op: RunProgramOp) -> None:
        """Counts the circular buffers of a program, which go when it ends."""
        program = op.program.data
        kinds = self.taken.setdefault("l1", {})
        kinds["circular buffers"] = program.l1_bytes
        if sum(kinds.values()) > self._limit("l1"):
            raise self._full("l1", kinds, op)
        del kinds["circular buffers"]

    def _give_back(self, value: SSAValue) -> None:
        banks = self._banks(value)
        if banks is not None:
            self.taken[banks.memory]["activations"] -= banks.bytes

    def _limit(self, memory: str) -> int:
        """Bytes of each bank that tensors may take."""
        if memory == "dram":
            return self.chip.dram_unreserved_end - self.chip.dram_unreserved_base
        return self.chip.usable_l1

    def _full(self, memory: str, kinds: dict[str, int], op: Operation) -> CompileError:
        in_dram = memory == "dram"
        banks = self.chip.num_dram_channels if in_dram else self.chip.cores
        where = "DRAM" if in_dram else "L1"
        needed, limit = sum(kinds.values()) * banks, self._limit(memory) * banks
        notes = [
            Note(f"{kind}: {_shown(size * banks)}") for kind, size in kinds.items() if size > 0
        ]
        return CompileError(
            f"'{self.function.sym_name.data}' does not fit into the {where} of {self.chip.arch}: "
            f"it needs {_shown(needed)} here, {_shown(limit)} can be used",
            op,
            remedy="narrower data types or a smaller batch take less; a chip with more memory is "
            "named by a system description",
            notes=notes,
        )


def _shown(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} bytes"
