"""Device programs as the introduction of 2024 prints them become C++."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compat.ttmetal_programs import lift_programs
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import module_text
from ttcodegen.translation import ttkernel_to_cpp

CB = ", ".join(f"%{n}: !ttkernel.cb<0, {i}, memref<64x128xf32, #l1_>>" for i, n in enumerate("abc"))
TYPES = ", ".join(f"!ttkernel.cb<0, {i}, memref<64x128xf32, #l1_>>" for i in range(3))
PROGRAM = f"""
#l1_ = #tt.memory_space<l1>
#system = #tt.memory_space<system>
#host = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #system>>
#core = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #l1_>>
func.func @forward(%x: tensor<64x128xf32, #host>) -> tensor<64x128xf32, #host> {{
  %0 = "ttmetal.alloc"() <{{address = 262144 : i64, memory_space = #l1_, size = 32768 : i64}}> : () -> tensor<64x128xf32, #core>
  %1 = "ttmetal.host_write"(%x, %0) : (tensor<64x128xf32, #host>, tensor<64x128xf32, #core>) -> tensor<64x128xf32, #core>
  %2 = "ttmetal.alloc"() <{{address = 294912 : i64, memory_space = #l1_, size = 32768 : i64}}> : () -> tensor<64x128xf32, #core>
  %3 = "ttmetal.dispatch"(%1, %1, %2) <{{core_ranges = [#ttmetal.core_range<0x0, 1x1>, #ttmetal.core_range<0x0, 1x1>], operandSegmentSizes = array<i32: 2, 1>, operand_cb_port_mapping = [0, 1, 2], threadTypes = [#ttkernel.thread<noc0>, #ttkernel.thread<tensix>]}}> ({{
  ^bb0({CB}):
    "ttkernel.cb_push_back"(%a) : (!ttkernel.cb<0, 0, memref<64x128xf32, #l1_>>) -> ()
    "ttkernel.return"() : () -> ()
  }}, {{
  ^bb0({CB}):
    "ttkernel.builtin"(%a, %b, %c) <{{kind = @eltwise, op = @mulitply}}> : ({TYPES}) -> ()
    "ttkernel.return"() : () -> ()
  }}) : (tensor<64x128xf32, #core>, tensor<64x128xf32, #core>, tensor<64x128xf32, #core>) -> tensor<64x128xf32, #core>
  "ttmetal.dealloc"(%0) : (tensor<64x128xf32, #core>) -> ()
  %4 = "ttmetal.alloc"() <{{address = 0 : i64, memory_space = #system, size = 32768 : i64}}> : () -> tensor<64x128xf32, #host>
  %5 = "ttmetal.host_read"(%3, %4) : (tensor<64x128xf32, #core>, tensor<64x128xf32, #host>) -> tensor<64x128xf32, #host>
  return %5 : tensor<64x128xf32, #host>
}}
"""  # noqa: E501


def test_a_program_is_what_its_builtin_computes() -> None:
    module = parse_module(Source("in.mlir", PROGRAM))
    assert lift_programs(module)
    text = module_text(module)
    assert '"ttir.multiply"(%x, %x)' in text
    assert "ttmetal" not in text


def test_its_kernels_become_cpp() -> None:
    made = ttkernel_to_cpp(Source("in.mlir", PROGRAM))
    assert "compute_multiply.cpp" in made.files
    assert "mul_tiles" in str(made.whole) or "mul_binary_tile" in str(made.whole)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_its_project_computes_it(target: str, tmp_path: Path) -> None:
    source = tmp_path / "listing.mlir"
    source.write_text(PROGRAM, "utf-8")
    assert main([str(source), "-o", str(tmp_path / "out"), "--target", target, "--check"]) == 0


def test_a_builtin_that_is_no_op_is_refused() -> None:
    module = parse_module(Source("in.mlir", PROGRAM.replace("mulitply", "frobnicate")))
    with pytest.raises(CompileError, match="there is no builtin 'frobnicate'"):
        lift_programs(module)
