"""Names of device programs, their kernels and tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ttcodegen.dialects.operations.functions import argument_type, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    Launch,
    functions_of,
    is_meaning,
    launch_of,
)
from ttcodegen.dialects.ttmetal.programs import (
    BUFFER_CONSTANT,
    CONSTANT,
    RUN_PROGRAM,
    VIEW,
    BufferAddress,
    CircularBuffer,
    Kernel,
    Program,
)
from ttcodegen.dialects.ttnn.placement import has_placement
from ttcodegen.emitc.inlining import NAME
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.naming.arguments import argument_titles, result_names
from ttcodegen.naming.functions import shape_text, without_shapes
from ttcodegen.naming.modules import (
    FunctionNames,
    constant_title,
    distinct_names,
    given_names,
    values_of,
)
from ttcodegen.naming.sources import name_or_kind
from ttcodegen.naming.values import INPUT, SIDES, ValueNames, qualifier
from ttcodegen.ops.device_constants import device_constants, written_by
from ttcodegen.ops.tt_lang import CALLED_OPERATION, called_name

_ADDRESS = "_address"
_FINAL_NUMBER = re.compile(r"_\d+$")
_ENDINGS = ("address", "elements", "kept", "layout", "row", "tensor", "tiles")
"""Suffixes of names derived from a tensor."""


def program_name(ops: Sequence[Operation]) -> str:
    """Name of the program of some ops: the first ones and the last one."""
    kinds = [
        called_name(op)
        if isinstance(op, CatalogueOp) and op.name == CALLED_OPERATION
        else operation_name(op).partition(".")[2]
        for op in ops
    ]
    if len(kinds) > 3:
        kinds = [*kinds[:2], kinds[-1]]
    return "_".join(kinds)


def kernel_name(task: str, program: str) -> str:
    """Name of a kernel, and the stem of its file: its task and its program.

    Args:
        task: `read`, `receive_left`, `compute`, ...
        program: the name of the program.
    """
    return f"{task}_{program}"


def reduction_names(ops: Sequence[Operation]) -> list[str]:
    """Names of the stages that reduce rows in kernels: `reduce_max`.

    The second of a kind includes its operand: `reduce_mean_of_square`."""
    kinds = [operation_name(op).partition(".")[2] for op in ops]
    scope = NameScope()
    names: list[str] = []
    for kind, op in zip(kinds, ops, strict=True):
        source = op.operands[0].owner
        name = f"reduce_{kind}"
        if name in names and isinstance(source, Operation):
            name += f"_of_{operation_name(source).partition('.')[2]}"
        names.append(scope.unique(name))
    return names


def task_of_kernel(kernel: str, program: str) -> str:
    """Task of a kernel, given a program it was made for; the whole name if it has another form."""
    base = _FINAL_NUMBER.sub("", program)
    found = re.fullmatch(rf"(\w+?)_{re.escape(base)}(?:_\d+)?", kernel)
    return kernel if found is None else found[1]


def address_name(tensor: str) -> str:
    """Name of a tensor's address in kernels."""
    return f"{tensor}{_ADDRESS}"


def run_name(program: str) -> str:
    """The C++ function that runs a program."""
    return f"run_{identifier(program)}"


def purpose_of_program(program: str) -> str:
    """Purpose of a program, by its name, which may have shapes and a number."""
    return identifier(without_shapes(program))


def tensor_name(hint: str) -> str:
    """Identifier for a name from which kernels can derive names."""
    # Derived names must not contain two underscores in a row, as after `class_`.
    return identifier(re.sub("^(cb_)+", "", identifier(hint))).rstrip("_")


@dataclass(frozen=True)
class TensorNames:
    """Names of the values of a function that is lowered to programs."""

    names: ValueNames
    """Names that several values may share."""
    distinct: dict[SSAValue, str]
    """Distinct identifiers from which kernels can derive names."""

    def name_tensor(self, tensor: SSAValue, value: SSAValue) -> None:
        """Names a host tensor that holds a value."""
        tensor.name_hint = self.distinct[value]
        plain = tensor_name(self.names[value])
        if plain != tensor.name_hint and isinstance(tensor.owner, Operation):
            tensor.owner.attributes[NAME] = StringAttr(plain)


def tensor_names_of(
    function: FuncOp, called: dict[SSAValue, str], written: Iterable[SSAValue]
) -> TensorNames:
    """Names the values of a function that is lowered to programs.

    Args:
        function: the function.
        called: names of values that are not results of catalogue ops.
        written: outputs of programs, which have precedence over values within programs.
    """
    block = body_of(function)
    arguments = dict(zip(block.args, argument_titles(function, lambda _: None), strict=True))
    weights = {
        value: name
        for value, name in arguments.items()
        if argument_type(function, value.index).value in ("parameter", "constant")
    }
    order = {op: number for number, op in enumerate(block.ops)}
    constants = {
        op.results[0]: constant_title(op, order) for op in order if operation_name(op) == CONSTANT
    }
    called = {**called, **constants}
    members: dict[SSAValue, str] = {**arguments, **called}
    terminator = block.last_op
    assert terminator is not None
    pairs = zip(terminator.operands, result_names(function), strict=True)
    results = {value: name for value, name in pairs if not name.startswith("output")}
    names = ValueNames(block.ops, members, {**weights, **constants}, results)
    values = values_of(function)
    lasting = {*values[: len(block.args)], *written}
    by_lifetime = sorted(values, key=lambda value: value not in lasting)
    distinct = distinct_names(by_lifetime, names, called, tensor_name)
    return TensorNames(names.renamed(called), distinct)


_LAYER = re.compile(r"^.*?(?:layers?|blocks?|stages?)_?\d+_(?=[a-z])")
_LAYER_ALONE = re.compile(r"(layer|block|stage)s?(?:_?\d+)?")
_NUMBER = re.compile(r"(?<=[a-z])_\d+$")


def kernel_names(values: Iterable[SSAValue], names: Mapping[SSAValue, str]) -> dict[SSAValue, str]:
    """Names of a program's values in its kernels, without layers and numbers.

    So equal programs of several layers share kernels.

    Args:
        values: values of the program, in order.
        names: their distinct identifiers in the function.
    """
    scope = NameScope()
    return {value: scope.unique(tensor_name(_without_layer(names[value]))) for value in values}


def _without_layer(name: str) -> str:
    alone = _LAYER_ALONE.fullmatch(name)
    return alone[1] if alone is not None else _NUMBER.sub("", _LAYER.sub("", name))


def _form_names(
    ops: Iterable[Operation], names: Mapping[SSAValue, str], meanings: Mapping[str, FuncOp]
) -> dict[SSAValue, str]:
    """Names of values that depend on weights: those of the weights that they are forms of.

    Otherwise, the name of the first operand with a name.

    Args:
        ops: ops that compute constants, in order.
        names: names of weights.
        meanings: functions that define the meaning of programs, by symbol.
    """
    found = dict(names)
    for op in ops:
        written = written_by(op)
        read = op.operands[: len(op.operands) - len(written)]
        source = next((found[value] for value in read if value in found), None)
        if source is not None:
            found.update(dict.fromkeys((*op.results, *written), source))
        if operation_name(op) == RUN_PROGRAM:
            launch = launch_of(op)
            origins = _origins(launch, meanings.get(launch.meaning))
            found.update({v: found[o] for v, o in origins.items() if o in found})
    return {
        value: name if has_placement(value) else host_name(name)
        for value, name in found.items()
        if value not in names
    }


def _origins(launch: Launch, meaning: FuncOp | None) -> dict[SSAValue, SSAValue]:
    """Input that each output of a launch is a form of."""
    if meaning is None or meaning.is_declaration:
        return {}
    block = body_of(meaning)
    assert block.last_op is not None
    found: dict[SSAValue, SSAValue] = {}
    for output, result in zip(launch.outputs, block.last_op.operands, strict=True):
        value = result
        while isinstance(value.owner, Operation) and value.owner.operands:
            value = value.owner.operands[0]
        if isinstance(value, BlockArgument):
            found[output] = launch.inputs[value.index]
    return found


def host_name(name: str) -> str:
    """Name of the host copy of a tensor."""
    return f"{name}_on_host"


def buffer_names(ops: Iterable[Operation]) -> tuple[dict[SSAValue, str], dict[SSAValue, str]]:
    """Names of the tensors of a host function, and alternatives for when these are taken.

    The names come from the lowering, or else from the program that computes the tensor. Numbers
    that only distinguish values are dropped: not all values are alive at once."""
    names: dict[SSAValue, str] = {}
    for op in ops:
        if operation_name(op) == VIEW:
            names[op.results[0]] = op.results[0].name_hint or "view"
        if operation_name(op) != RUN_PROGRAM:
            continue
        launch = launch_of(op)
        for value in launch.outputs:
            names.setdefault(value, value.name_hint or launch.program.name)
    known = set(names.values())
    unnumbered = {value: _NUMBER.sub("", name) for value, name in names.items()}
    longer = {v: unnumbered[v] if unnumbered[v] in known else name for v, name in names.items()}
    return {value: _plain_name(value) or name for value, name in longer.items()}, longer


def _plain_name(value: SSAValue) -> str | None:
    """Name of a host tensor if no other live one has it."""
    found = value.owner.attributes.get(NAME) if isinstance(value.owner, Operation) else None
    return found.data if isinstance(found, StringAttr) else None


def names_of_host_function(function: FuncOp) -> FunctionNames:
    """Names of the tensors of a function that launches device programs."""
    titles = tuple(argument_titles(function, lambda _: None))
    given = given_names(function, titles)
    ops = body_of(function).ops
    prepared = device_constants(function)
    # The field, the variable and the file of a constant share a name.
    scope = NameScope()
    called = {
        op.results[0]: scope.unique(identifier(name_or_kind(op)))
        for op in ops
        if operation_name(op) == CONSTANT
    }
    weights = {**given.weight_names, **called}
    module = function.parent_op()
    symbols = functions_of(module) if isinstance(module, ModuleOp) else ()
    meanings = {each.sym_name.data: each for each in symbols if is_meaning(each)}
    forms = _form_names(prepared.ops, weights, meanings)
    # CPU results without operands are no forms of a weight: only the lowering named them.
    lowered = {value: value.name_hint or "constant" for value in prepared.values}
    buffers, longer = buffer_names(ops)
    names = {**lowered, **given.names, **buffers, **called, **forms}
    constants = tuple(names[value] for value in prepared.values)
    for value, name in zip(prepared.values, constants, strict=True):
        given.give(value, name, is_weight=True)
    longer = {value: name for value, name in longer.items() if value not in forms}
    others = dict(_names_after_roots(ops, names, meanings))
    values = ValueNames((), names, given.weight_names, {}, longer=longer, others=others)
    return FunctionNames(function, titles, constants, given, values)


def _names_after_roots(
    ops: Iterable[Operation], names: Mapping[SSAValue, str], meanings: Mapping[str, FuncOp]
) -> Iterator[tuple[SSAValue, str]]:
    """Yields names of program outputs with the participle of the program's first op."""
    for op in ops:
        if operation_name(op) != RUN_PROGRAM:
            continue
        launch = launch_of(op)
        meaning = meanings.get(launch.meaning)
        computed = (
            body_of(meaning).ops if meaning is not None and not meaning.is_declaration else ()
        )
        root = next((each for each in computed if _computes(each)), None)
        if isinstance(root, CatalogueOp):
            for value in launch.outputs:
                if value in names:
                    yield value, f"{names[value]}_{qualifier(root)}"


def _computes(op: Operation) -> bool:
    return isinstance(op, CatalogueOp) and bool(op.operands) and not op.definition.rearranges


def host_tensor_names(function: FuncOp) -> dict[SSAValue, str]:
    """Distinct names of the tensors of a host function."""
    return distinct_names(values_of(function), names_of_host_function(function).values)


def dimension_names(rank: int) -> list[str]:
    """Names of the dimensions of a grid of tiles."""
    return [*(f"batch{batch}" for batch in range(rank - 2)), "row", "column"]


def tensor_names(kernel: Kernel) -> dict[int, str]:
    """Names of the operands whose addresses a kernel takes, by operand number."""
    return {
        argument.value.operand: argument.name.removesuffix(_ADDRESS)
        for argument in kernel.arguments
        if isinstance(argument.value, BufferAddress) and argument.name.endswith(_ADDRESS)
    }


def known_names(program: Program) -> dict[int, str]:
    """Known names of the operands of a program, by their numbers."""
    names: dict[int, str] = {}
    for kernel in program.kernels:
        names = tensor_names(kernel) | names
    aliases = {b.operand: b.name for b in program.circular_buffers if b.is_alias}
    return aliases | names


def operand_names(program: Program, count: int) -> list[str]:
    """Distinct identifiers of the tensors that a program reads and writes.

    They follow the addresses in kernels, or the circular buffers that alias them."""
    names = known_names(program)
    scope = NameScope(_names_around(program))
    for index in range(count):
        is_output = index >= program.inputs
        number = index - program.inputs if is_output else index
        fallback = f"{'output' if is_output else 'input'}_{number}"
        names[index] = scope.unique(identifier(names.get(index, fallback)))
    return [names[index] for index in range(count)]


def _names_around(program: Program) -> Iterator[str]:
    """Yields reserved names of the C++ that builds a program and sets its arguments."""
    yield from "Tuning config core cores device program programs share variant workload".split()
    yield from ("build", "kernel_path", "set_arguments", work_name(program))
    yield from (buffer.constant for buffer in program.circular_buffers)
    yield from (f"{semaphore}_semaphore" for semaphore in program.semaphores)
    yield from (constant.name for kernel in program.kernels for constant in kernel.constants)
    for variable in kernel_variables(program):
        yield from (variable, f"{variable}_config", f"{variable}_kernel", f"create_{variable}")


def work_name(program: Program) -> str:
    """Name of the number of work units: `output_tiles`."""
    return identifier(program.work_unit_plural or "units")


def kernel_variables(program: Program) -> list[str]:
    """Variables of the kernels in the C++ that builds the program: roles if distinct."""
    roles = [kernel.processor.value for kernel in program.kernels]
    scope = NameScope(["cores", "program", "variant", "workload", "device"])
    ending = f"_{program.name}"
    return [
        scope.unique(
            role if roles.count(role) == 1 else identifier(kernel.name.removesuffix(ending))
        )
        for role, kernel in zip(roles, program.kernels, strict=True)
    ]


@dataclass(frozen=True)
class NamedShapes:
    """Facts that the names of programs and kernels derive from."""

    program: str
    """Name of the program in one function."""
    source: Sequence[int]
    """Shape of its first operand."""
    output: Sequence[int]
    """Shape of its first output."""

    def names(self, name: str) -> Iterator[str]:
        """Yields names, best first: with shapes if shorter ones are taken."""
        output, source = shape_text(self.output), shape_text(self.source)
        yield name
        yield f"{name}_{output}"
        yield f"{name}_{source}_to_{output}"


def named_shapes(described: DeviceProgram) -> NamedShapes:
    """Shapes that a program is named after."""
    first, *_ = described.placements
    written = next(iter(described.placements[described.program.inputs :]), first)
    return NamedShapes(described.program.name, first.shape, written.shape)


def _free_name(names: Iterable[str], scope: NameScope) -> str:
    """First free name, or else the last one with a number."""
    wanted = list(names)
    free = next((each for each in wanted if not scope.is_taken(each)), wanted[-1])
    return scope.unique(free)


def shared_program_names(programs: Iterable[NamedShapes]) -> list[str]:
    """Names of shared programs: after their ops, with shapes if several have the same ops."""
    scope = NameScope()
    return [_free_name(each.names(_FINAL_NUMBER.sub("", each.program)), scope) for each in programs]


def kernel_file_name(kernel: str, shapes: NamedShapes, scope: NameScope) -> str:
    """Stem of the file of a kernel: its name, with the shapes of its first program if taken.

    Args:
        kernel: its name.
        shapes: shapes of the program.
        scope: the names of the other files.
    """
    task = task_of_kernel(kernel, shapes.program)
    if task == kernel:
        return scope.unique(identifier(kernel))
    name = kernel_name(task, _FINAL_NUMBER.sub("", shapes.program))
    return _free_name(map(identifier, shapes.names(name)), scope)


def shared_kernel_name(names: list[str]) -> str:
    """Name of a kernel that several programs share: the common part, at least the task."""
    words = [_FINAL_NUMBER.sub("", name).split("_") for name in names]
    common = [
        same[0] for same in takewhile(lambda same: len(set(same)) == 1, zip(*words, strict=False))
    ]
    return "_".join(common if len(common) > 1 else [words[0][0], "tiles"])


def neutral_names(program: Program, roles: Sequence[str]) -> dict[str, str]:
    """Role-based names of a program's tensors and circular buffers, independent of its use."""
    operands = known_names(program)
    tensors = set(operands.values())
    # The circular buffers of a matmul's operand blocks are named after the operands.
    scope = NameScope(
        b.name for b in program.circular_buffers if b.name not in tensors and b.name not in SIDES
    )
    return {
        name: scope.unique(
            "output" if operand >= program.inputs
            else roles[operand] if operand < len(roles)
            else INPUT
        )
        for operand, name in sorted(operands.items())
    }  # fmt: skip


def renamed_after_tensor(name: str, tensors: Mapping[str, str]) -> str:
    """Renames a name that derives from a tensor (circular buffer, address, ...); others are kept.

    Args:
        name: name in a kernel.
        tensors: new names of tensors, by name in the kernel.
    """
    prefix = BUFFER_CONSTANT if name.startswith(BUFFER_CONSTANT) else ""
    rest = name.removeprefix(prefix)
    if rest in tensors:
        return prefix + tensors[rest]
    tensor, _, ending = rest.rpartition("_")
    if ending in _ENDINGS and tensor in tensors:
        return f"{prefix}{tensors[tensor]}_{ending}"
    return name


def name_in_kernels(program: Program, buffer: CircularBuffer) -> str:
    """Name of a circular buffer in the kernels of a program, or else its own name."""
    for kernel in program.kernels:
        for constant, found in program.buffers_of(kernel).items():
            if found is buffer:
                return constant.removeprefix(BUFFER_CONSTANT)
    return buffer.name
