"""The exponential of a tensor as a module of device programs, written by hand."""

from __future__ import annotations

import dataclasses

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from ttcodegen.conversions.ttir_to_ttmetal.parts.data_movement import MovementKernel
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import ThreadType
from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.dialects.ttmetal.device_module import ProgramAttr
from ttcodegen.dialects.ttmetal.programs import (
    BufferAddress,
    CircularBuffer,
    ComputeSettings,
    CoreArea,
    Costs,
    Kernel,
    NamedConstant,
    Place,
    Processor,
    Program,
    RuntimeArgument,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placed_type
from ttcodegen.ops.dialects import load_dialects

SHAPE = (64, 96)
TILES = 6
CORES = CoreArea(1, 1)
TILE_BYTES = {DataType.BFLOAT16: 2048, DataType.FLOAT32: 4096}

_SHARE = (RuntimeArgument("first", Place.FIRST), RuntimeArgument("count", Place.COUNT))


def exp_program(data_type: DataType = DataType.BFLOAT16) -> Program:
    """Reader, compute and writer on four cores."""
    size = TILE_BYTES[data_type]
    wide = data_type is DataType.FLOAT32
    return Program(
        name="exp",
        purpose="the exponential of x",
        inputs=1,
        cores=CORES,
        circular_buffers=(
            CircularBuffer(0, "x", data_type, 2, size),
            CircularBuffer(1, "y", data_type, 2, size),
        ),
        kernels=(
            Kernel(
                "read_exp",
                Processor.READER,
                "Brings the tiles of x.",
                CORES,
                "read_exp",
                constants=(NamedConstant("cb_x", 0),),
                accessors=(0,),
                arguments=(RuntimeArgument("x_address", BufferAddress(0)), *_SHARE),
            ),
            Kernel(
                "compute_exp",
                Processor.COMPUTE,
                "Computes the exponential of x, tile by tile.",
                CORES,
                "compute_exp",
                constants=(NamedConstant("cb_x", 0), NamedConstant("cb_y", 1)),
                arguments=(RuntimeArgument("count", Place.COUNT),),
            ),
            Kernel(
                "write_exp",
                Processor.WRITER,
                "Writes the tiles of y.",
                CORES,
                "write_exp",
                constants=(NamedConstant("cb_y", 1),),
                accessors=(1,),
                arguments=(RuntimeArgument("y_address", BufferAddress(1)), *_SHARE),
            ),
        ),
        costs=Costs(TILES, 2 * TILES * size, *(TILES * size,) * 4, 2 * TILES * size),
        work_units=TILES,
        work_unit="tile",
        compute=ComputeSettings(MathFidelity.HIFI4, wide, (0,) if wide else ()),
    )


def compute_kernel(data_type: DataType) -> FuncOp:
    """The kernel between the circular buffers."""
    kernel = KernelBuilder("compute_exp", ThreadType.COMPUTE)
    x, y = (kernel.circular_buffer(f"cb_{n}", 2, TileType(data_type)) for n in "xy")
    count = kernel.argument(0, "count")
    kernel.op("unary_op_init_common", x, y)
    kernel.op("exp_tile_init")
    with kernel.loop(count, name_hint="tile"):
        kernel.op("cb_wait_front", x, 1)
        with kernel.destination_registers():
            kernel.op("copy_tile", x, 0, 0)
            kernel.op("exp_tile", 0)
            kernel.op("cb_reserve_back", y, 1)
            kernel.start_packing()
            kernel.op("pack_tile", 0, y)
        kernel.op("cb_pop_front", x, 1)
        kernel.op("cb_push_back", y, 1)
    return kernel.finish()


def movement_kernels(program: Program) -> list[FuncOp]:
    """The functions of the kernels that read and write, as the program of `exp` has them."""
    functions: list[FuncOp] = []
    x, y = program.circular_buffers
    for name, buffer, operand in (("read_exp", x, 0), ("write_exp", y, 1)):
        is_reader = operand == 0
        kernel = MovementKernel(
            name,
            Processor.READER if is_reader else Processor.WRITER,
            "",
            CORES,
            (RuntimeArgument(f"{buffer.name}_address", BufferAddress(operand)), *_SHARE),
            accessors=(operand,),
        )
        kernel.begin([buffer], [buffer.name], values=program.values)
        with kernel.share("tile") as tile:
            if is_reader:
                kernel.builder.op("cb_reserve_back", kernel.buffer("x"), 1)
                kernel.read_page(tile, "x", kernel.write_pointer("x"))
                kernel.builder.op("noc_async_read_barrier")
                kernel.builder.op("cb_push_back", kernel.buffer("x"), 1)
            else:
                kernel.builder.op("cb_wait_front", kernel.buffer("y"), 1)
                kernel.write_page(tile, "y", "y")
                kernel.builder.op("noc_async_write_barrier")
                kernel.builder.op("cb_pop_front", kernel.buffer("y"), 1)
        functions.append(kernel.finish()[1])
    return functions


def _create(name: str, operands: list[Operation], result: object = None, **attributes: object):
    op_type = load_dialects().get_op(name)
    values = [operand.results[0] for operand in operands]
    return op_type.create(
        operands=values,
        result_types=[] if result is None else [result],
        attributes=attributes,
    )


def exp_module(data_type: DataType = DataType.BFLOAT16, program: Program | None = None) -> ModuleOp:
    """`forward(x) = exp(x)` of a tensor with 64 rows and 96 columns."""
    program = program or exp_program(data_type)
    type_ = placed_type(TensorPlacement(SHAPE, data_type))
    plain = TensorType(data_type.element_type, SHAPE)
    context = load_dialects()
    entry = Block(arg_types=[type_])
    entry.args[0].name_hint = "x"
    create = context.get_op("ttmetal.create_buffer").create(result_types=[type_])
    launch = context.get_op("ttmetal.run_program").create(
        operands=[entry.args[0], create.results[0]],
        properties={
            "program": ProgramAttr(program),
            "meaning": SymbolRefAttr("m_exp"),
        },
    )
    entry.add_ops([create, launch, ReturnOp(create.results[0])])
    forward = FuncOp("forward", FunctionType.from_lists([type_], [type_]), Region(entry))
    forward.arg_attrs = ArrayAttr([DictionaryAttr({"ttir.name": StringAttr("x")})])
    forward.res_attrs = ArrayAttr([DictionaryAttr({"ttir.name": StringAttr("y")})])
    body = Block(arg_types=[plain])
    exp = context.get_op("ttir.exp").create(operands=[body.args[0]], result_types=[plain])
    body.add_ops([exp, ReturnOp(exp.results[0])])
    meaning = FuncOp("m_exp", FunctionType.from_lists([plain], [plain]), Region(body), "private")
    meaning.attributes["ttmetal.meaning"] = UnitAttr()
    return ModuleOp([forward, meaning, *movement_kernels(program), compute_kernel(data_type)])


def renamed(program: Program, **changes: object) -> Program:
    """The program with other fields."""
    return dataclasses.replace(program, **changes)  # type: ignore[arg-type]
