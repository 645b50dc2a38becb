"""TTNN as printed by other tools, normalized to the catalogue's form.

- `arguments`: Arguments, mesh and call attributes of a TTNN module
- `composites`: Conversion of TTNN calls without a catalogue op to TTIR
- `legal_forms`: Legalization of TTNN calls: in-place updates, fused and distributed norms, tensor
  files
- `prepared_weights`: Prepared weights of convolutions and experts

Such a module has decided placements and lifetimes. Its layouts stay, and `ttnn-layout` keeps them.
Information that the compiler derives itself is removed: device handles, deallocations and
const-eval marks.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from ttcodegen.compat.ttnn_modules import (
    check_counts,
    is_device,
    keep_local_collectives,
    name_of,
    shape_attribute,
)
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.attribute_kinds import INTEGER, INTEGERS, NUMBER
from ttcodegen.dialects.operations.verification import verify_lifetimes
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import given_placement
from ttcodegen.dialects.ttnn.program_configs import ProgramConfigAttr
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, copy_source_offset
from ttcodegen.frontends.ttnn.arguments import (
    declare_mesh,
    expand,
    given,
    shard_arguments,
    spell_aggregate,
    spell_collective,
    spell_distribute,
)
from ttcodegen.frontends.ttnn.composites import (
    CALLS_OF_TTIR,
    EXPERT_CALLS,
    JOINED_HEADS_OF_SOME_USERS,
    MASKED_PAGED_ATTENTION,
    PAGED_ATTENTION,
    ROTATION_OF_ANY_ROWS,
    masks,
    replace_call_of_ttir,
    replace_composite,
    replace_expert_call,
    some_users,
)
from ttcodegen.frontends.ttnn.legal_forms import UPDATES, legalize, link_files, replace_update
from ttcodegen.frontends.ttnn.prepared_weights import (
    expand_experts,
    spell_preparation,
    with_plain_weight,
)
from ttcodegen.ops.attention.heads import MOST_USERS
from ttcodegen.ops.convolution.upsample import MODES
from ttcodegen.ops.dialects import TTNNOp, ttnn_op_classes

Properties = dict[str, Attribute]
Spell = Callable[[Operation, Properties], None]

_CONVERSIONS = frozenset(
    {"to_tensor_spec", "to_layout", "to_memory_config", "to_device", "from_device", "typecast"}
)
"""Ops that only set the layout of their result, which is also part of its type."""

_DROPPED = frozenset({"deallocate", "reset_global_semaphore"})
_UNUSED_HANDLES = frozenset(
    {"allocate_moe_compute_semaphore", "get_device", "create_global_semaphore"}
)
"""Handles without a use: the program has one device, and collectives create their semaphores."""

_IMPLIED = frozenset({"memory_config", "layout", "device", "dtype"})
"""Properties that the result's type implies."""

_TUNING = {
    "conv2d_slice_config": "how a convolution is sliced",
    "conv3d_config": "the configuration of a convolution",
}
"""Tuning properties that the library chooses instead, with their description."""


def normalize_ttnn(module: ModuleOp, diagnostics: Diagnostics) -> None:
    """Normalizes every TTNN op of a module to the catalogue's form.

    Ops that have none stay, for `check_supported` to list. `diagnostics` receives what is left to
    the library's choice.
    """
    warned: set[str] = set()
    verify_lifetimes(module)
    functions = [function for function in module.ops if isinstance(function, FuncOp)]
    for function in functions:
        check_counts(function)
        _refuse_half_lowered(function)
        link_files(function)
    expand_experts(module)
    declare_mesh(module)
    for function in functions:
        keep_local_collectives(function)
    ops = list(module.walk())
    later = set(ops)
    for op in ops:
        later.remove(op)
        if isinstance(op, LoadCachedOp):
            _call_const_eval(op)
            continue
        name = _short_name(op)
        if name is None:
            continue
        if name in _DROPPED:
            Rewriter.erase_op(op)
            continue
        if name in UPDATES:
            replace_update(op, name, later, diagnostics)
            continue
        for property_, meaning in _TUNING.items():
            if property_ in op.properties and property_ not in warned:
                warned.add(property_)
                diagnostics.warn(f"{meaning} is left to the library", op)
        _respell(op, name)
    expand(module)
    for function in module.ops:
        if isinstance(function, FuncOp):
            legalize(function, diagnostics)
    for op in list(module.walk(reverse=True)):
        unused = not any(list(result.uses) for result in op.results)
        if _short_name(op) in _UNUSED_HANDLES and unused:
            Rewriter.erase_op(op)
    for function in module.ops:
        if isinstance(function, FuncOp):
            _drop_devices(function)
            if _is_const_eval(function):
                function.sym_visibility = StringAttr("private")
    shard_arguments(module)


def _refuse_half_lowered(function: FuncOp) -> None:
    """Raises CompileError if a function mixes TTNN calls with TTIR ops.

    TTIR ops have no placement yet, while the calls around them do.
    """
    ops = list(function.walk())
    if not any(_short_name(op) for op in ops):
        return
    for op in ops:
        if name_of(op).startswith("ttir.") and name_of(op) != "ttir.constant":
            raise CompileError(
                f"'{name_of(op)}' is an op of TTIR in a function that calls TTNN",
                op,
                remedy="give the function as it was before it was lowered, or lower all of it",
            )


def _short_name(op: Operation) -> str | None:
    """Name of a TTNN op without its dialect, None for other ops."""
    name = name_of(op)
    return name.removeprefix("ttnn.") if name.startswith("ttnn.") else None


def _is_const_eval(function: FuncOp) -> bool:
    """Returns whether a function is computed once and its result cached."""
    if "const_eval" in function.attributes:
        return True
    kind = function.attributes.get("tt.function_type")
    return isinstance(kind, StringAttr) and kind.data == "const_eval"


def _drop_devices(function: FuncOp) -> None:
    """Removes unused device arguments of a function."""
    for block in function.body.blocks:
        devices = [value for value in block.args if is_device(value.type)]
        if not devices or any(list(value.uses) for value in devices):
            continue
        kept = [value.index for value in block.args if value not in devices]
        if function.arg_attrs is not None:
            function.arg_attrs = ArrayAttr([function.arg_attrs.data[index] for index in kept])
        for value in devices:
            block.erase_arg(value)
        function.function_type = FunctionType.from_lists(
            [value.type for value in block.args], function.function_type.outputs.data
        )


def _call_const_eval(op: LoadCachedOp) -> None:
    """Inlines a const-eval call; const-eval is derived again from argument kinds."""
    call = CallOp(op.callee.string_value(), op.inputs, [result.type for result in op.outputs])
    _replace(op, call)


def _respell(op: Operation, name: str) -> None:
    if name in _CONVERSIONS:
        operands, name, properties = list(op.operands)[:1], "composite_to_layout", {}
    else:
        operands = [value for value in op.operands if not is_device(value.type)]
        operands = with_plain_weight(op, name, operands)
        properties = {key: value for key, value in op.properties.items() if key not in _IMPLIED}
        properties = {key: value for key, value in properties.items() if key not in _TUNING}
        operands = some_users(op, name, operands, properties)
        _keep_activation(properties)
        name = _catalogue_name(op, name, properties)
        if name in _COLLECTIVES:
            # Others are buffers and semaphores, which the library makes.
            operands = operands[:1]
        if (spell := _SPELLINGS.get(name)) is not None:
            spell(op, properties)
    if name in EXPERT_CALLS:
        # Also where the library has the call: its operands may have other shapes there.
        replace_expert_call(op, name, operands, properties)
        return
    cls = ttnn_op_classes().get(name)
    if cls is None:
        if name in CALLS_OF_TTIR:
            replace_call_of_ttir(op, name, operands, properties)
            return
        if replace_composite(op, name, operands, properties):
            return
        # Without its device the message is about the op, not about where the device comes from.
        op.operands = operands
        return
    if len(operands) != len(op.operands):
        properties.pop("operandSegmentSizes", None)
    made = cls.create(
        operands=operands,
        result_types=[result.type for result in op.results],
        properties=properties,
        attributes={key: value for key, value in op.attributes.items() if key not in _TUNING},
    )
    made.location = op.location
    _replace(op, made)


def _keep_activation(properties: Properties) -> None:
    """Drops the activation attribute of a matmul whose program config has one."""
    config = properties.get("matmul_program_config")
    if isinstance(config, ProgramConfigAttr) and config.data.activation is not None:
        properties.pop("activation", None)


def _replace(op: Operation, made: TTNNOp | CallOp) -> None:
    copy_source_offset(op, made)
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(op, made)


# Ops and properties that have other names here

_RENAMED = {
    "zeros": "full",
    "ones": "full",
    "empty": "full",
    "all_reduce_async": "all_reduce",
}


def _catalogue_name(op: Operation, name: str, properties: Properties) -> str:
    """Catalogue name of a call, which may depend on its attributes."""
    if name == "pad" and _pads_before(op, properties):
        return "pad_row_major"
    if name == PAGED_ATTENTION and masks(op, properties):
        return MASKED_PAGED_ATTENTION
    if name == "rotary_embedding":
        return ROTATION_OF_ANY_ROWS
    if name == "nlp_concat_heads_decode" and not _has_library_result(op):
        return JOINED_HEADS_OF_SOME_USERS
    mode = properties.get("mode")
    if name == "upsample" and isinstance(mode, StringAttr):
        if mode.data not in MODES:
            listed = " or ".join(MODES)
            raise CompileError(
                f"'{name_of(op)}': expected a mode of {listed}, found '{mode.data}'", op
            )
        if mode.data == "bilinear":
            return "upsample_bilinear"
    return _RENAMED.get(name, name)


def _has_library_result(op: Operation) -> bool:
    """Returns whether a call has the result of the library's.

    One token of the maximum number of users, and heads of whole tiles.
    """
    heads = shape_of(op.operands[0].type)
    joined = shape_of(op.results[0].type)
    return len(heads) == 4 and joined[:3] == (1, 1, MOST_USERS) and heads[3] % TILE_SIDE == 0


def _pads_before(op: Operation, properties: Properties) -> bool:
    """Returns whether a call pads before elements, which the library does in row-major layout."""
    return any((given(op, properties, "padding", INTEGERS) or [])[::2])


def _spell_full(op: Operation, properties: Properties) -> None:
    properties["shape"] = _declared_shape(op, properties, "shape")
    if "fill_value" not in properties:
        properties["fill_value"] = NUMBER.encode(1 if _short_name(op) == "ones" else 0)


def _declared_shape(op: Operation, properties: Properties, name: str) -> Attribute:
    """Shape attribute of a call, else the shape of its result."""
    named = properties.get(name)
    shape = shape_of(op.results[0].type) if named is None else shape_attribute(op, named)
    return INTEGERS.encode(list(shape))


def _spell_constant(op: Operation, properties: Properties) -> None:
    """Checks that a constant with a device operand is not placed on the host."""
    placement = given_placement(op.results[0])
    is_on_host = placement is not None and placement.buffer_type == "system_memory"
    if is_on_host and any(is_device(value.type) for value in op.operands):
        raise CompileError(f"'{name_of(op)}' names a device, and its result is on the host", op)


def _spell_rand(op: Operation, properties: Properties) -> None:
    properties["size"] = _declared_shape(op, properties, "size")


def _spell_repeat(op: Operation, properties: Properties) -> None:
    dimensions = properties.pop("repeat_dims", None)
    if dimensions is not None:
        properties["repeat_dimensions"] = INTEGERS.encode(shape_attribute(op, dimensions))


def _spell_prod(op: Operation, properties: Properties) -> None:
    dimension = properties.pop("dim_arg", None)
    if isinstance(dimension, IntegerAttr):
        properties["dim"] = dimension


def _spell_upsample(op: Operation, properties: Properties) -> None:
    factor = properties.get("scale_factor")
    if isinstance(factor, IntegerAttr):
        properties["scale_factor"] = INTEGERS.encode([factor.value.data] * 2)


_SIZES_OF_VOLUMES = ("batch_size", "input_depth", "input_height", "input_width")


def _spell_conv3d(op: Operation, properties: Properties) -> None:
    """Checks size attributes against the operands' shapes; input channels may be padded to the
    weight's."""
    volume, weight = (shape_of(operand.type) for operand in op.operands[:2])
    named: dict[str, tuple[int, ...]] = {}
    named |= {name: (size,) for name, size in zip(_SIZES_OF_VOLUMES, volume, strict=False)}
    if len(volume) == len(weight) == len(_SIZES_OF_VOLUMES) + 1:
        groups = given(op, properties, "groups", INTEGER) or 1
        named["in_channels"] = (volume[-1], weight[1] * groups)
        named["out_channels"] = (weight[0],)
    for name, sizes in named.items():
        attribute = properties.pop(name, None)
        if attribute is not None and not {*INTEGERS.decode(attribute)} <= {*sizes}:
            raise CompileError(
                f"'{name_of(op)}': expected {name} of {sizes[0]}, as the operands have, "
                f"found {attribute}",
                op,
            )


_COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter", "mesh_partition")

_SPELLINGS: dict[str, Spell] = {
    "constant": _spell_constant,
    "full": _spell_full,
    "rand": _spell_rand,
    "repeat": _spell_repeat,
    "prod": _spell_prod,
    "conv3d": _spell_conv3d,
    "prepare_conv2d_weights": spell_preparation,
    "prepare_conv2d_bias": spell_preparation,
    "upsample": _spell_upsample,
    "upsample_bilinear": _spell_upsample,
    "distribute_tensor": spell_distribute,
    "aggregate_tensor": spell_aggregate,
    **dict.fromkeys(_COLLECTIVES, spell_collective),
}
