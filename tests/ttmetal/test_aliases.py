"""Circular buffers that lie in the shards of tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.test_memory import lowered, programs
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.ttmetal.device_module import functions_of
from ttcodegen.dialects.ttmetal.programs import CircularBuffer, Program
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.cpu_backend import CPUBackend

MAP, PARALLEL = "affine_map<(d0, d1) -> (d0, d1)>", "#ttcore.iterator_type<parallel>"
T = "tensor<256x1024xf32>"
"""Of which each of 8 x 8 cores has four tiles of a row."""


def _generic(op: str, *inputs: str, mapping: str = "") -> str:
    """A generic of one op."""
    maps = ", ".join([MAP] * (len(inputs) + 1))
    types = ", ".join([T] * len(inputs))
    names = [f"%b{place}" for place in range(len(inputs))]
    arguments = ", ".join(f"{name}: {T}" for name in (*names, "%out"))
    return f"""ttir.generic {{grid = #ttcore.grid<8x8>, indexing_maps = [{maps}],
      iterator_types = [{PARALLEL}, {PARALLEL}]{mapping}}}
      ins({", ".join(inputs)} : {types}) outs(%empty : {T}) {{
  ^bb0({arguments}):
    %made = "ttir.{op}"({", ".join(names)}) : ({types}) -> {T}
    ttir.yield %made : {T}
  }} : {T}"""


def _sum(name: str, *, stream: bool = False, mapping: str = "") -> str:
    """A sum of what a program before left in L1, and of what is in DRAM."""
    layout = f'%kept = "ttir.stream_layout"(%half, %empty) : ({T}, {T}) -> {T}' if stream else ""
    operand = "%kept" if stream else "%half"
    return f"""func.func @{name}(%x: {T}, %other: {T}) -> {T} {{
  %empty = ttir.empty() : {T}
  %half = {_generic("exp", "%x")}
  {layout}
  %sum = {_generic("add", operand, "%other", mapping=mapping)}
  return %sum : {T}
}}
"""


ROWS = tensor((200, 320), "bf16")
SUMS = tensor((200, 1), "bf16")
OPERANDS = [tensor((200, 256), "bf16"), tensor((256, 320), "bf16")]
CHAIN = function(
    "chain",
    OPERANDS,
    [
        call("matmul", ["%a0", "%a1"], OPERANDS, ROWS),
        call("cumsum", ["%0"], [ROWS], ROWS, dim="0 : i64"),
        call("sum", ["%1"], [ROWS], SUMS, dim_arg="[1 : i32]", keep_dim="true"),
    ],
)
"""A reduction of rows of which a core has several tiles for each unit of its work."""


TOKENS, CACHES = tensor((32, 2, 1, 64), "bf16"), tensor((32, 2, 96, 64), "bf16")
ATTENTION = function(
    "attention",
    [TOKENS, CACHES, CACHES],
    [
        call("exp", ["%a0"], [TOKENS], TOKENS),
        call("sin", ["%a1"], [CACHES], CACHES),
        call("cos", ["%a2"], [CACHES], CACHES),
        call("scaled_dot_product_attention", ["%0", "%1", "%2"], [TOKENS, CACHES, CACHES], TOKENS,
             is_causal="false", operandSegmentSizes="array<i32: 1, 1, 1, 0, 0>"),
    ],
)  # fmt: skip
"""An attention of which each core has the queries, keys and values of a head."""


TWO = f"""func.func @two(%x: {T}, %other: {T}) -> ({T}, {T}) {{
  %empty = ttir.empty() : {T}
  %half = "ttir.exp"(%x) : ({T}) -> {T}
  %sign = "ttir.sign"(%half) : ({T}) -> {T}
  %sum = {_generic("add", "%half", "%other")}
  return %sign, %sum : {T}, {T}
}}
"""
"""A program of which one result stays in L1 and the other goes to DRAM."""


def _aliases(program: Program) -> list[CircularBuffer]:
    return [buffer for buffer in program.circular_buffers if buffer.is_alias]


def test_a_reader_hands_on_what_its_core_has() -> None:
    module = lowered(_sum("kept"))
    exp, add = programs(module)
    [result] = _aliases(exp)
    assert (result.operand, result.pages) == (1, 4)
    [buffer] = _aliases(add)
    assert (buffer.operand, buffer.pages, buffer.page_size) == (0, 4, 4096)
    assert add.l1_bytes == 2 * 2 * 4096
    [reader] = [kernel for kernel in add.kernels if kernel.name.startswith("read_add")]
    assert reader.accessors == (1,)
    assert [argument.name for argument in reader.arguments][1:] == ["first", "count"]
    [function] = [f for f in functions_of(module) if f.sym_name.data == reader.function]
    read = [op for op in function.walk() if op.name == "ttkernel.noc_async_read_page"]
    assert len(read) == 1
    size = 256 * 1024 * 4
    assert (add.costs.own_l1_bytes, add.costs.noc_bytes) == (0, 2 * size)


def test_a_writer_leaves_what_its_core_keeps() -> None:
    module = lowered(_sum("kept"))
    exp, _ = programs(module)
    [writer] = [kernel for kernel in exp.kernels if kernel.name == "write_exp"]
    assert (writer.accessors, [each.name for each in writer.arguments]) == ((), ["count"])
    [function] = [f for f in functions_of(module) if f.sym_name.data == writer.function]
    assert [op.name for op in function.walk() if op.name.startswith("ttkernel.cb_")] == [
        "ttkernel.cb_wait_front"
    ]
    size = 256 * 1024 * 4
    assert (exp.costs.own_l1_bytes, exp.costs.noc_bytes) == (0, size)


def test_a_writer_waits_last_for_what_stays() -> None:
    """The compute kernel packs tiles of both results in turn, and those of the other have room for
    a few only."""
    module = lowered(TWO)
    first, _ = programs(module)
    assert [buffer.name for buffer in _aliases(first)] == ["half"]
    [writer] = [kernel for kernel in first.kernels if kernel.name.startswith("write")]
    [function] = [f for f in functions_of(module) if f.sym_name.data == writer.function]
    waits = [op.operands[0].name_hint for op in function.walk() if "cb_wait_front" in op.name]
    assert waits == ["cb_sign", "cb_half"]


def test_heads_are_where_they_are_attended_to() -> None:
    files = compile_module(Source("m.mlir", ATTENTION), CompileOptions("m", target="ttmetal")).files
    [reader] = [text for path, text in files.items() if path.startswith("kernels/read_scaled")]
    assert "noc_async_read_page" not in reader
    assert reader.count("cb_push_back") == 3, "queries, keys and values"


def test_other_grids_are_refused() -> None:
    """The shards are where they are."""
    _, add = programs(lowered(_sum("kept")))
    messages = [rule.message for rule in add.tuning.rules]
    assert any(message.startswith("grid_columns is 8: ") for message in messages)
    assert any(message.startswith("grid_rows is 8: ") for message in messages)


@pytest.mark.parametrize(
    "text",
    [
        _sum("streamed", stream=True),
        _sum("mapped", mapping=", operand_cb_mapping = array<i64: 0, -1, -1>"),
    ],
)
def test_what_is_streamed_is_read(text: str) -> None:
    assert not _aliases(programs(lowered(text))[1])


def test_what_is_streamed_is_written() -> None:
    mapping = ", operand_cb_mapping = array<i64: -1, 0>"
    exp = _generic("exp", "%x")
    text = _sum("kept").replace(exp, _generic("exp", "%x", mapping=mapping))
    exp, add = programs(lowered(text))
    assert not _aliases(exp)
    assert _aliases(add)


def test_what_has_no_circular_buffer_of_its_own_may_lie_in_shards() -> None:
    text = _sum("mapped", mapping=", operand_cb_mapping = array<i64: -1, 0, -1>")
    assert _aliases(programs(lowered(text))[1])


def test_a_reader_without_anything_to_read() -> None:
    *_, total = programs(lowered(CHAIN))
    [buffer] = _aliases(total)
    assert buffer.pages == 10
    [reader] = [kernel for kernel in total.kernels if kernel.name.startswith("read")]
    assert (reader.accessors, [argument.name for argument in reader.arguments]) == ((), ["count"])


@pytest.mark.parametrize(
    ("operand", "reason"), [(7, "but there are 3"), (1, "which is not in shards")]
)
def test_an_edited_program_says_where_its_circular_buffers_are(operand: int, reason: str) -> None:
    text = str(lowered(_sum("kept")))
    assert "page_size = 4096, operand = 0" in text
    edited = text.replace("page_size = 4096, operand = 0", f"page_size = 4096, operand = {operand}")
    source = Source("edited.mlir", edited)
    with pytest.raises(CompileError) as caught:
        compile_module(source, CompileOptions("edited", target="ttmetal"))
    assert reason in caught.value.render(source)


@pytest.mark.slow
def test_aliases_hold_what_programs_computed(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    source, out = tmp_path / "aliases.mlir", tmp_path / "out"
    text = _sum("kept") + _sum("streamed", stream=True) + CHAIN + ATTENTION + TWO
    source.write_text(text, "utf-8")
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--trace", "--check"]) == 0
    assert "create_circular_buffer_in" in (out / "src" / "programs.cpp").read_text("utf-8")
