"""The ops of a function as statements that are written later: what both targets share, and the
statements of TTNN ops, which the catalogue describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE, ConstantFile
from ttcodegen.conversions.host_functions.expression_forms import Form, form_of
from ttcodegen.conversions.host_functions.tuning_constants import Tuning
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.dialects.ttnn.program_configs import ProgramConfig
from ttcodegen.emitc.identifiers import NameScope, identifier
from ttcodegen.emitc.text import Text
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.values import ValueNames
from ttcodegen.ops.core.calls import Argument, Call, Use, cpp_text
from ttcodegen.ops.core.definition import TTNNDefinition

TENSOR = "ttnn::Tensor"
DEALLOCATE = "deallocate"
"""The op that says when memory is free, which C++ says by the lifetimes of variables."""


def is_deallocation(op: Operation) -> bool:
    """True if an op only says when memory is free."""
    return op.name == f"ttnn.{DEALLOCATE}"


@dataclass(frozen=True, slots=True)
class Counted(Text):
    """A number that grows by `step` in each turn of a loop; the text is the first one's."""

    step: int


@dataclass(frozen=True)
class Loop:
    """How often a statement is run."""

    counter: str
    """What the counter is called ..."""
    type: str
    """... and its type."""
    count: int


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement: an expression, and the values of the program that hold what it gives."""

    op: Operation
    call: Argument
    results: tuple[SSAValue, ...]
    uses: tuple[SSAValue, ...]
    """The values that the expression uses, once for each time."""
    title: str | None = None
    """What the statement is, of one that calls a layer."""
    types: tuple[str, ...] | None = None
    """The C++ types of the results; None if all are tensors of the target."""
    others: tuple[Operation, ...] = ()
    """The other ops that the statement is run for, or that it runs."""
    loop: Loop | None = None
    """The loop that it is the body of."""

    @property
    def ops(self) -> tuple[Operation, ...]:
        """All ops that it implements."""
        return self.op, *self.others

    @property
    def runs_statements(self) -> bool:
        """True if it calls a function of the program itself, which frees what it is given."""
        return isinstance(self.call, Call) and self.call.outlined and self.loop is None

    @cached_property
    def form(self) -> Form:
        """The expression taken apart, to be compared with others."""
        return form_of(self.call)


class SourceFacts:
    """What the statements of a source file need beside themselves."""

    def __init__(self) -> None:
        self.own_headers: set[str] = set()
        self.headers: set[str] = set()
        self.constants: list[ConstantFile] = []
        self.constant_names = NameScope()
        self.tuning = Tuning()


class StatementRecorder:
    """Records the statements of a function, whatever its ops are."""

    def __init__(self, facts: SourceFacts, names: ValueNames) -> None:
        self.facts = facts
        self.names = names
        self.statements: list[Statement] = []
        self._op: Operation | None = None
        self._same: dict[SSAValue, SSAValue] = {}
        self._shared: set[int] = set()

    def resolved(self, value: SSAValue) -> SSAValue:
        """The value that a value is the same as in C++; itself in general."""
        return self._same.get(value, value)

    def type_of(self, value: SSAValue) -> str:
        """The C++ type of a value."""
        return TENSOR

    def _add(
        self, call: Argument, results: Sequence[SSAValue], types: tuple[str, ...] | None = None
    ) -> None:
        assert self._op is not None
        uses = tuple(self._uses(call))
        self.statements.append(Statement(self._op, call, tuple(results), uses, types=types))

    def _uses(self, argument: Argument) -> Iterator[SSAValue]:
        if isinstance(argument, Use):
            yield argument.value
        elif isinstance(argument, Call) and id(argument) not in self._shared:
            if argument.type != TENSOR:
                self._shared.add(id(argument))
            for inner in argument.arguments:
                yield from self._uses(inner)


class Recorder(StatementRecorder):
    """Records the statements of TTNN ops; implements `cpp_calls.CppCalls`."""

    def __init__(self, facts: SourceFacts, names: ValueNames) -> None:
        super().__init__(facts, names)

    def record(self, ops: Iterable[Operation]) -> list[Statement]:
        """The statements of ops in order.

        Raises:
            CompileError: if an op has no C++.
        """
        for op in ops:
            if not isinstance(op, CatalogueOp) or is_deallocation(op):
                continue
            definition = op.definition
            if not isinstance(definition, TTNNDefinition) or definition.cpp is None:
                raise CompileError(f"'{op.name}' has no C++ call", op.source_offset)
            self._op = op
            definition.cpp(self, op)
        return self.statements

    # --- What the catalogue uses -----------------------------------------------------------------

    def __getitem__(self, value: SSAValue) -> Argument:
        return Use(self.resolved(value))

    @property
    def device(self) -> Argument:
        return Text(DEVICE)

    @property
    def device_pointer(self) -> Argument:
        return Text(f"&{DEVICE}")

    def include(self, header: str) -> None:
        self.facts.headers.add(header)

    def include_support(self, header: str) -> None:
        self.facts.own_headers.add(f"support/{header}")

    def include_source(self, header: str) -> None:
        self.facts.own_headers.add(header)

    def call(self, callee: str, *arguments: Argument, type: str = TENSOR) -> Argument:
        return Call(callee, arguments, type)

    def nested(self, callee: str, *arguments: Argument, type: str = TENSOR) -> Argument:
        return Call(callee, arguments, type)

    def bind_several(self, results: Sequence[SSAValue], callee: str, *arguments: Argument) -> None:
        self._add(Call(callee, arguments, TENSOR), results)

    def run(self, callee: str, *arguments: Argument) -> None:
        self._add(Call(callee, arguments, "void"), ())

    def literal(self, text: str, type: str) -> Argument:
        return Call(text, (), type, "literal")

    def get(self, value: Argument, index: int, type: str = TENSOR) -> Argument:
        return Call("std::get", (value,), type, "get", index)

    def subscript(self, value: Argument, index: int, type: str = TENSOR) -> Argument:
        return Call("", (value,), type, "subscript", index)

    def memory_config(self, placement: TensorPlacement) -> Argument:
        if placement.shards is not None:
            return Text(self.facts.tuning.sharded(placement))
        known = {("dram", "interleaved"): "DRAM", ("l1", "interleaved"): "L1"}
        buffer = known[placement.buffer_type, placement.memory_layout or ""]
        kind = "weights" if self.names.of_weights else "activations"
        return Text(self.facts.tuning.memory(kind, buffer))

    def compute_config(self, config: ComputeConfig) -> Argument:
        return Text(self.facts.tuning.compute(config))

    def data_type(self, op: CatalogueOp, data_type: DataType) -> Argument:
        return Text(self.facts.tuning.data_type(op) or cpp_text(data_type))

    def tuned(self, name: str) -> Argument:
        return Text(self.facts.tuning.undecided(name))

    def program_config(self, config: ProgramConfig) -> Argument:
        self.facts.headers.add(config.header)
        return Text(self.facts.tuning.program(config))

    def data_array(self, op: CatalogueOp) -> str:
        name = self.facts.constant_names.unique(identifier(self.names[op.results[0]]))
        self.facts.constants.append(
            ConstantFile(name, op.parameter("value"), placement_of(op.results[0]).data_type)
        )
        return name

    def list(self, type: str, elements: Iterable[Argument]) -> Argument:
        return Call(type, tuple(elements), type, "list")

    def bind(self, result: SSAValue, value: Argument) -> None:
        if isinstance(value, Use):
            self._same[result] = value.value
        else:
            self._add(value, (result,))
