"""The ops of a host function of device programs, as statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.conversions.host_functions.cpp_interface import DEVICE, ConstantFile, returned_type
from ttcodegen.conversions.host_functions.cpu_functions import HOST_PARTS, HOST_TENSOR, CppFunction
from ttcodegen.conversions.host_functions.expression_forms import DIMENSIONS, NamedConstant
from ttcodegen.conversions.host_functions.recording import SourceFacts, Statement, StatementRecorder
from ttcodegen.conversions.host_functions.shards import shards_text
from ttcodegen.conversions.mesh.device_exchange import ChipExchange
from ttcodegen.conversions.ttmetal_to_emitc.shared_programs import SharedPrograms
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.ttcore.mesh import ONE_CHIP, declared_mesh
from ttcodegen.dialects.ttmetal.device_module import attribute_of, launch_of
from ttcodegen.dialects.ttmetal.op_names import (
    CONSTANT,
    CREATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
)
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    TTNNLayoutAttr,
    has_placement,
    placement_of,
)
from ttcodegen.emitc.identifiers import identifier
from ttcodegen.emitc.spelling import string_literal
from ttcodegen.emitc.text import Text
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.cpu_functions import purpose_of_cpu_function
from ttcodegen.naming.programs import purpose_of_program, run_name
from ttcodegen.ops.core.calls import Argument, Call, Use
from ttcodegen.parsing.structure import operation_name

if TYPE_CHECKING:
    from ttcodegen.naming.values import ValueNames

TENSOR = "support::DeviceTensor"
PROGRAMS = "programs"
"""The field of the constants that holds the programs."""


NumberedExchanges = Mapping[Operation, tuple[int, ChipExchange]]
"""What the chips exchange themselves in place of calls for the CPU, with its number."""


def creation_arguments(placement: TensorPlacement) -> list[Text]:
    """What `support::create_tensor` takes to make a tensor."""
    arguments = [*placement_arguments(placement), Text(DEVICE)]
    if placement.buffer_type == "l1" or placement.shards is not None:
        memory = placement.buffer_type.upper()
        arguments.append(Text(f"tt::tt_metal::BufferType::{memory}"))
    if placement.shards is not None and placement.memory_layout is not None:
        shards = shards_text(placement.shards, placement.memory_layout)
        arguments.append(Text(f"support::Shards{shards}"))
    return arguments


def placement_arguments(placement: TensorPlacement) -> list[Text]:
    """Shape, data type and layout as the support functions take them."""
    sizes = ", ".join(str(size) for size in placement.shape)
    return [
        NamedConstant(f"{{{sizes}}}", DIMENSIONS),
        Text(f"DataType::{placement.data_type.cpp}"),
        Text(f"Layout::{placement.layout.name}"),
    ]


class DeviceRecorder(StatementRecorder):
    """Records the statements of a host function."""

    def __init__(
        self,
        facts: SourceFacts,
        names: ValueNames,
        programs: SharedPrograms,
        cpu_functions: Mapping[str, CppFunction],
        exchanges: NumberedExchanges,
    ) -> None:
        super().__init__(facts, names)
        self.programs = programs
        self.cpu_functions = cpu_functions
        self._exchanges = exchanges
        self._on_mesh = False

    def record(self, ops: Iterable[Operation]) -> list[Statement]:
        """The statements of ops in order.

        Raises:
            CompileError: if an op cannot run on the host.
        """
        for op in ops:
            rule = _RULES.get(operation_name(op))
            if rule is None:
                raise CompileError(f"'{operation_name(op)}' cannot run on the host", op)
            self._op = op
            self._on_mesh = declared_mesh(op) != ONE_CHIP
            rule(self, op)
        return self.statements

    def type_of(self, value: SSAValue) -> str:
        """A tensor of the device has a layout."""
        on_device = isinstance(getattr(value.type, "encoding", None), TTNNLayoutAttr)
        return TENSOR if on_device else self._host_tensor

    @property
    def _host_tensor(self) -> str:
        return HOST_PARTS if self._on_mesh else HOST_TENSOR

    def load(self, op: Operation) -> None:
        """A constant of the module, from its file."""
        result = op.results[0]
        file = self.facts.constant_names.unique(identifier(self.names[result]))
        placement, value = placement_of(result), attribute_of(op, "value")
        assert value is not None
        self.facts.constants.append(ConstantFile(file, value, placement.data_type))
        name = Text(string_literal(file))
        arguments = (name, *placement_arguments(placement), Text(DEVICE))
        self._call(op, "support::load_tensor", *arguments, type=TENSOR)

    def create(self, op: Operation) -> None:
        """A new tensor, unless what runs the program that fills it makes it."""
        if op.results[0] not in self.programs.made and self._copied(op) is None:
            if not has_placement(op.results[0]):
                raise CompileError(
                    f"'{op.name}' makes a tensor of which nothing says where it is placed",
                    op,
                    remedy="give its type a layout (#ttnn.ttnn_layout), as lowering does",
                )
            arguments = creation_arguments(placement_of(op.results[0]))
            self._call(op, "support::create_tensor", *arguments, type=TENSOR)

    def view(self, op: Operation) -> None:
        """Another shape for the same memory."""
        shape = placement_arguments(placement_of(op.results[0]))[0]
        self._call(op, "support::view", Use(op.operands[0]), shape, type=TENSOR)

    def launch(self, op: Operation) -> None:
        """A run of a program, which gives the tensors that it makes."""
        shared = self.programs.by_name[launch_of(op).program.name]
        given = [place for place in range(len(op.operands)) if place not in shared.made]
        results = tuple(op.operands[place] for place in shared.made)
        types = (TENSOR,) * len(results)
        programs = Call(f"*constants.{PROGRAMS}", (), "Programs", "literal")
        arguments = (programs, *(Use(op.operands[place]) for place in given), Text(DEVICE))
        names = shared.operand_names()
        labels = ("", *(names[place] for place in given))
        name = run_name(shared.program.name)
        type_ = returned_type(types) or "void"
        purpose = purpose_of_program(shared.program.name)
        call = Call(name, arguments, type_, parameters=labels, purpose=purpose)
        self._add(call, results, types)

    def read(self, op: Operation) -> None:
        """A copy of a tensor on the host."""
        if all(use.operation in self._exchanges for use in op.results[0].uses):
            return
        callee = "parts_from_device" if self._on_mesh else "from_device"
        self._call(op, f"support::cpu::{callee}", Use(op.operands[0]), type=self._host_tensor)

    def write_back(self, op: Operation) -> None:
        """A tensor of the host, copied to the device."""
        call = op.operands[0].owner
        if isinstance(call, Operation) and call in self._exchanges:
            self._exchange(op, *self._exchanges[call])
            return
        host, target = op.operands
        created = target.owner
        if isinstance(created, Operation) and self._copied(created) is op:
            arguments = (Use(host), *creation_arguments(placement_of(target)))
            call = Call("support::cpu::copy_to_device", arguments, TENSOR)
            self._add(call, (target,), (TENSOR,))
            return
        self._call(op, "support::cpu::to_device", Use(host), Use(target))

    def _copied(self, created: Operation) -> Operation | None:
        """The copy from the host that fills a tensor right after it is made, in one call; None if
        something else does."""
        after = created.next_op
        if after is None or {operation_name(created), operation_name(after)} != {
            CREATE_BUFFER,
            ENQUEUE_WRITE_BUFFER,
        }:
            return None
        is_exchanged = after.operands[0].owner in self._exchanges
        return after if after.operands[-1] is created.results[0] and not is_exchanged else None

    def call(self, op: Operation) -> None:
        """A function on the CPU."""
        if op in self._exchanges:
            return
        type_ = self._host_tensor
        function = self._cpu_function(op)
        operands: list[Argument] = [*map(Use, op.operands)]
        if not self._on_mesh or function.joins_chips:
            purpose = purpose_of_cpu_function(function.name)
            call = Call(function.name, tuple(operands), type_, purpose=purpose)
            self._add(call, op.results, (type_,) * len(op.results))
        else:
            # The device says for how many chips a function without operands is called.
            among = operands or [Text(DEVICE)]
            called = Text(function.name)
            self._call(op, "support::cpu::on_each_chip", called, *among, type=type_)

    def _exchange(self, op: Operation, number: int, exchange: ChipExchange) -> None:
        """What the chips give each other, once the target is there."""
        sharing = exchange.sharing
        fields = {
            "axis": sharing.axis,
            "pages": sharing.pages,
            "source_run": sharing.source_run,
            "target_run": sharing.target_run,
            "divides": str(sharing.divides).lower(),
            "joins": str(sharing.joins).lower(),
        }
        if sharing.pairs:
            pairs = ", ".join(f"{{{source}, {target}}}" for source, target in sharing.pairs)
            fields["pairs"] = f"{{{pairs}}}"
        self._call(
            op,
            "exchange",
            Call(f"*constants.{PROGRAMS}", (), "Programs", "literal"),
            Text(str(number)),
            Use(exchange.source),
            Use(exchange.target),
            Text("{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"),
            Text(DEVICE),
        )

    def _call(self, op: Operation, callee: str, *arguments: Argument, type: str = "void") -> None:
        self._add(Call(callee, arguments, type), op.results, (type,) * len(op.results))

    def _cpu_function(self, op: Operation) -> CppFunction:
        function = self.cpu_functions.get(callee_of(op) or "")
        if function is None:
            raise CompileError("the host calls a function that is not one for the CPU", op)
        return function


_RULES: Mapping[str, Callable[[DeviceRecorder, Operation], None]] = {
    CONSTANT: DeviceRecorder.load,
    CREATE_BUFFER: DeviceRecorder.create,
    RUN_PROGRAM: DeviceRecorder.launch,
    ENQUEUE_READ_BUFFER: DeviceRecorder.read,
    ENQUEUE_WRITE_BUFFER: DeviceRecorder.write_back,
    CallOp.name: DeviceRecorder.call,
    VIEW: DeviceRecorder.view,
}
"""The statement of each op of a host function."""
