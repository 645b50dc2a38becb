"""Names of what can be tuned: shards in L1 are on cores, those in DRAM in its banks."""

from __future__ import annotations

from itertools import islice

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.naming.modules import sharded_memory_names


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("l1", ["width_sharded_32x64", "width_sharded_32x64_on_12_cores"]),
        ("dram", ["dram_width_sharded_32x64", "dram_width_sharded_32x64_on_12_banks"]),
    ],
)
def test_names_of_sharded_memory(memory: str, expected: list[str]) -> None:
    shards = Shards.by_rows(12, (32, 64), grid_width=12)
    placement = TensorPlacement(
        (32, 768), DataType.BFLOAT16, buffer_type=memory, memory_layout="width_sharded",
        shards=shards,
    )  # fmt: skip
    assert list(islice(sharded_memory_names(placement), 2)) == expected


def test_weights_in_banks_are_described_as_such() -> None:
    """A product of one row of tiles, whose weights are best divided among the banks of the DRAM."""
    text = """
func.func @f(%x: tensor<32x2048xbf16>,
    %w: tensor<2048x8192xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<32x8192xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x2048xbf16>, tensor<2048x8192xbf16>)
    -> tensor<32x8192xbf16>
  return %0 : tensor<32x8192xbf16>
}"""
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m", optimize=2))
    tuning = compiled.files["src/tuning.hpp"]
    comments = " ".join(tuning.replace("//", " ").split())
    assert "Tensors divided among 12 banks: layout, memory, banks" in comments


def test_a_program_config_of_several_layers_is_not_named_after_one() -> None:
    """Two matmuls of one shape and two names, which have one configuration."""
    weights = "".join(
        f', %{name}: tensor<1024x1024xbf16> {{ttir.name = "{name}.weight", '
        "ttcore.argument_type = #ttcore.argument_type<parameter>}"
        for name in ("key", "value")
    )
    text = f"""
func.func @f(%x: tensor<32x1024xbf16>{weights}) -> (tensor<32x1024xbf16>, tensor<32x1024xbf16>) {{
  %0 = "ttir.matmul"(%x, %key) : (tensor<32x1024xbf16>, tensor<1024x1024xbf16>)
    -> tensor<32x1024xbf16>
  %1 = "ttir.sin"(%0) : (tensor<32x1024xbf16>) -> tensor<32x1024xbf16>
  %2 = "ttir.matmul"(%1, %value) : (tensor<32x1024xbf16>, tensor<1024x1024xbf16>)
    -> tensor<32x1024xbf16>
  return %0, %2 : tensor<32x1024xbf16>, tensor<32x1024xbf16>
}}"""
    tuning = compile_module(Source("m.mlir", text), CompileOptions("m", optimize=2)).files[
        "src/tuning.hpp"
    ]
    assert "// Program config of 2 calls of matmul with a result of 32 by 1024." in tuning
    assert " matmul_program{" in tuning
    assert "key_program" not in tuning
