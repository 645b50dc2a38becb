"""Calls of decoding with optional operands, caches that are written in place, and sampling."""

from __future__ import annotations

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source

QUERY = "tensor<1x2x4x32xbf16>"
CACHE = "tensor<2x4x64x32xbf16>"


def cpp(text: str) -> str:
    """The C++ of a module."""
    module = compile_module(Source("m.mlir", text), CompileOptions("m"))
    return "\n".join(module.files.values())


def decoding(extra: dict[str, str], attributes: str = "") -> str:
    """A step of decoding with these operands after queries, keys and values."""
    arguments = "".join(f", %{name}: {type_}" for name, type_ in extra.items())
    names = ", ".join(["%q, %k, %v", *(f"%{name}" for name in extra)])
    types = ", ".join([QUERY, CACHE, CACHE, *extra.values()])
    return f"""
func.func @f(%q: {QUERY}, %k: {CACHE}, %v: {CACHE}{arguments}) -> {QUERY} {{
  %0 = stablehlo.custom_call @tt.scaled_dot_product_attention_decode({names}) {{
    api_version = 0 : i32, mhlo.frontend_attributes = {{{attributes}}}}} : ({types}) -> {QUERY}
  return %0 : {QUERY}
}}
"""


def test_optional_operands_are_told_by_their_types() -> None:
    mask, positions = "tensor<2x1x4x64xbf16>", "tensor<2xi32>"
    text = decoding({"m": mask, "p": positions}, 'is_causal = "False"')
    assert "inputs.m" in cpp(text)
    assert "inputs.p" in cpp(decoding({"p": positions}))


def test_two_operands_of_one_kind_are_refused() -> None:
    positions = "tensor<2xi32>"
    with pytest.raises(CompileError, match="cur_pos_tensor"):
        cpp(decoding({"p": positions, "r": positions}))


def test_a_cache_is_written_by_a_call_without_result() -> None:
    text = f"""
func.func @f(%c: {CACHE} {{ttcore.kv_cache}}, %x: tensor<2x4x32x32xbf16>) -> {CACHE} {{
  stablehlo.custom_call @tt.fill_cache(%c, %x) {{
    has_side_effect = true, mhlo.frontend_attributes = {{batch_offset = "0"}}}}
    : ({CACHE}, tensor<2x4x32x32xbf16>) -> ()
  return %c : {CACHE}
}}
"""
    assert "fill_cache" in cpp(text)


@pytest.mark.parametrize("name", ["fill_cache", "update_cache"])
def test_the_result_of_a_call_is_the_written_cache(name: str) -> None:
    row = "tensor<2x4x32x32xbf16>" if name == "fill_cache" else "tensor<1x4x2x32xbf16>"
    at, index = ("", "") if name == "fill_cache" else (", %i", ", %i: tensor<2xi32>")
    kind = "" if name == "fill_cache" else ", tensor<2xi32>"
    text = f"""
func.func @f(%c: {CACHE}, %x: {row}{index}) -> {CACHE} {{
  %0 = stablehlo.custom_call @tt.{name}(%c, %x{at}) {{
    mhlo.frontend_attributes = {{batch_offset = "0"}}}} : ({CACHE}, {row}{kind}) -> {CACHE}
  return %0 : {CACHE}
}}
"""
    assert name in cpp(text)
    both = text.replace("return %0", f"%1 = stablehlo.add %0, %c : {CACHE}\n  return %1")
    with pytest.raises(CompileError, match="the cache is read after it was written"):
        cpp(both)


def test_tokens_are_sampled() -> None:
    values, users = "tensor<32x64xbf16>", "tensor<32x{}>"
    integers, numbers = users.format("i32"), users.format("bf16")
    text = f"""
func.func @f(%v: {values}, %i: tensor<32x64xi32>, %k: {integers}, %p: {numbers}, %t: {numbers}) -> {integers} {{
  %0 = stablehlo.custom_call @tt.sampling(%v, %i, %k, %p, %t) {{
    mhlo.frontend_attributes = {{seed = "1"}}}}
    : ({values}, tensor<32x64xi32>, {integers}, {numbers}, {numbers}) -> {integers}
  return %0 : {integers}
}}
"""  # noqa: E501 -- MLIR as it is printed
    assert "ttnn::sampling(" in cpp(text)
