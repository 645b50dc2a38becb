"""TTNN modules as tt-mlir prints them (2024 and 2025), read and printed; tuples of tensors.

Only the spelling changes: `tt` for `ttcore`, names of ops that were renamed, tensors that TTIR ops
write their results to. What is printed is read back as the module that it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    TupleType,
    UnitAttr,
    UnregisteredAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import element_of, shape_of, without_encoding
from ttcodegen.dialects.operations.attribute_kinds import INTEGERS
from ttcodegen.dialects.operations.functions import change_types
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.device import MESHES, allocation_fault, set_mesh, shape_in
from ttcodegen.dialects.ttcore.dialect import GetTupleElementOp, TupleOp
from ttcodegen.dialects.ttcore.shards import LAYOUTS_WANTED
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostics,
    copy_source_offset,
    plural,
)
from ttcodegen.ops.collectives.collectives import (
    collectives,
    expect_collective,
    is_local,
)
from ttcodegen.ops.core.builder import OpBuilder, builder_before
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes

# Modules of TTNN as tt-mlir prints them (2024 and 2025), turned into ours.
#
# There the device is a value that ops take, every op has its destination as last operand, and
# tensors say where they are placed. Here the device is known, an op makes its result, and the
# layout pass decides placement: what was decided there is dropped, and the module is marked to
# get layouts.

DESTINATION = "ttcodegen.destination"
"""Mark of a tensor that was created as another op's destination."""

_PERHAPS = "ttcodegen.perhaps_destination"
"""Mark of a filled tensor that is a destination unless the op can have as many operands."""

DEVICE_OPS = ("ttnn.open_device", "ttnn.get_device", "ttnn.close_device")
_WITHOUT_EFFECT = {
    "ttnn.model_preprocessing": "tensors arrive as the program needs them",
    "ttnn.register_pre_operation_hook": "there is no Python that it could call",
}
_RENAMED = {"ttnn.clamp": "clamp_scalar", "ttnn.div": "divide", "ttnn.slice": "slice_static"}
_RENAMED_FULLY = {name: f"ttnn.{current}" for name, current in _RENAMED.items()}
_MOVES = ("ttnn.to_device", "ttnn.from_device", "ttnn.to_layout", "ttnn.to_memory_config")
_OF_ONE_TENSOR = frozenset({*_MOVES, "ttnn.transpose", "ttnn.to_dtype", "ttnn.moreh_cumsum"})
_ON_A_DEVICE = frozenset({
    *("zeros", "ones", "empty", "full", "constant", "arange", "rand", "load_tensor"),
    *("begin_trace_capture", "end_trace_capture", "execute_trace", "capture_or_execute_trace"),
    *("create_global_semaphore", "allocate_moe_compute_semaphore", "close_device", "alloc"),
})  # fmt: skip
"""Calls whose first operand may be a device."""
_TO_A_DEVICE = frozenset({
    *("to_device", "to_layout", "to_memory_config", "distribute_tensor", "aggregate_tensor"),
    *("all_gather", "all_reduce", "reduce_scatter", "collective_permute", "mesh_shard"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose2d", "max_pool2d", "moe_compute"),
    *("prepare_conv2d_weights", "prepare_conv2d_bias", "prepare_conv3d_weights"),
    *("prepare_conv_transpose2d_weights", "prepare_conv_transpose2d_bias"),
    *("prepare_moe_compute_w0_w1_weights", "prepare_moe_compute_w2_weights"),
    *("distributed_rms_norm", "distributed_layer_norm"),
})  # fmt: skip
"""Calls that take a device after a tensor in some year (TTNNOps.td)."""
_CREATIONS = {"ttnn.zeros": 0.0, "ttnn.ones": 1.0, "ttnn.empty": 0.0, "ttnn.alloc": 0.0}

TEXT = ("ttnn.device", "tt.device<", *DEVICE_OPS, "ttnn.empty", "ttnn.alloc", *_RENAMED,
        *_WITHOUT_EFFECT, "ttnn.zeros", "ttnn.ones", "ttnn.transpose", "ttnn.to_dtype",
        "ttnn.moreh_cumsum")  # fmt: skip
"""Words without which a text is no such module."""


_OF_OTHER_YEARS = re.compile(
    r"[!#]tt\.|ttnn\.(?:open_device|close_device|alloc|clamp|div|slice|transpose|to_dtype|"
    r"moreh_cumsum|model_preprocessing|register_pre_operation_hook)\""
)
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')
"""Comment, or string, in which slashes do not begin one."""


def is_of_other_years(text: str) -> bool:
    """Returns whether a text may be such a module.

    Current TTNN modules, with layouts, are read by the frontend `ttnn`.
    """
    if not any(word in text for word in TEXT):
        return False
    text = STRING_OR_COMMENT.sub(lambda found: "" if found[0].startswith("/") else found[0], text)
    return "#ttnn.ttnn_layout" not in text or _OF_OTHER_YEARS.search(text) is not None


def is_device(type_: Attribute) -> bool:
    """Returns whether a type is `!tt.device<...>`, `!ttcore.device<...>` or `!ttnn.device`."""
    name = type_.attr_name.data if isinstance(type_, UnregisteredAttr) else type_.name
    return name in ("tt.device", "ttcore.device", "ttnn.device")


def name_of(op: Operation) -> str:
    """Full name of an op, registered or not."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def take_over(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Upgrades TTNN functions with devices, destinations or old names; leaves others unchanged.

    Destinations are marked, and removed by the upgrade of ops.

    Raises:
        CompileError: as `check_counts`.
    """
    for function in list(module.walk()):
        if isinstance(function, FuncOp) and _is_of_other_years(function):
            check_counts(function)
            _keep_mesh(module, function)
            _take_over(function, diagnostics)
            module.attributes[LAYOUTS_WANTED] = UnitAttr()


def check_counts(function: FuncOp) -> None:
    """Checks the operand and result counts that canonicalization relies on.

    Other requirements are verified by it.

    Raises:
        CompileError: listing all calls that violate them.
    """
    diagnostics = Diagnostics()
    for op in function.walk():
        least, results = _counts_of(op)
        tensors = sum(not is_device(value.type) for value in op.operands)
        devices = len(op.operands) - tensors
        if tensors < least:
            takes = f"'{name_of(op)}' takes {plural(least, 'tensor')} or more"
            diagnostics.error(f"{takes}, found {tensors}", op)
        elif name_of(op) in _CREATIONS and tensors:
            diagnostics.error(f"'{name_of(op)}' takes no tensors, found {tensors}", op)
        elif devices and (fault := _fault_of_devices(op, devices)) is not None:
            diagnostics.error(f"'{name_of(op)}' {fault}", op)
        elif name_of(op) in DEVICE_OPS and any(not is_device(value.type) for value in op.results):
            diagnostics.error(f"'{name_of(op)}' gives a device, found {op.results[0].type}", op)
        elif results is not None and len(op.results) != results:
            gives = f"'{name_of(op)}' has {plural(results, 'result')}"
            diagnostics.error(f"{gives}, found {len(op.results)}", op)
        elif (config := op.properties.get("memory_config")) is not None:
            if fault := _fault_of_memory(str(config)):
                diagnostics.error(f"'{name_of(op)}': {fault}, found {config}", op)
    diagnostics.raise_errors()


_DIVIDED = re.compile(r"\b(interleaved|(?:block|height|width)_sharded)\b")
_SPACE = re.compile(r"#(?:ttnn\.buffer_type<)?(dram|l1|system_memory)\b")


def _fault_of_memory(config: str) -> str:
    """Contradiction in a `#ttnn.memory_config`, which the result's type replaces; empty if none."""
    divided, space = _DIVIDED.search(config), _SPACE.search(config)
    specs = "#ttnn.shard_spec" in config, "#ttnn.nd_shard_spec" in config
    if divided is None or space is None:
        return ""
    if space[1] == "system_memory":
        return f"a tensor on the host is not {divided[1]}"
    if (space[1], divided[1]) == ("dram", "block_sharded"):
        return "a tensor in DRAM is not block_sharded"
    if divided[1] == "interleaved" and any(specs):
        return "a tensor that is interleaved has no shards"
    return "a tensor has one kind of shards" if all(specs) else ""


def _fault_of_devices(op: Operation, devices: int) -> str | None:
    """Reason for which a call does not take its device operands, None if it does."""
    dialect, _, name = name_of(op).partition(".")
    if dialect not in ("ttnn", "ttir"):
        return None
    if dialect == "ttnn" and name in _ON_A_DEVICE:
        is_first = True
    elif dialect == "ttnn" and name in _TO_A_DEVICE:
        is_first = False
    else:
        return f"takes no device, found {devices}"
    if devices > 1:
        return f"takes 1 device, found {devices}"
    if is_device(op.operands[0].type) != is_first:
        return "takes its device first" if is_first else "takes a tensor before its device"
    return None


def _counts_of(op: Operation) -> tuple[int, int | None]:
    """Minimum number of non-device operands of an op, and its number of results, None if any."""
    name = name_of(op)
    if name in _CREATIONS:
        return 0, 1
    if name in _OF_ONE_TENSOR:
        return 1, 1
    if name in ("ttnn.deallocate", "ttnn.reset_global_semaphore"):
        return 0, 0
    if name in _WITHOUT_EFFECT:
        return len(op.results), None
    dialect, _, short = _RENAMED_FULLY.get(name, name).partition(".")
    classes = {"ttnn": ttnn_op_classes, "ttir": ttir_op_classes}.get(dialect)
    cls = None if classes is None else classes().get(short)
    if cls is None:
        return 0, None
    definition = cls.definition
    # Calls of some years omit operands that are required today.
    segments = _property(op, "operandSegmentSizes")
    least = 0 if segments else sum(spec.count == "one" for spec in definition.operands)
    # In other years, calls that overwrite an operand returned it.
    return least, definition.results if definition.results > 0 else None


def _is_of_other_years(function: FuncOp) -> bool:
    ops = list(function.walk())
    return any(
        isinstance(op, UnregisteredOp) and name_of(op) in {*DEVICE_OPS, *RULES, *_WITHOUT_EFFECT}
        for op in ops
    ) or (
        any(name_of(op).startswith("ttnn.") for op in ops)
        and any(is_device(operand.type) for op in ops for operand in op.operands)
    )


def _keep_mesh(module: ModuleOp, function: FuncOp) -> None:
    """Records a function's mesh of several devices on the module, before its devices are
    removed."""
    for op in function.walk():
        mesh = shape_in(op) if name_of(op) in DEVICE_OPS else ()
        if prod(mesh) > 1 and MESHES not in module.attributes:
            set_mesh(module, mesh)


def keep_local_collectives(function: FuncOp) -> None:
    """Erases collectives on a single device.

    Raises:
        CompileError: at one with an invalid dimension or reduction.
    """
    for op in list(function.walk()):
        if name_of(op).removeprefix("ttnn.") in collectives() and is_local(op):
            expect_collective(op)
            tensors = [value for value in op.operands if not is_device(value.type)]
            Rewriter.replace_op(op, [], tensors[:1])


def _take_over(function: FuncOp, diagnostics: Diagnostics) -> None:
    keep_local_collectives(function)
    for op in list(function.walk()):
        devices = [operand for operand in op.operands if is_device(operand.type)]
        if devices:
            op.operands = [operand for operand in op.operands if operand not in devices]
            op.properties.pop("operandSegmentSizes", None)
        name = name_of(op)
        rule = RULES.get(name)
        if rule is not None:
            rule(op)
        elif name == "ttnn.full" and devices:
            _full(op)
        if name in _WITHOUT_EFFECT:
            diagnostics.warn(f"'{name}' has no effect: {_WITHOUT_EFFECT[name]}", op)
            Rewriter.replace_op(op, [], list(op.operands)[: len(op.results)])
    for op in list(function.walk()):
        if name_of(op) in DEVICE_OPS:
            op.detach()
            op.erase()
        elif name_of(op) == "ttnn.deallocate":
            op.detach()
            op.erase()
        elif name_of(op) in _MOVES:
            _drop_move(op)
    _take_off_devices_and_layouts(function)


def _take_off_devices_and_layouts(function: FuncOp) -> None:
    for block in function.body.blocks:
        for argument in [value for value in block.args if is_device(value.type)]:
            block.erase_arg(argument)
    type_ = function.function_type
    kept = [each for each in type_.inputs if not is_device(each)]
    function.function_type = FunctionType.from_lists(kept, type_.outputs.data)
    change_types(function, without_encoding)


def _builder(op: Operation) -> OpBuilder:
    return builder_before(op, ttnn_op_classes())


def _replace(op: Operation, value: SSAValue) -> None:
    value.name_hint = value.name_hint or op.results[0].name_hint
    Rewriter.replace_op(op, [], [value])


def _drop_move(op: Operation) -> None:
    """Drops a change of placement, which is decided again; keeps a conversion."""
    value = op.operands[0]
    if element_of(value.type) != element_of(op.results[0].type):
        plain = cast("TensorType[Attribute]", without_encoding(op.results[0].type))
        value = _builder(op).emit("typecast", [value], plain)
    Rewriter.replace_op(op, [], [value])


def _filled(op: Operation, number: float) -> None:
    type_ = op.results[0].type
    if name_of(op) == "ttnn.alloc" and (fault := allocation_fault(op)) is not None:
        raise CompileError(f"'ttnn.alloc' {fault}", op)
    named = _property(op, "shape")
    if named is not None and shape_attribute(op, named) != list(shape_of(type_)):
        named_shape = tuple(shape_attribute(op, named))
        raise CompileError(
            f"'{name_of(op)}': expected a result of shape {named_shape}, found {shape_of(type_)}",
            op,
        )
    value = _builder(op).full(shape_of(type_), number, element_of(type_))
    made = value.owner
    assert isinstance(made, Operation)
    if name_of(op) in ("ttnn.empty", "ttnn.alloc", "ttnn.full"):
        mark = _PERHAPS if name_of(op) == "ttnn.full" else DESTINATION
        made.attributes[mark] = UnitAttr()
    _replace(op, value)


def _full(op: Operation) -> None:
    found = _property(op, "fillValue") or _property(op, "fill_value")
    _filled(op, float(getattr(getattr(found, "value", None), "data", 0)))


def shape_attribute(op: Operation, attribute: Attribute) -> list[int]:
    """Sizes in `#ttnn.shape<2x1x3>`, or in an array; raises CompileError for other attributes."""
    try:
        if isinstance(attribute, UnregisteredAttr):
            text = attribute.value.data.strip("<> ")
            return [int(size) for size in text.split("x")] if text else []
        return list(INTEGERS.decode(attribute))
    except (ValueError, TypeError, AttributeError, KeyError):
        raise CompileError(f"'{name_of(op)}': {attribute} is no shape", op) from None


def _property(op: Operation, name: str) -> Attribute | None:
    return op.properties.get(name, op.attributes.get(name))


def _number(op: Operation, name: str) -> int:
    found = _property(op, name)
    return found.value.data if isinstance(found, IntegerAttr) else 0


def _create(name: str) -> Callable[[Operation], None]:
    return lambda op: _filled(op, _CREATIONS[name])


def _rename(name: str) -> Callable[[Operation], None]:
    """Makes a rule that renames an op; destinations are dropped later."""

    def rule(op: Operation) -> None:
        attributes = {k: v for k, v in op.attributes.items() if k != "op_name__"}
        made = ttnn_op_classes()[name].create(
            operands=op.operands,
            result_types=[result.type for result in op.results],
            properties={**op.properties, **attributes},
            location=op.location,
        )
        copy_source_offset(op, made)
        Rewriter.replace_op(op, made)

    return rule


def exchange(op: Operation, dims: Sequence[int]) -> list[int]:
    """Permutation that swaps two dimensions; raises CompileError if they are out of range."""
    order = list(range(len(shape_of(op.operands[0].type))))
    if any(not -len(order) <= dim < len(order) for dim in dims):
        raise CompileError(f"'{name_of(op)}': {list(dims)} are no dimensions of the operand", op)
    first, second = dims
    order[first], order[second] = order[second], order[first]
    return order


def _transpose(op: Operation) -> None:
    order = exchange(op, [_number(op, "dim0"), _number(op, "dim1")])
    made = _builder(op).emit("permute", [op.operands[0]], op.results[0].type, permutation=order)
    _replace(op, made)


def _to_dtype(op: Operation) -> None:
    _replace(op, _builder(op).emit("typecast", [op.operands[0]], op.results[0].type))


RULES: dict[str, Callable[[Operation], None]] = {
    **{name: _create(name) for name in _CREATIONS},
    **{name: _rename(current) for name, current in _RENAMED.items()},
    "ttnn.transpose": _transpose,
    "ttnn.to_dtype": _to_dtype,
    "ttnn.moreh_cumsum": _rename("cumsum"),
}


def forget_destinations(module: ModuleOp) -> None:
    """Removes destination marks, and erases unused marked ops."""
    for op in list(module.walk()):
        marks = [mark for mark in (DESTINATION, _PERHAPS) if op.attributes.pop(mark, None)]
        if isinstance(op, CatalogueOp) and marks:
            if all(not result.uses for result in op.results):
                op.detach()
                op.erase()


# Tuples of tensors, which tt-mlir passes to functions that it exports: each element becomes an
# argument or a result of its own.

TUPLE_TEXT = "tuple<"
"""Word without which a text has no tuples."""


def unpack(module: ModuleOp) -> None:
    """Unpacks all tuples of tensors in functions.

    Raises:
        CompileError: if a function has argument attributes and tuple arguments, or an element does
            not exist.
    """
    for op in module.walk():
        if isinstance(op, GetTupleElementOp | TupleOp):
            try:
                op.verify(verify_nested_ops=False)
            except VerifyException as error:
                raise CompileError(str(error), op) from None
    for function in list(module.walk()):
        if isinstance(function, FuncOp):
            _unpack_arguments(function)
    for call in list(module.walk()):
        if isinstance(call, CallOp):
            _unpack_call(call)
    for op in list(module.walk()):
        if isinstance(op, GetTupleElementOp) and isinstance(op.operand.owner, TupleOp):
            Rewriter.replace_op(op, [], [op.operand.owner.operands[op.index.value.data]])
    for function in list(module.walk()):
        if isinstance(function, FuncOp):
            _unpack_results(function)
    for op in list(module.walk()):
        if isinstance(op, TupleOp) and not op.results[0].uses:
            op.detach()
            op.erase()


def _flat(types: Sequence[Attribute]) -> list[Attribute]:
    flat: list[Attribute] = []
    for type_ in types:
        flat += _flat(type_.types.data) if isinstance(type_, TupleType) else [type_]
    return flat


def _unpack_arguments(function: FuncOp) -> None:
    inputs = function.function_type.inputs.data
    if not any(isinstance(type_, TupleType) for type_ in inputs):
        return
    if function.arg_attrs is not None:
        raise CompileError("a function with tuple arguments that have attributes", function)
    function.function_type = FunctionType.from_lists(
        _flat(inputs), function.function_type.outputs.data
    )
    for block in function.body.blocks:
        for argument in list(block.args):
            if not isinstance(argument.type, TupleType):
                continue
            types = _flat(argument.type.types.data)
            made = [block.insert_arg(t, argument.index + i) for i, t in enumerate(types)]
            packed = TupleOp(made, argument.type)
            first = block.first_op
            if first is None:
                block.add_op(packed)
            else:
                block.insert_op_before(packed, first)
            argument.replace_all_uses_with(packed.results[0])
            block.erase_arg(argument)


def _unpack_call(call: CallOp) -> None:
    types = [*(o.type for o in call.operands), *(r.type for r in call.results)]
    if not any(isinstance(type_, TupleType) for type_ in types):
        return
    block = call.parent
    assert block is not None
    operands: list[SSAValue] = []
    for operand in call.operands:
        if not isinstance(operand.type, TupleType):
            operands.append(operand)
            continue
        for index, type_ in enumerate(operand.type.types):
            element = GetTupleElementOp(operand, index, type_)
            block.insert_op_before(element, call)
            operands.append(element.results[0])
    made = CallOp(call.callee, operands, _flat([result.type for result in call.results]))
    copy_source_offset(call, made)
    block.insert_op_before(made, call)
    rest = list(made.results)
    replaced: list[SSAValue] = []
    for result in call.results:
        if isinstance(result.type, TupleType):
            count = len(_flat([result.type]))
            packed = TupleOp(rest[:count], result.type)
            block.insert_op_before(packed, call)
            replaced.append(packed.results[0])
        else:
            count = 1
            replaced.append(rest[0])
        rest = rest[count:]
    Rewriter.replace_op(call, [], replaced)


def _unpack_results(function: FuncOp) -> None:
    outputs = function.function_type.outputs.data
    if not any(isinstance(type_, TupleType) for type_ in outputs):
        return
    function.function_type = FunctionType.from_lists(
        function.function_type.inputs.data, _flat(outputs)
    )
    for block in function.body.blocks:
        last = block.last_op
        if not isinstance(last, ReturnOp):
            continue
        values: list[SSAValue] = []
        for operand in last.operands:
            owner = operand.owner
            values += owner.operands if isinstance(owner, TupleOp) else [operand]
        last.operands = values


_TOKEN = re.compile(
    r"""
    "(?P<op>ttnn\.\w+)"(?=\()                  # the name of an operation
    | "(?:[^"\\]|\\.)*"                        # any other string stays
    | //[^\n]*                                 # so does a comment
    | (?P<core>(?<![\w.])(?:[\#!])?ttcore\.)
    | ,\s<(?P<placed>\w+)>>                    # the memory layout of the pages
    """,
    re.VERBOSE,
)
_OPS = {"ttnn.slice_static": "ttnn.slice", "ttnn.clamp_scalar": "ttnn.clamp"}
_PLACED = ("interleaved", "single_bank", "height_sharded", "width_sharded", "block_sharded")
_RESULT = re.compile(
    r'(?P<indent> *)(?P<name>%[\w.$-]+) = "ttir\.(?P<op>\w+)"\((?P<operands>[^()]*)\)'
    r"(?P<attributes>.*) : \((?P<types>.*)\) -> (?P<result>tensor<[^()]*>)(?P<location> loc\(.*)?"
)
_WITHOUT_DESTINATION = frozenset("arange constant empty full ones rand zeros".split())
_SEGMENTS = re.compile(r"(operandSegmentSizes = array<i32: [^>]*)>")


def respelled(text: str, year: str) -> str:
    """Respells a module's text for a year, one of `SPELLINGS`."""

    def token(found: re.Match[str]) -> str:
        if (name := found["op"]) is not None:
            return f'"{_OPS.get(name, name)}"'
        if found["core"] is not None:
            return found["core"].replace("ttcore", "tt")
        if year == "2024" and found["placed"] in _PLACED:
            return f", {found['placed']}>"
        return found[0]

    spelled = _TOKEN.sub(token, text)
    return "\n".join(line for each in spelled.split("\n") for line in _with_destination(each))


def _with_destination(line: str) -> Iterable[str]:
    """Adds a destination tensor before a TTIR op's line."""
    found = _RESULT.fullmatch(line)
    if found is None or found["op"] in _WITHOUT_DESTINATION:
        return (line,)
    indent, name, result = found["indent"], found["name"], found["result"]
    target = f"%destination_{name[1:]}"
    operands = ", ".join(each for each in (found["operands"], target) if each)
    types = ", ".join(each for each in (found["types"], result) if each)
    attributes = _SEGMENTS.sub(r"\1, 1>", found["attributes"])
    return (
        f"{indent}{target} = tensor.empty() : {result}",
        f'{indent}{name} = "ttir.{found["op"]}"({operands}){attributes} : ({types}) -> '
        f"{result}{found['location'] or ''}",
    )
