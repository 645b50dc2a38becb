"""Links of a mesh that a project configures."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.description import Fabric
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.sources import render_sources

FOUR_IN_A_ROW = """
#devices = #ttcore.shard_type<devices>
#divided = #ttcore.shard_direction<full_to_shard>
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x4>]>} {
  func.func @forward(%x: tensor<64x128xbf16>) -> tensor<64x32xbf16> {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 4>,
      shard_type = #devices, shard_direction = #divided}>
      : (tensor<64x128xbf16>) -> tensor<64x32xbf16>
    %1 = "ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 1 : ui32}>
      : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
    return %1 : tensor<64x32xbf16>
  }
}
"""
ONE_CHIP = """
func.func @forward(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  return %x : tensor<32x32xbf16>
}
"""


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("fabric", ["linear", "ring"])
def test_the_module_names_its_fabric_unless_it_is_linear(target: str, fabric: Fabric) -> None:
    options = CompileOptions("m", target, fabric=fabric)
    compiled = compile_module(Source("m.mlir", FOUR_IN_A_ROW), options)
    text = render_sources(compiled.description)["src/entry_points.cpp"]
    assert ("support::Fabric::ring" in text) == (fabric == "ring")
    assert "support::Fabric::linear" not in text


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (ONE_CHIP, CompileOptions("m", fabric="ring"), "a ring fabric needs several devices"),
        (FOUR_IN_A_ROW, CompileOptions("m", fabric="ring", kind="sources"), "opens no devices"),
        (FOUR_IN_A_ROW, CompileOptions("m", "ttmetal", fabric="torus"), "not over a torus"),
    ],
)
def test_a_fabric_that_nothing_would_configure_is_refused(
    text: str, options: CompileOptions, message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        compile_module(Source("m.mlir", text), options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fabric", "is_closed"), [("linear", False), ("ring", True), ("torus", True)]
)
def test_collectives_use_the_links_of_the_fabric(
    tmp_path: Path, fabric: str, is_closed: bool
) -> None:
    module, out, links = tmp_path / "m.mlir", tmp_path / "out", tmp_path / "links.json"
    module.write_text(FOUR_IN_A_ROW)
    assert main([str(module), "-o", str(out), "--fabric", fabric, "--check"]) == 0
    environment = {**os.environ, "TTCODEGEN_FABRIC_REPORT": str(links)}
    subprocess.run([out / "build" / "m_main"], check=True, capture_output=True, env=environment)
    used = {(link["from"], link["to"]) for link in json.loads(links.read_text())["links"]}
    assert {(0, 1), (1, 2), (2, 3)} <= used
    assert ({(3, 0), (0, 3)} <= used) == is_closed
