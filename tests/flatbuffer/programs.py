"""TTNN modules and programs that several tests use."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.writer import Origin
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import ttnn_op_classes

ORIGIN = Origin("00ff", "wormhole_b0", "0.70.1")
F32 = DataType.FLOAT32
BF16 = DataType.BFLOAT16


def placed(*shape: int, data_type: DataType = F32) -> Attribute:
    """The type of an interleaved tile tensor in DRAM."""
    return placed_type(TensorPlacement(shape, data_type))


def hosted(*shape: int, data_type: DataType = F32) -> Attribute:
    """The type of a tensor on the host."""
    return placed_type(TensorPlacement(shape, data_type).on_host())


def function(
    name: str,
    arguments: list[Attribute],
    build: Callable[[OpBuilder, list[SSAValue]], list[SSAValue]],
    visibility: str | None = None,
) -> FuncOp:
    """A function whose TTNN ops `build` makes of its arguments; it gives the results."""
    made = FuncOp(name, (arguments, []), visibility=visibility)
    block = made.body.block
    builder = OpBuilder(ttnn_op_classes(), block.add_op)
    results = build(builder, list(block.args))
    block.add_op(ReturnOp(*results))
    made.function_type = type(made.function_type).from_lists(
        arguments, [result.type for result in results]
    )
    return made


def module(*functions: Operation) -> ModuleOp:
    """A module of these functions."""
    return ModuleOp(list(functions))


def tensor(*shape: int, data_type: str = "f32", name: str | None = None) -> file.Tensor:
    """A tensor in DRAM."""
    type_ = file.TensorType(shape, data_type, "tile", "dram", "interleaved")
    return file.Tensor(type_, name, name)


def binary(*programs: file.Program, constants: tuple[file.Constant, ...] = ()) -> file.Binary:
    """A file of this version."""
    return file.Binary(
        file.MAJOR, file.MINOR, "0.1", "00ff", "wormhole_b0", "0.70.1", programs, constants
    )


def adding_program(name: str = "main") -> file.Program:
    """c = a + b, for 2x32 tensors."""
    return file.Program(
        name,
        "entry",
        (tensor(2, 32, name="a"), tensor(2, 32, name="b"), tensor(2, 32, name="c")),
        (file.Input(0, "input", "a"), file.Input(1, "parameter", "b")),
        (file.Output(2, "sum"),),
        (
            file.Operation(
                "ttnn.add",
                (0, 1),
                (1, 1),
                (2,),
                (file.Attribute("scalar"), file.Attribute("dtype")),
                location='"add.1"',
            ),
        ),
    )
