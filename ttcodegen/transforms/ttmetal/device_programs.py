"""Hand-written device programs: completion and semantics; deduplication of equal kernels.

Kernels that differ in names only become one, which names tensors by their roles in the program:
`left`, `bias`. So do the kernels of programs of the same structure, so that a single C++ function
builds them all. Kernels whose users agree on names keep these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import (
    element_of,
    normalized_data_type,
    shape_of,
    without_encoding,
)
from ttcodegen.dialects.operations.functions import CPU_CALL, KERNEL_THREAD, body_of, change_types
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    MEANING,
    Launch,
    ProgramAttr,
    functions_of,
    holds_programs,
    is_host_function,
    is_meaning,
    launch_of,
    launches,
)
from ttcodegen.dialects.ttmetal.program_verification import verify_programs
from ttcodegen.dialects.ttmetal.programs import (
    CREATE_BUFFER,
    DEALLOCATE_BUFFER,
    ENQUEUE_READ_BUFFER,
    ENQUEUE_WRITE_BUFFER,
    RUN_PROGRAM,
    VIEW,
    BufferAddress,
    Kernel,
    Processor,
    Program,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, has_placement, placed_type
from ttcodegen.emitc.spelling import NameScope
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.naming.programs import neutral_names, renamed_after_tensor, shared_kernel_name
from ttcodegen.naming.values import operand_roles
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttir_op_classes

# Semantics of device programs, as TTIR functions.


def call_meanings(module: ModuleOp) -> None:
    """Replaces each launch of a program by a call of the TTIR function with its semantics.

    Kernels are removed, and tensors lose their placement.

    Raises:
        CompileError: at a launch of a program whose semantics are missing or only declared.
    """
    verify_programs(module)
    meanings = {each.sym_name.data: each for each in functions_of(module) if is_meaning(each)}
    for function in list(functions_of(module)):
        if KERNEL_THREAD in function.attributes:
            function.detach()
        elif is_host_function(function):
            _call_meanings(function, meanings)
    for function in functions_of(module):
        function.attributes.pop(MEANING, None)
        change_types(function, without_encoding)


def _call_meanings(function: FuncOp, meanings: Mapping[str, FuncOp]) -> None:
    """Replaces the launches of a function in order, tracking the contents of each buffer."""
    held: dict[SSAValue, SSAValue] = {}
    replaced: list[Operation] = []
    block = body_of(function)
    for op in list(block.ops):
        operands = [held.get(operand, operand) for operand in op.operands]
        builder = OpBuilder(ttir_op_classes(), partial(block.insert_op_before, existing_op=op))
        builder.origin = op
        name = operation_name(op)
        if name == RUN_PROGRAM:
            launch = launch_of(op)
            results = _call(op, operands[: len(launch.inputs)], meanings[launch.meaning], builder)
            written = dict(zip(launch.outputs, results, strict=True))
        elif name == ENQUEUE_WRITE_BUFFER and len(operands) > 1:
            written = {op.operands[1]: operands[0]}
        elif name in (VIEW, ENQUEUE_READ_BUFFER) and len(operands) == 1:
            written = {op.results[0]: operands[0]}
        elif name in (CREATE_BUFFER, DEALLOCATE_BUFFER):
            written = {}
        else:
            op.operands = operands
            continue
        held |= {buffer: _as(builder, value, buffer.type) for buffer, value in written.items()}
        replaced.append(op)
    for op in reversed(replaced):
        op.detach()
        op.erase()


def _call(
    op: Operation, inputs: Sequence[SSAValue], meaning: FuncOp, builder: OpBuilder
) -> Sequence[SSAValue]:
    """Applies the TTIR meaning of a program to tensors."""
    if meaning.is_declaration:
        raise CompileError(
            f"this program has no meaning: @{meaning.sym_name.data} has no body",
            op,
            remedy="give it a body of TTIR ops",
        )
    types = meaning.function_type
    given = [
        _as(builder, value, type_) for value, type_ in zip(inputs, types.inputs.data, strict=True)
    ]
    call = CallOp(meaning.sym_name.data, given, list(types.outputs.data))
    copy_source_offset(op, call)
    builder.insert(call)
    return call.results


def _as(builder: OpBuilder, value: SSAValue, type_: Attribute) -> SSAValue:
    """Converts a tensor to the shape and element type of another type."""
    return builder.typecast(builder.reshape(value, shape_of(type_)), element_of(type_))


# Completion of hand-written device programs that omit attributes.


def complete_programs(module: ModuleOp) -> None:
    """Marks the functions that define the semantics of programs, and adds missing placements.

    Tensors without layout are placed in DRAM, in tiles, as by the lowering. Modules without
    programs are left alone, as are operands and results of CPU functions, which are on the host.

    Raises:
        CompileError: at an operand of a program that has another kind of layout.
    """
    named = {
        meaning.string_value()
        for op in module.walk()
        if operation_name(op) == RUN_PROGRAM
        and isinstance(meaning := op.properties.get("meaning"), SymbolRefAttr)
    }
    for function in functions_of(module):
        if function.sym_name.data in named:
            function.attributes[MEANING] = UnitAttr()
    if not holds_programs(module):
        return
    for function in functions_of(module):
        if is_host_function(function):
            change_types(function, _placed, kept=_on_host(function))
            for op in function.walk():
                if operation_name(op) == RUN_PROGRAM:
                    _require_placements(op)


def _on_host(function: FuncOp) -> set[SSAValue]:
    """Returns the operands and results of calls of CPU functions."""
    calls = [op for op in function.walk() if CPU_CALL in op.attributes]
    return {value for call in calls for value in (*call.operands, *call.results)}


def _placed(type_: Attribute) -> Attribute:
    """Adds a placement to the type of a tensor; types that have a layout, or can have none, are
    kept."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    data_type = normalized_data_type(tensor.element_type)
    if not isinstance(tensor.encoding, NoneAttr) or data_type is None:
        return tensor
    return placed_type(TensorPlacement(shape_of(tensor), data_type))


def _require_placements(launch: Operation) -> None:
    """Raises CompileError at a launch of a program on tensors without a placement."""
    for position, operand in enumerate(launch.operands):
        if not has_placement(operand):
            raise CompileError(
                f"operand {position} of this program is {operand.type}, which is no tensor in a "
                "memory of the device",
                launch,
                remedy="give it a #ttnn.ttnn_layout, or leave the layout out: then it is in DRAM, "
                "in tiles",
            )


_PAGES = re.compile(r"(?<=!ttkernel\.cb<)\d+, ")
"""Attribute with the page count of a circular buffer, which the host decides."""
_VERBS = {Processor.READER: "Reads", Processor.WRITER: "Writes", Processor.COMPUTE: "Computes"}


@dataclass(frozen=True)
class ShareKernels(ModulePass):
    """Deduplicates kernels that differ only in names."""

    name = "ttmetal-share-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {function.sym_name.data: function for function in functions_of(op)}
        hosts = [function for function in functions.values() if is_host_function(function)]
        found: dict[str, list[_Use]] = {}
        alike: dict[object, list[list[_Use]]] = {}
        roles: dict[str, list[str]] = {}
        for launch in launches(hosts):
            if launch.meaning not in roles:
                roles[launch.meaning] = operand_roles(functions.get(launch.meaning))
            names = neutral_names(launch.program, roles[launch.meaning])
            of_program = [
                _Use(launch, place, functions[kernel.function], names)
                for place, kernel in enumerate(launch.program.kernels)
            ]
            for use in of_program:
                found.setdefault(use.neutral_text, []).append(use)
            alike.setdefault(_structure(of_program), []).append(of_program)
        neutral = {
            use
            for programs in alike.values()
            if len({tuple(members[0].names) for members in programs}) > 1
            for members in programs
            for use in members
        }
        kept: list[_Use] = []
        shared: list[list[_Use]] = []
        for uses in found.values():
            if len({use.text for use in uses}) > 1 or not neutral.isdisjoint(uses):
                shared.append(uses)
            else:
                kept += uses
        replaced = {use.function for uses in shared for use in uses}
        replaced -= {use.function for use in kept}
        others = (name for name, function in functions.items() if function not in replaced)
        taken = NameScope([*(use.kernel.name for use in kept), *others])
        changed: dict[tuple[Operation, int], Kernel] = {}
        for uses in shared:
            _share(uses, taken, changed)
        for function in replaced:
            function.detach()
            function.erase()
        for launch in launches(hosts):
            program = launch.program
            kernels = tuple(changed.get((launch.op, i), k) for i, k in enumerate(program.kernels))
            launch.op.properties["program"] = ProgramAttr(replace(program, kernels=kernels))


@dataclass(frozen=True, eq=False)
class _Use:
    """A kernel of a program."""

    launch: Launch
    place: int
    """Index of the kernel in its program."""
    function: FuncOp
    names: Mapping[str, str]
    """Neutral names of tensors by their names in the program."""

    @property
    def kernel(self) -> Kernel:
        return self.launch.program.kernels[self.place]

    @cached_property
    def text(self) -> str:
        """Returns everything that determines the kernel's source file."""
        text = _text(self.launch.program, self.kernel, self.function)
        return f"{self.kernel.purpose}\n{text}"

    @cached_property
    def neutral_text(self) -> str:
        """Returns everything but the purpose, with neutral names."""
        return _text(self.launch.program, self.neutral, self.neutral_function)

    @cached_property
    def neutral(self) -> Kernel:
        """Returns the kernel with neutral names."""
        kernel = self.kernel
        constants = tuple(replace(c, name=self.renamed(c.name)) for c in kernel.constants)
        arguments = tuple(
            replace(a, name=self.renamed(a.name)) if isinstance(a.value, BufferAddress) else a
            for a in kernel.arguments
        )
        return replace(kernel, constants=constants, arguments=arguments)

    @cached_property
    def neutral_function(self) -> FuncOp:
        """Returns the kernel's function with neutral names."""
        made = self.function.clone()
        for op in made.walk():
            name = op.properties.get("arg_name")
            if isinstance(name, StringAttr):
                # The name hint may differ: xDSL drops numeric suffixes.
                op.properties["arg_name"] = StringAttr(self.renamed(name.data))
                op.results[0].name_hint = self.renamed(name.data)
                continue
            for value in op.results:
                if value.name_hint is not None:
                    value.name_hint = self.renamed(value.name_hint)
        return made

    def renamed(self, name: str) -> str:
        """Returns the name with a tensor's name in it replaced by the neutral one."""
        return renamed_after_tensor(name, self.names)


def _structure(uses: Sequence[_Use]) -> object:
    """Returns the structure of a program, independent of sizes and of kernel bodies.

    It covers circular buffers, kernels and their arguments.
    """
    program = uses[0].launch.program
    buffers = tuple((uses[0].renamed(b.name), b.operand) for b in program.circular_buffers)
    kernels = tuple(
        (
            use.kernel.processor,
            use.kernel.cores,
            tuple(constant.name for constant in use.neutral.constants),
            use.kernel.semaphores,
            use.kernel.accessors,
            tuple((argument.name, argument.value) for argument in use.neutral.arguments),
        )
        for use in uses
    )
    return program.purpose, program.semaphores, buffers, kernels


def _text(program: Program, kernel: Kernel, function: FuncOp) -> str:
    """Returns everything that determines a kernel's text except its purpose."""
    parts = [constant.name for constant in kernel.constants]
    for name, buffer in program.buffers_of(kernel).items():
        parts.append(f"{name} {buffer.data_type} {buffer.page_size}")
    parts += kernel.semaphores
    parts += [argument.name for argument in kernel.arguments]
    text = str(function).replace(f"@{function.sym_name.data}(", "@kernel(")
    return "\n".join([*parts, _PAGES.sub("", text)])


def _share(
    uses: list[_Use], taken: NameScope, changed: dict[tuple[Operation, int], Kernel]
) -> None:
    """Creates one kernel for uses that are equal up to names."""
    first = uses[0]
    function = first.neutral_function
    block = first.function.parent_block()
    assert block is not None
    name = taken.unique(shared_kernel_name([use.kernel.name for use in uses]))
    function.sym_name = StringAttr(name)
    block.insert_op_before(function, first.function)
    purposes = {use.kernel.purpose for use in uses}
    purpose = purposes.pop() if len(purposes) == 1 else general_purpose(first.kernel)
    for use in uses:
        kernel = replace(use.neutral, name=name, function=name, purpose=purpose)
        changed[use.launch.op, use.place] = kernel


def general_purpose(kernel: Kernel) -> str:
    """Returns a generic purpose of a kernel, valid for any program."""
    whose = "input" if kernel.processor is Processor.READER else "output"
    return f"{_VERBS[kernel.processor]} tiles of {whose} tensors."
