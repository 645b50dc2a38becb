"""The `ttkernel` dialect: every row of its table, the verifier, and the C++ of ops."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from tests.dialects.texts import assert_round_trip, parse, refusal, text_of
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttkernel.attributes import (
    BroadcastType,
    CBType,
    CircularBufferPlaceAttr,
    DataFormatType,
    DestinationReuse,
    EltwiseBinaryType,
    FabricConnectionManagerType,
    InputClamping,
    KeptTilesType,
    L1AddressType,
    L1PointerType,
    NocAddressType,
    PageMappingType,
    ReduceDim,
    ReduceType,
    RowOrderType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    ThreadTypeAttr,
    TileCacheType,
)
from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    Engine,
    KernelOp,
    Operand,
    Signature,
)
from ttcodegen.dialects.ttkernel.operation import (
    TTKernelOp,
    create,
    kernel_call,
    ttkernel_op_classes,
)
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.foundation.diagnostics import CompileError

TILES = CBType(2, TileType("bf16"))
TYPES: dict[str, Attribute] = {
    "cb": TILES,
    "dst": IndexType(),
    "int": IndexType(),
    **dict.fromkeys(("count", "switch", "trid"), IndexType()),
    "noc": IntegerType(8),
    "rows": CBType(2048, BFloat16Type()),
    "flag": IntegerType(1),
    "i8": IntegerType(8),
    "i16": IntegerType(16),
    "word": IntegerType(32),
    "f32": Float32Type(),
    "l1_addr": L1AddressType(),
    "l1_ptr": L1PointerType(),
    "noc_addr": NocAddressType(),
    "semaphore": IntegerType(32),
    "argument": TILES,
    "accessor": TensorAccessorType(),
    "accessor_args": TensorAccessorArgsType(),
    "page_mapping": PageMappingType(),
    "data_format": DataFormatType(),
    "kept_tiles": KeptTilesType(),
    "tile_cache": TileCacheType(),
    "row_order": RowOrderType(),
    "fabric": FabricConnectionManagerType(),
    "any": IntegerType(32),
}
VALUES: dict[str, object] = {
    "bool": True,
    "i32": 4,
    "i64": 1,
    "count": 4,
    "positive": 8,
    "dimension": 1,
    "text": "name",
    "element": IntegerType(32),
    "dtype": "bf16",
    "integer_dtype": "si32",
    "dtype_number": "f32",
    "reduce_type": ReduceType.MAX,
    "reduce_dim": ReduceDim.ROW,
    "bcast_type": BroadcastType.ROW,
    "eltwise_binary_type": EltwiseBinaryType.SUB,
    "reuse_type": DestinationReuse.DEST_TO_SRCB,
    "input_clamping": InputClamping.NONE,
    "number": StringAttr("floating"),
    "reduction": StringAttr("sum"),
    "printed": StringAttr("bf16"),
    "any": IntegerAttr(1, IntegerType(64)),
}


def kind_of(name: str, operand: Operand) -> str:
    """The kind of an operand; "rows" for the buffers of rows that are tilized, or tiles that are
    untilized into them."""
    words = name.removeprefix("experimental.").removeprefix("pack_").split("_")
    source = words[0] == "untilize" and words[1] in ("block", "init")
    rows = {"tilize": "cbIn", "untilize": "cbOut" if source else ""}.get(words[0])
    return "rows" if operand.name == rows and words[1] != "dest" else operand.kind


def attributes_of(definition: KernelOp, signature: Signature, full: bool) -> dict[str, object]:
    found = {a.name: VALUES[a.kind] for a in definition.attributes if full or not a.optional}
    if definition.name == "dprint":
        found["fmt"] = "value {}" if full else "value"
    if definition.name == "TensorAccessorArgs":
        follows = [operand.kind for operand in signature] == ["accessor_args"]
        bases: dict[str, object] = {"cta_base": 4}
        found = {} if follows else {"cta_expr": "a", "crta_expr": "b"} if signature else bases
    return found


def kernel_with(definition: KernelOp) -> tuple[ModuleOp, list[TTKernelOp]]:
    """A kernel with one op for each signature, with and without what is optional."""
    block = Block()
    values: dict[str, SSAValue] = {}
    ops: list[TTKernelOp] = []

    def value(kind: str) -> SSAValue:
        if kind not in values:
            values[kind] = block.insert_arg(TYPES[kind], len(block.args))
        return values[kind]

    for signature in definition.signatures:
        for full in (False, True):
            given = [o for o in signature if full or not (o.optional or o.variadic)]
            operands = [value(kind_of(definition.name, o)) for o in given]
            attributes = attributes_of(definition, signature, full)
            results = [TYPES[result.kind] for result in definition.results]
            regions = [Region(Block())] if definition.has_region else []
            ops.append(create(definition.name, operands, attributes, results, regions))
    if definition.is_terminator:
        del ops[1:]
    block.add_ops(ops)
    if not definition.is_terminator:
        block.add_op(ReturnOp())
    kernel = FuncOp("kernel", ([arg.type for arg in block.args], []), Region(block))
    thread = next(t for t in ThreadType if t in definition.threads)
    kernel.attributes["ttkernel.thread"] = ThreadTypeAttr(thread)
    return ModuleOp([kernel]), ops


@pytest.mark.parametrize("name", sorted(kernel_ops()))
def test_every_op_reads_back(name: str) -> None:
    module, _ = kernel_with(kernel_ops()[name])
    assert_round_trip(module)


def test_init_ops_exist_and_set_up_an_engine() -> None:
    table = kernel_ops()
    for definition in table.values():
        if definition.init is not None:
            assert table[definition.init].engine is Engine.INIT, definition.name


@pytest.mark.parametrize("name", sorted(n for n, op in kernel_ops().items() if op.cpp is not None))
def test_every_function_has_a_call(name: str) -> None:
    """Template arguments and arguments can be derived for all that the op may carry."""
    definition = kernel_ops()[name]
    thread = next(t for t in ThreadType if t in definition.threads)
    _, ops = kernel_with(definition)
    # Accessors after others are read, but have no call.
    call = kernel_call(ops[0 if name == "TensorAccessorArgs" else -1], thread)
    assert call.header.startswith(("api/", "blocks/"))
    assert definition.cpp is not None
    assert len(call.template_arguments) <= len(definition.cpp.template)
    assert not set("{}()[] ").intersection(call.callee)


KERNEL = """
func.func @kernel({arguments}) attributes {{ttkernel.thread = #ttkernel.thread<{thread}>}} {{
  {op}
  func.return
}}
"""
CB = "!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>"


def kernel(op: str, arguments: str = f"%cb: {CB}, %i: index", thread: str = "compute") -> str:
    return KERNEL.format(op=op, arguments=arguments, thread=thread)


def test_compute_op_in_a_data_movement_kernel_is_refused() -> None:
    text = kernel(f"ttkernel.pack_tile(%i, %cb) : (index, {CB}) -> ()", thread="noc")
    message = refusal(text)
    assert "in.mlir:3:3: error:" in message
    assert "ttkernel.pack_tile runs in kernels of the thread compute" in message
    assert "@kernel is a kernel of the thread noc" in message


def test_data_movement_op_in_a_compute_kernel_is_refused() -> None:
    message = refusal(kernel("ttkernel.noc_async_read_barrier() : () -> ()"))
    assert "runs in kernels of the thread noc or ethernet" in message


def test_circular_buffers_are_for_all_threads() -> None:
    op = f"ttkernel.cb_push_back(%cb, %i) : ({CB}, index) -> ()"
    for thread in ("noc", "compute", "ethernet"):
        assert_round_trip(parse(kernel(op, thread=thread)))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ttkernel.copy_tile_init(%i) : (index) -> ()", "operand 'cb0' should be a circular"),
        (f"ttkernel.exp_tile(%cb) : ({CB}) -> ()", "should be the index of a destination"),
        ("ttkernel.exp_tile() : () -> ()", "has 1 operands, found 0"),
        ("ttkernel.tile_regs_wait(%i) : (index) -> ()", "has 0 operands, found 1"),
        (
            f'"ttkernel.unary_bcast"(%cb, %i, %i) : ({CB}, index, index) -> ()',
            "needs the attribute 'bcast_type'",
        ),
        (
            '"ttkernel.where_tile"(%i, %i, %i, %i) <{dtype = "bf16"}> '
            ": (index, index, index, index) -> ()",
            "attribute 'dtype' should be a #ttcore.supportedDataTypes",
        ),
        ("%r = ttkernel.exp_tile(%i) : (index) -> index", "has 0 results, found 1"),
        ('"ttkernel.exp_tile"(%i) <{slow = true}> : (index) -> ()', "has no attribute 'slow'"),
        ("ttkernel.exp_tile(%i, true, 1) : (index) -> ()", "boolean literal"),
        ("ttkernel.tile_regs_wait(true) : () -> ()", "has no further attribute"),
    ],
)
def test_malformed_ops_are_refused_at_their_place(op: str, expected: str) -> None:
    message = refusal(kernel(op))
    assert expected in message
    assert message.startswith("in.mlir:3:"), message


ROWS = "!ttkernel.cb<2048, bf16>"
READ = "noc_async_read_barrier_with_trid"


@pytest.mark.parametrize(
    ("thread", "op", "expected"),
    [
        ("noc", f'"ttkernel.{READ}"(%n) : (i32) -> ()', "'trid' is 0 to 15, found 16"),
        ("noc", f'"ttkernel.{READ}"(%o, %b) : (i32, i8) -> ()', "'noc' is 0 to 1, found 2"),
        ("noc", "ttkernel.noc_async_write_barrier(%b) : (i8) -> ()", "'noc' is 0 to 1, found 2"),
        ("noc", "ttkernel.cb_wait_front(%t, %m) : (T, i32) -> ()", "'numPages' is not negative"),
        ("noc", "%x = ttkernel.get_arg_val(%m) : (i32) -> i32", "'arg_index' is not negative"),
        ("noc", "%x = ttkernel.get_semaphore(%m) : (i32) -> !ttkernel.l1_addr", "not negative"),
        ("noc", "%x = ttkernel.get_compile_time_arg_val(-1) : () -> i32", "an i32 of 0 or more"),
        ("compute", "ttkernel.mm_init(%t, %t, %t, %n) : (T, T, T, i32) -> ()", "is 0 to 1"),
        ("compute", "ttkernel.tilize_init(%t, %o, %t) : (T, i32, T) -> ()", "elements in rows"),
        ("compute", "ttkernel.tilize_block(%r, %o, %r) : (R, i32, R) -> ()", "'cbOut' holds tiles"),
        ("compute", "ttkernel.untilize_init(%r) : (R) -> ()", "'cbIn' holds tiles"),
        ("compute", "ttkernel.untilize_block(%t, %o, %t) : (T, i32, T) -> ()", "'cbOut' holds ele"),
        ("compute", '"ttkernel.pack_untilize_init"(%t, %t) : (T, T) -> ()', "'cbOut' holds ele"),
        (
            "compute",
            '"ttkernel.pack_untilize_init"(%t, %r) <{colsPerDstPass = 3 : i32, '
            "totalColTiles = 8 : i32}> : (T, R) -> ()",
            "8 columns of tiles do not divide into passes of 3",
        ),
        (
            "compute",
            '"ttkernel.pack_untilize_init"(%t, %r) <{colsPerDstPass = 0 : i32}> : (T, R) -> ()',
            "an i32 of 1 or more",
        ),
        (
            "compute",
            '"ttkernel.experimental.pack_untilize_block"(%t, %r, %o, %n) <{colsPerDstPass = 3 : '
            "i32, totalColTiles = 6 : i32}> : (T, R, i32, i32) -> ()",
            "a block of 16 columns does not divide into passes of 3",
        ),
        ("compute", "ttkernel.transpose_wh_init(%r, %t) : (R, T) -> ()", "'cbIn' holds tiles"),
        ("compute", "ttkernel.transpose_wh_tile(%r, %o, %o) : (R, i32, i32) -> ()", "holds tiles"),
        (
            "compute",
            "ttkernel.sfpu_reduce(%o, <reduce_sum>, <f16>) : (i32) -> ()",
            "reduces f32, si32, u32, u16, bf16, found f16",
        ),
        (
            "compute",
            "ttkernel.sfpu_reduce(%o, <reduce_avg>, <si32>) {reduce_dim = "
            "#ttkernel.reduce_dim<reduce_dim_row>} : (i32) -> ()",
            "reduces rows by reduce_sum or reduce_max",
        ),
        (
            "compute",
            "ttkernel.sfpu_reduce(%o, <reduce_sum>, <si32>) {reduce_dim = "
            "#ttkernel.reduce_dim<reduce_dim_scalar>} : (i32) -> ()",
            "reduces columns or rows",
        ),
        ("noc", 'ttkernel.dprint(%o, "a") : (i32) -> ()', "1 operands for 0 places"),
        ("noc", 'ttkernel.dprint("a {}") : () -> ()', "0 operands for 1 places"),
        (
            "noc",
            "%x = ttkernel.TensorAccessorArgs() : () -> !ttkernel.TensorAccessorArgs",
            "needs 'cta_base'",
        ),
        (
            "noc",
            "%q = ttkernel.get_arg_val(%o) : (i32) -> i32\n"
            "  %x = ttkernel.TensorAccessorArgs(%q, %o) : (i32, i32) -> A",
            "'cta_base' is a constant",
        ),
    ],
)  # fmt: skip
def test_numbers_and_pages_are_those_that_functions_take(
    thread: str, op: str, expected: str
) -> None:
    tiles = "!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>"
    for letter, type_ in (("T", tiles), ("R", ROWS), ("A", "!ttkernel.TensorAccessorArgs")):
        op = re.sub(rf"\b{letter}\b", type_, op)
    text = f"""
func.func @kernel(%t: {tiles}, %r: {ROWS})
    attributes {{ttkernel.thread = #ttkernel.thread<{thread}>}} {{
  %o = arith.constant 1 : i32
  %n = arith.constant 16 : i32
  %m = arith.constant -1 : i32
  %b = arith.constant 2 : i8
  {op}
  func.return
}}
"""
    assert expected in refusal(text)


def destination(index: int, attributes: str = "") -> str:
    return f"""
func.func @kernel() attributes {{ttkernel.thread = #ttkernel.thread<compute>{attributes}}} {{
  %i = arith.constant {index} : index
  ttkernel.exp_tile(%i) : (index) -> ()
  func.return
}}
"""


def test_destination_registers_are_counted() -> None:
    parse(destination(15)).verify()
    assert "has 16, numbered from 0" in refusal(destination(16))
    few = ", ttkernel.dst_tiles = 4 : i64"
    parse(destination(3, few)).verify()
    message = refusal(destination(4, few))
    assert "in.mlir:4:3" in message
    assert "'dst_index' is the destination register 4, but @kernel has 4" in message


def test_older_circular_buffers_are_read() -> None:
    memref = "memref<64x128xf32, #tt.memory_space<l1>>"
    for text in (
        f"!ttkernel.cb<0, 1, {memref}>",
        f"!ttkernel.cb<cb_in0, 294912, {memref}, 4096, 1>",
    ):
        module = parse(kernel("ttkernel.return() : () -> ()", f"%cb: {text}"))
        type_ = next(op for op in module.walk() if op.regions and op.regions[0].blocks[0].args)
        found = type_.regions[0].block.args[0].type
        assert isinstance(found, CBType)
        assert (found.pages.data, str(found.element_type)) == (8192, "f32")
        assert text.replace("#tt.", "#ttcore.") in text_of(module)
        assert text_of(parse(text_of(module))) == text_of(module)


@pytest.mark.parametrize(
    ("text", "number", "address"),
    [
        ("0, 2, memref<4xf32>", 2, 0),
        ("294912, 31, memref<4xf32>", 31, 294912),
        ("cb_in7, 64, memref<4xf32>", 7, 64),
        ("cb_dataflow1, 64, memref<4xf32>, 16, 2", 9, 64),
        ("cb_out0, 64, memref<4xf32>, 16, 2", 16, 64),
        ("cb_intermed7, 64, memref<4xf32>, 16, 2", 31, 64),
        ("cb_elsewhere0, 64, memref<4xf32>", None, 64),
    ],
)
def test_ports_and_addresses_are_kept(text: str, number: int | None, address: int) -> None:
    module = parse(kernel("ttkernel.return() : () -> ()", f"%cb: !ttkernel.cb<{text}>"))
    [kernel_function] = [op for op in module.walk() if isinstance(op, FuncOp)]
    type_ = kernel_function.body.block.args[0].type
    assert isinstance(type_, CBType)
    assert isinstance(type_.place, CircularBufferPlaceAttr)
    assert (type_.place.data.number, type_.place.data.address) == (number, address)
    assert f"!ttkernel.cb<{text}>" in text_of(module)


@pytest.mark.parametrize("text", ["0, memref<4xf32>", "cb_in0, memref<4xf32>", "cb_in0, 2, f32"])
def test_older_circular_buffers_say_port_and_address(text: str) -> None:
    with pytest.raises(CompileError, match=r"a circular buffer (with a memref )?needs its"):
        parse(kernel("ttkernel.return() : () -> ()", f"%cb: !ttkernel.cb<{text}>"))


@pytest.mark.parametrize(("word", "printed"), [("noc0", "noc0"), ("noc1", "noc1"), ("noc", "noc"),
                                               ("tensix", "compute")])  # fmt: skip
def test_the_network_of_a_kernel_is_kept(word: str, printed: str) -> None:
    text = kernel("ttkernel.return() : () -> ()").replace("thread<compute>", f"thread<{word}>")
    assert f"#ttkernel.thread<{word}>" in text
    assert f"#ttkernel.thread<{printed}>" in text_of(parse(text))


def test_attributes_in_full_are_read_too() -> None:
    full = (
        f"ttkernel.unary_bcast(%cb, %i, %i, #ttkernel.bcast_type<row>) : ({CB}, index, index) -> ()"
    )
    assert "<row>)" in text_of(parse(kernel(full)))


def test_unknown_words_are_refused_with_those_known() -> None:
    op = f"ttkernel.unary_bcast(%cb, %i, %i, <diagonal>) : ({CB}, index, index) -> ()"
    assert "one of none, col, row, scalar, not diagonal" in refusal(kernel(op))


def sample_kernel() -> tuple[ModuleOp, list[TTKernelOp]]:
    kernel = KernelBuilder("scaled_exp", ThreadType.COMPUTE, destination_tiles=8)
    source, target = (kernel.circular_buffer(n, 2, TileType("bf16")) for n in ("source", "target"))
    tiles = kernel.argument(0, "tiles")
    kernel.op("init_sfpu", source, target)
    kernel.op("exp_tile_init", approx=True)
    with kernel.loop(tiles, name_hint="tile"):
        kernel.op("cb_wait_front", source, 1)
        with kernel.destination_registers():
            kernel.op("copy_tile", source, 0, 0)
            kernel.op("exp_tile", 0, input_clamping=InputClamping.NONE)
            kernel.op("fill_tile", 1, 0.5)
            kernel.start_packing()
            kernel.op("pack_tile", 0, target)
        kernel.op("cb_pop_front", source, 1)
    module = ModuleOp([kernel.finish()])
    return module, [op for op in module.walk() if isinstance(op, TTKernelOp)]


def test_built_kernels_verify_and_read_back() -> None:
    module, _ = sample_kernel()
    assert_round_trip(module)
    text = text_of(module)
    assert text.count("arith.constant") == 3  # 0, 1 and 0.5, however often they are used
    assert "scf.for %tile = " in text


def call_of(name: str) -> tuple[str, tuple[str, ...], int]:
    _, ops = sample_kernel()
    op = next(op for op in ops if op.definition.name == name)
    call = kernel_call(op, ThreadType.COMPUTE)
    return call.header, call.template_arguments, len(call.arguments)


def test_calls_leave_out_what_is_default() -> None:
    assert call_of("exp_tile_init") == ("api/compute/eltwise_unary/exp.h", ("true",), 0)
    assert call_of("exp_tile") == (
        "api/compute/eltwise_unary/exp.h",
        ("false", "false", "InputClamping::None"),
        1,
    )
    assert call_of("pack_tile") == ("api/compute/pack.h", (), 2)
    assert call_of("get_arg_val") == ("api/compute/common.h", ("uint32_t",), 1)


def test_headers_depend_on_the_thread() -> None:
    definition = kernel_ops()["cb_push_back"]
    assert definition.threads == ANY_THREAD
    _, ops = kernel_with(definition)
    assert kernel_call(ops[-1], ThreadType.COMPUTE).header == "api/compute/cb_api.h"
    assert kernel_call(ops[-1], ThreadType.NOC).header == "api/dataflow/dataflow_api.h"


def test_functions_get_the_operands_that_they_need() -> None:
    _, ops = kernel_with(kernel_ops()["cb_push_back"])  # until 2024 without a number of pages
    with pytest.raises(CompileError, match="the function of the kernel API needs 'numPages'"):
        kernel_call(ops[0], ThreadType.COMPUTE)


def test_ops_without_a_function_are_refused() -> None:
    _, ops = kernel_with(kernel_ops()["experimental.matmul_block"])
    with pytest.raises(CompileError, match="no counterpart in tt-metal"):
        kernel_call(ops[0], ThreadType.COMPUTE)


def test_class_names_are_distinct() -> None:
    classes = ttkernel_op_classes().values()
    assert len({op_class.__name__ for op_class in classes}) == len(classes)
