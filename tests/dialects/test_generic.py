"""`ttir.generic` and the ops on tiles of its regions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.texts import assert_round_trip, parse, refusal, text_of
from tests.parsing.reading import failure
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.ttir.generic import TILE_OPS, GenericOp
from ttcodegen.foundation.diagnostics import CompileError, Source

ALIASES = """
#l1_ = #tt.memory_space<l1>
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #tt.iterator_type<parallel>
#layout1 = #tt.metal_layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #l1_>>
"""
T = "tensor<64x128xf32, #layout1>"
BUFFER = "tensor<64x128xf32, #tt.buffer<memref<64x128xf32, #l1_>, {}>>"


def test_the_example_of_the_specification_reads_back() -> None:
    accesses = ("alias", "stream", "alias")
    arguments = ", ".join(
        f"%arg{i + 2}: {BUFFER.format(access)}" for i, access in enumerate(accesses)
    )
    module = parse(f"""{ALIASES}
func.func @f(%1: {T}, %2: {T}, %3: {T}, %4: {T}) -> {T} {{
  %5 = "ttir.generic"(%1, %2, %3, %4) <{{
    grid = #tt.grid<1x1>,
    indexing_maps = [#map, #map, #map],
    iterator_types = [#parallel, #parallel],
    operandSegmentSizes = array<i32: 2, 1, 1>,
    operand_cb_mapping = array<i64: -1, 0, -1>
  }}> ({{
  ^bb0({arguments}):
    "ttir.yield"(%arg4) : ({BUFFER.format("alias")}) -> ()
  }}) : ({T}, {T}, {T}, {T}) -> {T}
  return %5 : {T}
}}
""")
    assert_round_trip(module)
    (op,) = [op for op in module.walk() if isinstance(op, GenericOp)]
    assert op.segment_sizes == [2, 1, 1]
    assert [value.name_hint for value in op.bodies[0].blocks[0].args] == ["arg2", "arg3", "arg4"]
    assert "#ttcore.buffer<memref<64x128xf32, #ttcore.memory_space<l1>>, stream>" in text_of(module)


TILE = "!ttcore.tile<32x32, bf16>"
SHARD = f"memref<1x1x2x4x{TILE}, #ttcore.shard<8192x2048, 1>, #ttcore.memory_space<l1>>"
LOCAL = f"memref<2x4x{TILE}, #ttcore.memory_space<l1>>"


def generic(
    body: str,
    maps: str = "#map, #map",
    threads: str = "#ttir.thread<compute>",
    factors: str = "[1, 1]",
    region: str = "%x: {0}, %y: {0}",
) -> str:
    return f"""
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>
func.func @f(%a: {SHARD}, %b: {SHARD}, %t: {TILE}, %s: f32) {{
  ttir.generic {{block_factors = {factors}, grid = #ttcore.grid<1x1>, indexing_maps = [{maps}],
      iterator_types = [#parallel, #parallel], threads = [{threads}]}}
      ins(%a : {SHARD}) outs(%b : {SHARD}) {{
  ^compute({region.format(LOCAL)}):
    {body}
    ttir.yield
  }}
  return
}}
"""


def test_the_form_with_threads_reads_back() -> None:
    body = f'%r = "ttir.tile_add"(%t, %t) : ({TILE}, {TILE}) -> {TILE}'
    module = parse(generic(body))
    assert_round_trip(module)
    text = text_of(module)
    assert "threads = [#ttir.thread<compute>]} ins(%a : memref<" in text


def test_regions_that_are_kernels_are_named_by_their_threads() -> None:
    threads = "#ttir.thread<datamovement, @reader>, #ttir.thread<compute, @add>"
    text = generic("")
    start, end = text.index(" {\n  ^compute"), text.index("\n  return")
    without_body = text[:start] + text[end:]
    assert_round_trip(parse(without_body.replace("#ttir.thread<compute>", threads)))
    assert "has 1 threads, but 0 regions" in refusal(without_body)


@pytest.mark.parametrize("name", sorted(TILE_OPS))
def test_every_op_on_tiles_reads_back(name: str) -> None:
    definition = TILE_OPS[name]
    type_ = LOCAL if definition.is_block else TILE
    value = "%x" if definition.is_block else "%t"
    operands = ", ".join([value] * definition.tiles)
    types = ", ".join([type_] * definition.tiles)
    attributes = ", ".join(f"{a} = 1 : i32" for a in definition.attributes)
    head = f'"ttir.{name}"({operands})' + (f" <{{{attributes}}}>" if attributes else "")
    result = "()" if definition.is_block else TILE
    assert_round_trip(parse(generic(f"{head} : ({types}) -> {result}")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (generic("", maps="#map"), "has 2 inputs and outputs, but 1 indexing maps"),
        (generic("", maps="#map, affine_map<(d0) -> (d0)>"), "an indexing map of 1 dimensions"),
        (generic("", factors="[1]"), "has 2 iterator types, but 1 block factors"),
        (generic("", region="%x: {0}"), "but a region with 1 arguments"),
        (generic("", maps="#map, #parallel"), "is no indexing map"),
        (
            generic(f'%r = "ttir.tile_exp"(%s) : (f32) -> {TILE}'),
            "takes and gives tiles, found f32",
        ),
        (generic(f'%r = "ttir.tile_sub"(%t) : ({TILE}) -> {TILE}'), "has 2 operands, found 1"),
        (
            generic(f'%r = "ttir.tile_bcast"(%t) : ({TILE}) -> {TILE}'),
            "needs the attribute 'bcast_type'",
        ),
    ],
)
def test_malformed_ops_are_refused_at_their_place(text: str, expected: str) -> None:
    message = refusal(text)
    assert expected in message
    assert message.startswith("in.mlir:")


def test_scalars_may_stand_for_a_tile_in_arithmetic() -> None:
    assert_round_trip(parse(generic(f'%r = "ttir.tile_mul"(%t, %s) : ({TILE}, f32) -> {TILE}')))


def test_the_compiler_takes_no_generic_ops() -> None:
    message = failure(generic(""))
    assert "'ttir.generic'" in message
    assert "is not supported here: work on tiles" in message


def test_work_on_tiles_is_refused_with_what_compiles() -> None:
    source = Source.read(str(Path(__file__).parent / "lit" / "generic.mlir"))
    with pytest.raises(CompileError) as caught:
        compile_module(source, CompileOptions("m"))
    text = caught.value.render(source)
    assert "'ttir.generic' is not supported here: work on tiles is not compiled" in text
    assert "a ttir.generic on whole tensors compiles" in text
    assert "did you mean" not in text
