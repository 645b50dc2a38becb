"""Data type, page layout, memory and serialization of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, STRING
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import declared_data_type
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.calls import (
    NULLOPT,
    Argument,
    CppCalls,
    Text,
    cpp_text,
    output_memory,
    trimmed,
)
from ttcodegen.ops.core.conversions import typecast_on_card
from ttcodegen.ops.core.definition import (
    Call,
    Layout,
    Memory,
    OperandSpec,
    ResultRule,
    TTIRDefinition,
    TTNNDefinition,
    attribute,
    operand,
    optional,
    register,
    variadic,
)
from ttcodegen.ops.core.dimensions import expect_shape, of_elements
from ttcodegen.ops.core.lowering import Tile, TileBuilder, cpu_call
from ttcodegen.ops.core.traits import CallKind, Trait, no_flops

if TYPE_CHECKING:
    from ttcodegen.dialects.ttnn.placement import TensorPlacement


CORE = "ttnn/operations/core/core.hpp"


def _placement(op: CatalogueOp) -> TensorPlacement:
    from ttcodegen.dialects.ttnn.placement import placement_of

    return placement_of(op.results[0])


def converted(array: Array, dtype: str) -> Array:
    """Converts elements to another dtype.

    Floats truncate to integers and saturate, NaN becomes 0; integers wrap; as booleans, nonzero
    values are true.
    """
    if dtype == "bool":
        return array != 0
    target = np.dtype("float32" if dtype in ("bfloat16", "float16") else dtype)
    if np.issubdtype(target, np.integer) and not np.issubdtype(array.dtype, np.integer):
        limits = np.iinfo(target)
        finite = np.nan_to_num(np.asarray(array, dtype=np.float64), nan=0.0)
        return np.clip(np.trunc(finite), limits.min, limits.max).astype(target)
    return array.astype(target, copy=False)


def _same_shape(op: CatalogueOp) -> None:
    """The shape is unchanged."""
    expect_shape(op, op.shape("input"))


def _typecast(call: Call) -> Array:
    """Typecast of the golden; integers wrap."""
    return converted(call.array("input"), call.results[0].dtype)


def _typecast_on_device(call: Call) -> Array:
    return converted(
        typecast_on_card(call.array("input"), call.results[0].dtype), call.results[0].dtype
    )


def _typecast_tiles(builder: TileBuilder, op: CatalogueOp, tiles: Sequence[Tile]) -> Tile:
    return builder.convert(tiles[0], declared_data_type(op.results[0]))


register(
    TTIRDefinition(
        "ttir.typecast",
        (operand("input"),),
        (attribute("conservative_folding", BOOLEAN, False),),
        verify=_same_shape,
        dimensions=of_elements,
        numpy=_typecast,
        lower=lambda builder, op: builder.typecast(
            builder.operand(op, "input"), op.result_type.element_type
        ),
        moves=True,
        tile=_typecast_tiles,
        tile_numpy=_typecast_on_device,
        cpu=cpu_call("elementwise"),
        rearranges=True,
    )
)


def _cpp_typecast(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/copy/typecast/typecast.hpp")
    data_type = calls.data_type(op, _placement(op).data_type)
    calls.bind(
        op.results[0],
        calls.call(
            "ttnn::typecast", *trimmed([calls[op.operands[0]], data_type, output_memory(calls, op)])
        ),
    )


register(
    TTNNDefinition(
        "ttnn.typecast",
        (OperandSpec("input", layout=None, memory=None),),
        verify=_same_shape,
        numpy=_typecast_on_device,
        result_rules=(ResultRule("declared", None, placed=True),),
        cpp=_cpp_typecast,
        flops=no_flops,
        rearranges=True,
        traits=Trait.PLACES,
    )
)

register(
    TTIRDefinition(
        "ttir.clone",
        (operand("input"),),
        verify=_same_shape,
        dimensions=of_elements,
        numpy=lambda call: call.array("input"),
        lower=lambda builder, op: builder.like(
            "clone", builder.operand(op, "input"), element=op.result_type.element_type
        ),
        tile=lambda builder, op, tiles: tiles[0],
        cpu=cpu_call("elementwise", function="typecast"),
    )
)


def _cpp_clone(calls: CppCalls, op: CatalogueOp) -> None:
    """Emits all arguments: none of the function's parameters has a default."""
    calls.include("ttnn/operations/data_movement/clone/clone.hpp")
    source, config = calls[op.operands[0]], output_memory(calls, op)
    calls.bind(
        op.results[0],
        calls.call(
            "ttnn::clone",
            source,
            Text("/*dtype=*/std::nullopt"),
            config,
            Text("/*compute_kernel_config=*/std::nullopt"),
        ),
    )


register(
    TTNNDefinition(
        "ttnn.clone",
        (OperandSpec("input", layout=None),),
        verify=_same_shape,
        numpy=lambda call: call.array("input"),
        result_rules=(ResultRule(layout=None, placed=True),),
        cpp=_cpp_clone,
        flops=no_flops,
        call_kind=CallKind.COPY,
        participle="cloned",
    )
)


def _unchanged_input(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Drops the layout change: the layout pass decides the placement of tensors."""
    return builder.typecast(builder.operand(op, "input"), op.result_type.element_type)


register(
    TTIRDefinition(
        "ttir.to_layout",
        (operand("input"), optional("output")),
        verify=_same_shape,
        numpy=_typecast,
        lower=_unchanged_input,
        moves=True,
        tile=_typecast_tiles,
        tile_numpy=_typecast_on_device,
        cpu=cpu_call("elementwise", function="typecast", operands=["input"]),
        rearranges=True,
    )
)

# Inserted by the layout pass; `ttnn-decompose-layouts` replaces it by the calls below.
register(
    TTNNDefinition(
        "ttnn.composite_to_layout",
        (OperandSpec("input", layout=None, memory=None),),
        verify=_same_shape,
        numpy=_typecast_on_device,
        result_rules=(ResultRule("declared", None, placed=True),),
        flops=no_flops,
        rearranges=True,
        traits=Trait.PLACES,
        call_kind=CallKind.LAYOUT,
    )
)


def _cpp_to_layout(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/core/to_layout/to_layout_op.hpp")
    layout = Text(f"ttnn::Layout::{_placement(op).layout.name}")
    calls.bind(
        op.results[0],
        calls.call(
            "ttnn::to_layout",
            *trimmed([calls[op.operands[0]], layout, NULLOPT, output_memory(calls, op)]),
        ),
    )


def _cpp_to_device(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(CORE)
    arguments: list[Argument] = [calls[op.operands[0]], calls.device_pointer]
    arguments.append(calls.memory_config(_placement(op)))
    calls.bind(op.results[0], calls.call("ttnn::to_device", *arguments))


def _cpp_from_device(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(CORE)
    calls.bind(op.results[0], calls.call("ttnn::from_device", calls[op.operands[0]]))


def _cpp_to_memory_config(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include("ttnn/operations/core/to_memory_config/to_memory_config_op.hpp")
    config = calls.memory_config(_placement(op))
    calls.bind(op.results[0], calls.call("ttnn::to_memory_config", calls[op.operands[0]], config))


def _identity(call: Call) -> Array:
    return call.array("input")


for _name, _memory, _cpp, _participle in (
    ("to_layout", None, _cpp_to_layout, ""),
    ("to_device", Memory.HOST, _cpp_to_device, "on_device"),
    ("from_device", Memory.DEVICE, _cpp_from_device, "on_host"),
    ("to_memory_config", Memory.DEVICE, _cpp_to_memory_config, "moved"),
):
    register(
        TTNNDefinition(
            f"ttnn.{_name}",
            (OperandSpec("input", layout=None, memory=_memory),),
            verify=_same_shape,
            numpy=_identity,
            result_rules=(ResultRule("declared", None, placed=_name == "to_layout"),),
            cpp=_cpp,
            flops=no_flops,
            call_kind=CallKind.LAYOUT if _name == "to_layout" else CallKind.COPY,
            rearranges=True,
            traits=Trait.PLACES,
            participle=_participle,
        )
    )


def _cpp_deallocate(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(CORE)
    calls.run("ttnn::deallocate", calls[op.operands[0]])


def _nothing(call: Call) -> list[Array]:
    return []


register(
    TTNNDefinition(
        "ttnn.deallocate",
        (OperandSpec("input", layout=None, memory=None),),
        results=0,
        numpy=_nothing,
        cpp=_cpp_deallocate,
        pure=False,
        flops=no_flops,
    )
)


_HEADER = "ttnn/tensor/serialization.hpp"
_EXTENSION = ".tensorbin"
_PATH = attribute("file_path", STRING)


def _verify_path(op: CatalogueOp) -> None:
    """The file has the extension of the library's files (tt-mlir: TTNNOps.cpp)."""
    path = op.parameter("file_path")
    if not path.endswith(_EXTENSION):
        raise VerifyException(f"{op.name}: expected a file_path *{_EXTENSION}, found '{path}'")


def _verify_load(op: CatalogueOp) -> None:
    """A file that the module writes has the shape that is read."""
    _verify_path(op)
    if op.operands and op.shape("written") != op.result_shape:
        raise VerifyException(
            f"{op.name}: expected the shape {op.shape('written')} of the tensor that was dumped to "
            f"'{op.parameter('file_path')}', found {op.result_shape}"
        )


def _dumped(call: Call) -> Sequence[Array]:
    return []


def _loaded(call: Call) -> Array:
    """Returns the tensor that the module dumped before; no file is read."""
    written = call.optional("written")
    if written is None:
        path = call["file_path"]
        raise CompileError(
            f"'ttnn.load_tensor' reads '{path}', which nothing before it in its function writes: "
            "there is nothing to compare it with",
            remedy="dump the tensor in the same function, or take it as an argument",
        )
    return written.copy()


def _cpp_dump(calls: CppCalls, op: CatalogueOp) -> None:
    calls.include(_HEADER)
    path = Text(cpp_text(op.parameter("file_path")))
    calls.run("tt::tt_metal::dump_tensor_flatbuffer", path, calls[op.operands[0]])


def _cpp_load(calls: CppCalls, op: CatalogueOp) -> None:
    from ttcodegen.dialects.ttnn.placement import placement_of

    calls.include(_HEADER)
    arguments: list[Argument] = [Text(cpp_text(op.parameter("file_path")))]
    if placement_of(op.results[0]).memory is Memory.DEVICE:
        arguments.append(calls.device_pointer)
    value = calls.call("tt::tt_metal::load_tensor_flatbuffer", *arguments)
    calls.bind(op.results[0], value)


register(
    TTNNDefinition(
        "ttnn.dump_tensor",
        (OperandSpec("input", layout=None, memory=None),),
        (_PATH,),
        results=0,
        verify=_verify_path,
        numpy=_dumped,
        cpp=_cpp_dump,
        pure=False,
        flops=no_flops,
        traits=Trait.USES_HOST,
        call_kind=CallKind.COPY,
    )
)

# `written` is the tensor that the module dumped to the same file before, if it did: the contents
# are known then. The call reads the file all the same.
register(
    TTNNDefinition(
        "ttnn.load_tensor",
        (OperandSpec("written", layout=None, memory=None, count="optional"),),
        (_PATH,),
        verify=_verify_load,
        numpy=_loaded,
        result_rules=(ResultRule("declared", Layout.TILE, stored=True),),
        cpp=_cpp_load,
        pure=False,
        flops=no_flops,
        traits=Trait.USES_HOST,
        call_kind=CallKind.COPY,
    )
)


_LATER = "it describes memory that a later stage of compilation has allocated"

REFUSED = {
    "ttnn_metal_layout_cast": _LATER,
}
"""Refusal reasons by op name; each completes "'ttir.x' is not supported: ..."."""

for _name, _reason in REFUSED.items():
    register(TTIRDefinition(f"ttir.{_name}", (variadic("operands"),), results=-1, refusal=_reason))
