"""Marks of arguments of StableHLO: what they do, and the note on a module without any."""

from __future__ import annotations

import re

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Diagnostics, Severity, Source
from ttcodegen.frontends.stablehlo import read

MATRIX = "tensor<64x64xf32>"


def module(second: str = "", body: str = "%w") -> str:
    return f"""
func.func @main(%x: tensor<32x64xf32>, %w: {MATRIX}{second}) -> tensor<32x64xf32> {{
  %0 = stablehlo.custom_call @tt.mark_argument(%w) {{mhlo.frontend_attributes = {{
      ttcore.argument_type = "parameter", ttir.name = "fc.weight"}}}} : ({MATRIX}) -> {MATRIX}
  %1 = stablehlo.transpose {body}, dims = [1, 0] : ({MATRIX}) -> {MATRIX}
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0]
    : (tensor<32x64xf32>, {MATRIX}) -> tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}}"""


UNMARKED = "\n".join(line for line in module().splitlines() if "ttcore" not in line).replace(
    "  %0 = stablehlo.custom_call @tt.mark_argument(%w) {mhlo.frontend_attributes = {", ""
)


def notes(text: str) -> list[str]:
    diagnostics = Diagnostics()
    read(Source("m.mlir", text), diagnostics)
    found = diagnostics.diagnostics
    assert all(each.severity is Severity.NOTE for each in found)
    return [f"{each.message}; {each.remedy}" for each in found]


def test_a_marked_argument_is_a_weight_that_is_prepared_once() -> None:
    files = compile_module(Source("m.mlir", module(body="%0")), CompileOptions("m")).files
    weights = files["src/m.hpp"].partition("Weights {")[2].partition("Outputs")[0]
    assert re.search(r"struct \{\s+ttnn::Tensor weight;\s+\} fc;", weights)
    assert "prepare_forward" in files["src/m.hpp"]


def test_a_module_of_which_no_argument_is_marked_gets_a_note() -> None:
    (note,) = notes(UNMARKED)
    assert "%w" in note
    assert "%x" not in note
    assert "#ttcore.argument_type<parameter>" in note
    assert "@tt.mark_argument" in note


@pytest.mark.parametrize("kind", ["parameter", "input"])
def test_a_module_with_marks_gets_none(kind: str) -> None:
    mark = f" {{ttcore.argument_type = #ttcore.argument_type<{kind}>}}"
    assert notes(UNMARKED.replace(f"%w: {MATRIX}", f"%w: {MATRIX}{mark}")) == []
    assert notes(module(body="%0")) == []


def test_a_module_that_multiplies_by_no_argument_gets_none() -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    assert notes(text) == []


def test_jax_compile_marks_all_arguments() -> None:
    jnp = pytest.importorskip("jax.numpy")
    import ttcodegen.jax

    def forward(params: dict[str, object], x: object) -> object:
        return x @ params["weight"]

    given = {"weight": jnp.ones((64, 64))}
    text = ttcodegen.jax.export(forward, jnp.ones((32, 64)), params=given)
    assert "#ttcore.argument_type<parameter>" in text
    assert "#ttcore.argument_type<input>" in text
    assert notes(text) == []
    unmarked = ttcodegen.jax.export(lambda x, w: x @ w, jnp.ones((32, 64)), jnp.ones((64, 64)))
    assert notes(unmarked) == []
