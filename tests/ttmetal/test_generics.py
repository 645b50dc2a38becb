"""Groups of ops as `ttir.generic`: printed, edited, written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr

from tests.dialects.texts import text_of
from tests.random_programs.checking import Checked, generate, module_of
from tests.random_programs.choices import SeededChoices
from tests.ttmetal.test_module_runs import compiled_ops
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.ttmetal_to_emitc.functions import device_entries
from ttcodegen.dialects.ttcore.tile import IteratorTypeAttr
from ttcodegen.dialects.ttir.generic import GenericOp
from ttcodegen.dialects.ttmetal.device_module import device_programs
from ttcodegen.dialects.ttmetal.programs import Program
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of, step

T, ROW, COLUMN = "tensor<64x96xbf16>", "tensor<96xbf16>", "tensor<64x1xbf16>"
LINE = "tensor<1x96xbf16>"
CHAIN = f"""
func.func @chain(%x: {T}, %bias: {ROW}) -> {COLUMN} {{
  %sum = "ttir.add"(%x, %bias) : ({T}, {ROW}) -> {T}
  %e = "ttir.exp"(%sum) : ({T}) -> {T}
  %total = "ttir.sum"(%e) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({T}) -> {COLUMN}
  return %total : {COLUMN}
}}
"""
HEAD = """
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#column = affine_map<(d0, d1) -> (d0, 0)>
#parallel = #ttcore.iterator_type<parallel>
#reduction = #ttcore.iterator_type<reduction>
"""


def generic(
    result: str,
    operands: str,
    maps: str,
    body: str,
    grid: str = "8x8",
    types: str = "#parallel, #parallel",
) -> str:
    """A generic that gives a value of the type `result`; `operands` are names and types in pairs,
    and the arguments of the region are %b0, %b1 and so on."""
    pairs = re.findall(r"(%\w+): ([^,]+)", operands)
    arguments = [f"%b{number}: {type_}" for number, (_, type_) in enumerate(pairs)]
    names, kinds = (", ".join(column) for column in zip(*pairs, strict=True))
    return f"""ttir.generic {{grid = #ttcore.grid<{grid}>, indexing_maps = [{maps}],
      iterator_types = [{types}]}} ins({names} : {kinds}) outs(%empty : {result}) {{
  ^bb0({", ".join([*arguments, f"%out: {result}"])}):
{body}
  }} : {result}"""


def function(lines: str, result: str, value: str, arguments: str = f"%x: {T}, %bias: {ROW}") -> str:
    """A function with an empty tensor of its result's type."""
    return f"""{HEAD}
func.func @chain({arguments}) -> {result} {{
  %empty = "ttir.empty"() : () -> {result}
  {lines}
  return {value} : {result}
}}
"""


ADD = f"""    %s = "ttir.add"(%b0, %b1) : ({T}, {ROW}) -> {T}
    ttir.yield %s : {T}"""
SUM = f"""    %e = "ttir.exp"(%b0) : ({T}) -> {T}
    %s = "ttir.sum"(%e) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({T}) -> {COLUMN}
    ttir.yield %s : {COLUMN}"""
SPLIT = function(
    f'%whole = "ttir.empty"() : () -> {T}\n  %0 = '
    + generic(T, f"%x: {T}, %bias: {ROW}", "#map, #row, #map", ADD).replace("%empty", "%whole")
    + "\n  %1 = "
    + generic(COLUMN, f"%0: {T}", "#map, #column", SUM, types="#parallel, #reduction"),
    COLUMN,
    "%1",
)
MERGED = function(
    "%0 = "
    + generic(
        T,
        f"%x: {T}, %bias: {ROW}",
        "#map, #row, #map",
        ADD.replace("ttir.yield %s", f'%e = "ttir.exp"(%s) : ({T}) -> {T}\n    ttir.yield %e'),
    ),
    T,
    "%0",
)
"""A generic with two ops that `SINGLE` has in one each."""
SINGLE = (
    HEAD
    + f"""
func.func @chain(%x: {T}, %bias: {ROW}) -> {T} {{
  %empty = "ttir.empty"() : () -> {T}
  %0 = {generic(T, f"%x: {T}, %bias: {ROW}", "#map, #row, #map", ADD)}
  %1 = {
        generic(
            T,
            f"%0: {T}",
            "#map, #map",
            f'''    %e = "ttir.exp"(%b0) : ({T}) -> {T}
    ttir.yield %e : {T}''',
        )
    }
  return %1 : {T}
}}
"""
)


_NAME = re.compile(r"%\w+")


def grouped(text: str) -> str:
    """The module with its generics, as text."""
    module = source_module(Source("in.mlir", text))
    PassRunner(load_dialects()).run(module, passes_of(step("ttir-to-ttmetal-fe-pipeline")))
    return text_of(module)


def generics_of(text: str) -> list[GenericOp]:
    """The generics of a module, in order."""
    module = parse_module(Source("in.mlir", text))
    return [op for op in module.walk() if isinstance(op, GenericOp)]


def maps_of(op: GenericOp) -> list[str]:
    """The indexing maps of a generic."""
    return [str(m.data) for m in op.indexing_maps.data if isinstance(m, AffineMapAttr)]


def programs(text: str) -> list[Program]:
    """The programs of a module."""
    module = source_module(Source("in.mlir", text))
    PassRunner(load_dialects()).run(module, passes_of(step("ttir-to-ttmetal-pipeline")))
    entries = [entry.function for entry in device_entries(module)]
    return [found.program for found in device_programs(entries)]


def refusal(text: str) -> str:
    """Error message for a module that does not compile."""
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        compile_module(source, CompileOptions("m", target="ttmetal"))
    return caught.value.render(source)


def test_each_program_is_a_generic() -> None:
    [op] = generics_of(grouped(CHAIN))
    assert [inner.name for inner in op.bodies[0].block.ops] == [
        *("ttir.add", "ttir.exp", "ttir.sum"),
        "ttir.yield",
    ]
    assert maps_of(op) == [
        "(d0, d1) -> (d0, d1)",
        "(d0, d1) -> (d1)",
        "(d0, d1) -> (d0, 0)",
    ]
    kinds = [t.data for t in op.iterator_types.data if isinstance(t, IteratorTypeAttr)]
    assert kinds == ["parallel", "reduction"]


def test_generics_read_back_and_stay_what_they_are() -> None:
    text = grouped(CHAIN)
    assert grouped(text) == text


@pytest.mark.parametrize("shape", ["64x96xbf16", "2x3x40x96xf32"])
def test_a_softmax_reads_back(shape: str) -> None:
    """Its rows of lowest scores are looked after once."""
    t = f"tensor<{shape}>"
    dimension = shape.count("x") - 1
    text = grouped(
        f"""func.func @f(%x: {t}) -> {t} {{
  %0 = "ttir.softmax"(%x) <{{dimension = {dimension} : si32}}> : ({t}) -> {t}
  return %0 : {t}
}}"""
    )
    assert text.count("ttir.maximum") == 1
    assert grouped(text) == text


def test_generics_of_random_functions_read_back() -> None:
    found = 0
    for seed in range(12):
        text = module_of([generate(SeededChoices(seed), "f", 8, recipes=compiled_ops())])
        first = grouped(text)
        # What passes make after values were named has a name when it is read again.
        assert _NAME.sub("%", grouped(first)) == _NAME.sub("%", first)
        found += len(generics_of(first))
    assert found > 24


@pytest.mark.parametrize(
    ("left", "right", "maps"),
    [
        ("40x64", "64x96", "(d0, d2), (d2, d1), (d0, d1)"),
        ("5x40x64", "64x96", "(d0, d1, d3), (d3, d2), (d0, d1, d2)"),
        ("1x40x64", "5x64x96", "(0, d1, d3), (d0, d3, d2), (d0, d1, d2)"),
    ],
)
def test_maps_of_products(left: str, right: str, maps: str) -> None:
    batch = "5x" if "5x" in left + right else ""
    types = [f"tensor<{shape}xbf16>" for shape in (left, right, f"{batch}40x96")]
    text = grouped(f"""
func.func @f(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
  %0 = "ttir.matmul"(%a, %b) : ({types[0]}, {types[1]}) -> {types[2]}
  return %0 : {types[2]}
}}""")
    [op] = generics_of(text)
    loops = "(d0, d1, d2, d3)" if batch else "(d0, d1, d2)"
    assert maps_of(op) == [f"{loops} -> {each}" for each in re.findall(r"\([^)]*\)", maps)]


def test_dividing_a_generic_makes_two_programs() -> None:
    assert [program.purpose for program in programs(CHAIN)] == ["add, exp, sum"]
    assert [program.purpose for program in programs(SPLIT)] == ["add", "exp, sum"]


def test_merging_generics_makes_one_program() -> None:
    assert [program.purpose for program in programs(SINGLE)] == ["add", "exp"]
    assert [program.purpose for program in programs(MERGED)] == ["add, exp"]


def test_a_reduction_may_come_back_to_its_rows() -> None:
    text = MERGED.replace(
        f'%e = "ttir.exp"(%s) : ({T}) -> {T}',
        f'%m = "ttir.max"(%s) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({T}) -> {COLUMN}\n'
        f'    %e = "ttir.subtract"(%s, %m) : ({T}, {COLUMN}) -> {T}',
    )
    assert [program.purpose for program in programs(text)] == ["add, max, subtract"]


def test_the_grid_of_a_generic_is_that_of_its_program() -> None:
    [program] = programs(MERGED.replace("grid<8x8>", "grid<2x4>"))
    assert (program.core_range.rows, program.core_range.columns) == (2, 4)


def test_maps_may_be_left_out_or_name_loops_in_another_order() -> None:
    bare = MERGED.replace("#map, #row, #map", "").replace("#parallel, #parallel", "")
    swapped = MERGED.replace("(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)").replace(
        "(d0, d1) -> (d1)", "(d0, d1) -> (d0)"
    )
    assert programs(bare) == programs(swapped) == programs(MERGED)


def test_operands_may_come_in_another_order_than_they_are_read() -> None:
    swapped = MERGED.replace("(%b0, %b1)", "(%b1, %b0)").replace(f"({T}, {ROW})", f"({ROW}, {T})")
    [op] = generics_of(grouped(swapped))
    assert maps_of(op) == maps_of(generics_of(grouped(MERGED))[0])


def test_an_operand_that_a_product_turns_is_a_program_before_it() -> None:
    x, weight, result = (f"tensor<{shape}xf32>" for shape in ("64x40", "64x96", "40x96"))
    words = "<{transpose_a = true, transpose_b = false}>"
    body = f"""    %m = "ttir.matmul"(%b0, %b1) {words} : ({x}, {weight}) -> {result}
    ttir.yield %m : {result}"""
    maps = ("(d2, d0)", "(d2, d1)", "(d0, d1)")
    listed = ", ".join(f"affine_map<(d0, d1, d2) -> {each}>" for each in maps)
    operands, kinds = f"%x: {x}, %bias: {weight}", "#parallel, #parallel, #reduction"
    text = "%0 = " + generic(result, operands, listed, body, types=kinds)
    found = programs(function(text, result, "%0", operands))
    assert [program.purpose for program in found] == ["permute", "matmul"]


def test_ops_that_are_no_primitives_are_decomposed_inside() -> None:
    text = MERGED.replace('"ttir.exp"', '"ttir.silu"')
    assert len(programs(text)) == 1


def test_layouts_of_buffers_and_kernels_of_2024_are_read() -> None:
    layout = "#layout1"
    typed = f"tensor<64x128xf32, {layout}>"
    buffers = [
        f"tensor<64x128xf32, #tt.buffer<memref<64x128xf32, #l1_>, {access}>>"
        for access in ("alias", "stream", "alias")
    ]
    arguments = ", ".join(f"%arg{i + 2}: {type_}" for i, type_ in enumerate(buffers))
    text = f"""
#l1_ = #tt.memory_space<l1>
#any = #tt.operand_constraint<dram|l1|tile>
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #tt.iterator_type<parallel>
{layout} = #tt.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #l1_>>
func.func @f(%0: {typed}, %1: {typed}, %2: {typed}) -> {typed} {{
  %3 = "ttir.empty"() : () -> {typed}
  %4 = "ttir.stream_layout"(%1, %2) : ({typed}, {typed}) -> {typed}
  %5 = "ttir.generic"(%0, %4, %2, %3) <{{
    grid = #tt.grid<1x1>, indexing_maps = [#map, #map, #map],
    iterator_types = [#parallel, #parallel], operandSegmentSizes = array<i32: 2, 1, 1>,
    operand_cb_mapping = array<i64: -1, 0, -1>, operand_constraints = [#any, #any, #any]
  }}> ({{
  ^bb0({arguments}):
    %6 = "ttir.kernel"(%arg2, %arg3, %arg4) <{{kind = @eltwise, op = @mulitply,
        operandSegmentSizes = array<i32: 2, 1>}}> : ({", ".join(buffers)}) -> {buffers[2]}
    "ttir.yield"(%6) : ({buffers[2]}) -> ()
  }}) : ({typed}, {typed}, {typed}, {typed}) -> {typed}
  return %5 : {typed}
}}"""
    [program] = programs(text)
    assert (program.purpose, program.inputs, program.core_range.cores) == ("multiply", 2, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            MERGED.replace(f'"ttir.exp"(%s) : ({T})', f'"ttir.pow"(%s, %s) : ({T}, {T})').replace(
                "bf16", "si32"
            ),
            "'ttir.pow' of si32 has no operation on tiles for --target ttmetal",
        ),
        (
            MERGED.replace(
                f'%e = "ttir.exp"(%s) : ({T}) -> {T}',
                f'%m = "ttir.dropout"(%s) : ({T}) -> {T}\n'
                f'    %e = "ttir.softmax"(%m) <{{dimension = 1 : si32}}> : ({T}) -> {T}',
            ),
            "'ttir.dropout' only goes with elementwise ops, not with 'ttir.max'",
        ),
        (MERGED.replace("#map, #row, #map", "#map, #row, #column"), "do not match its region"),
        (MERGED.replace("grid<8x8>", "grid<9x9>"), "its grid is <9x9>, that of the chip <8x8>"),
        (
            MERGED.replace("#parallel, #parallel", "#parallel, #reduction"),
            "outputs cannot depend on a reduction loop",
        ),
        (MERGED.replace('"ttir.exp"(%s)', '"ttir.exp"(%out)'), "reads what it is to write"),
        (
            MERGED.replace(
                f'%e = "ttir.exp"(%s) : ({T}) -> {T}',
                f'%m = "ttir.sum"(%s) <{{dim_arg = [0 : i32], keep_dim = true}}> : '
                f"({T}) -> {LINE}\n"
                f'    %e = "ttir.subtract"(%s, %m) : ({T}, {LINE}) -> {T}',
            ),
            "other ops (1, 96): the loops of a program are the same for all",
        ),
        (
            MERGED.replace(
                f'%e = "ttir.exp"(%s) : ({T}) -> {T}',
                f'%e = "ttir.reverse"(%s) <{{dimensions = array<i64: 0>}}> : ({T}) -> {T}',
            ),
            "'ttir.add' comes before 'ttir.reverse'",
        ),
        (
            MERGED.replace('"ttir.exp"(%s)', '"ttir.exp"(%x)'),
            "its region uses %x of the function instead of an argument of its own",
        ),
        (
            MERGED.replace(
                f'%e = "ttir.exp"(%s) : ({T}) -> {T}',
                f'%e = "ttir.cumsum"(%s) <{{dim = 1 : i64}}> : ({T}) -> {T}\n'
                f'    %m = "ttir.softmax"(%e) <{{dimension = 1 : si32}}> : ({T}) -> {T}',
            ).replace("ttir.yield %e", "ttir.yield %m"),
            "a program has one reduction, product or movement, not 'ttir.matmul' and ",
        ),
        (
            MERGED.replace("(d0, d1) -> (d1)", "(d0, d1) -> (0)"),
            "do not match its region",
        ),
    ],
)
def test_what_is_no_program_is_refused_at_its_line(text: str, reason: str) -> None:
    message = refusal(text)
    assert reason in message
    place = "%e = " if "pow" in reason else "%0 = ttir.generic"
    assert message.startswith(f"in.mlir:{text[: text.index(place)].count(chr(10)) + 1}:")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MERGED.replace('"ttir.exp"(%s)', '"ttir.exp"(%out)'), "reads what it is to write"),
        (MERGED.replace(f"ttir.yield %e : {T}", ""), "does not yield its results"),
        (MERGED.replace(f"ttir.yield %e : {T}", "ttir.yield"), "does not yield its results"),
        (
            MERGED.replace('"ttir.exp"(%s)', '"arith.addf"(%s, %s)').replace(
                f"({T}) -> {T}\n    ttir.yield", f"({T}, {T}) -> {T}\n    ttir.yield"
            ),
            "its region holds 'arith.addf'",
        ),
    ],
)
def test_the_conversion_alone_refuses_regions_at_their_line(text: str, reason: str) -> None:
    source = Source("in.mlir", text)
    module = parse_module(source)
    with pytest.raises(CompileError, match=reason) as caught:
        PassRunner(load_dialects()).run(module, passes_of(step("convert-ttir-to-ttmetal")))
    line = text[: text.index("%0 = ttir.generic")].count("\n") + 1
    assert caught.value.render(source).startswith(f"in.mlir:{line}:")


def test_grouping_alone_refuses_grids_that_the_chip_has_not() -> None:
    with pytest.raises(CompileError, match="its grid is <9x9>, that of the chip <8x8>"):
        grouped(MERGED.replace("grid<8x8>", "grid<9x9>"))


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("text", [CHAIN, SPLIT, SINGLE, MERGED])
def test_generics_compute_what_their_ops_do(text: str, target: str) -> None:
    source = Source("in.mlir", text)
    compiled = compile_module(source, CompileOptions("m", target=target))
    inputs = tuple(
        np.random.default_rng(0).standard_normal(shape).astype(ml_dtypes.bfloat16)
        for shape in ((64, 96), (96,))
    )
    checked = Checked(
        compiled, tuple(run_in_numpy(source, compiled, lambda _name, _function: inputs))
    )
    for run in checked.runs:
        assert checked.reasons(run) == []


@pytest.mark.slow
def test_edited_grouping_runs(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    assert cpu_backend
    for name, text in {"grouped": grouped(CHAIN), "split": SPLIT, "merged": MERGED}.items():
        source = tmp_path / f"{name}.mlir"
        source.write_text(text, "utf-8")
        arguments = [str(source), "-o", str(tmp_path / name), "--target", "ttmetal", "--check"]
        assert main(arguments) == 0


ALONE = """
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %out = "ttir.empty"() : () -> tensor<4x4xf32>
  %y = ttir.generic {grid = #ttcore.grid<1x1>, indexing_maps = [#map, #map],
      iterator_types = [#parallel, #parallel]}
      ins(INPUT : tensor<4x4xf32>) outs(%out : tensor<4x4xf32>) {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %0 = OP -> tensor<4x4xf32>
    ttir.yield %0 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize(
    ("op", "given"),
    [
        pytest.param('"ttir.empty"() : ()', "%x", id="an op that has no program"),
        pytest.param('"ttir.exp"(%a) : (tensor<4x4xf32>)', "%out", id="what it is yet to write"),
    ],
)
def test_odd_generics_compile(op: str, given: str) -> None:
    source = Source("in.mlir", ALONE.replace("OP", op).replace("INPUT", given))
    compiled = compile_module(source, CompileOptions("m", target="ttmetal"))
    assert [function.name for function in compiled.description.functions] == ["f"]


def test_what_nothing_reads_is_no_program() -> None:
    """The matrix engine turns the right operand itself, and what was made of it is not read."""
    types = ("tensor<50x40xbf16>", "tensor<70x50xbf16>")
    words = "<{transpose_a = true, transpose_b = true}>"
    text = (
        f"func.func @f(%a: {types[0]}, %b: {types[1]}) -> tensor<40x70xbf16> {{"
        f'%0 = "ttir.matmul"(%a, %b) {words} : ({", ".join(types)}) -> tensor<40x70xbf16> '
        "return %0 : tensor<40x70xbf16> }"
    )
    first, second = generics_of(grouped(text))
    assert [len(each.outputs) for each in (first, second)] == [1, 1]


@pytest.mark.parametrize(
    ("loops", "row", "axis", "size", "names"),
    [
        ("#parallel, #reduction", "d0", 1, 64, ["exp_sum", "reshape"]),
        ("#reduction, #parallel", "d1", 0, 96, ["exp_sum"]),
    ],
)
def test_a_generic_may_reduce_to_one_dimension(
    loops: str, row: str, axis: int, size: int, names: list[str]
) -> None:
    """The tiles of a row are others than those of a column: these are put together after it."""
    given = f"tensor<{size}xbf16>"
    body = f"""    %e = "ttir.exp"(%b0) : ({T}) -> {T}
    %s = "ttir.sum"(%e) <{{dim_arg = [{axis} : i32], keep_dim = false}}> : ({T}) -> {given}
    ttir.yield %s : {given}"""
    maps = f"#map, affine_map<(d0, d1) -> ({row})>"
    reduced = generic(given, f"%x: {T}", maps, body, types=loops)
    text = function(f"%0 = {reduced}", given, "%0", f"%x: {T}")
    assert [program.name for program in programs(text)] == names
    first = grouped(text)
    assert grouped(first) == first
    assert [program.name for program in programs(first)] == names
    assert "do not match its region" in refusal(text.replace(f"({row})>", "(0)>"))
