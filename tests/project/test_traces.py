"""Projects whose calls the device replays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.sources import render_project_files, render_sources
from ttcodegen.runtime.c_api import DeviceTensor
from ttcodegen.runtime.library import load

EXAMPLES = Path(__file__).parents[2] / "examples"
PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
LAYER = f"""
func.func @layer(%x: tensor<64x32xf32>, %w: tensor<32x32xf32> {PARAMETER}) -> tensor<64x32xf32> {{
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %1 = "ttir.softmax"(%0) <{{dimension = 1 : si32}}> : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}}"""
CACHE = """
func.func @cache(%c: tensor<1x2x64x32xf32>, %x: tensor<1x2x1x32xf32>, %i: tensor<1xi32>)
    -> tensor<1x2x64x32xf32> {
  %0 = "ttir.update_cache"(%c, %x, %i) <{batch_offset = 0 : i32}>
    : (tensor<1x2x64x32xf32>, tensor<1x2x1x32xf32>, tensor<1xi32>) -> tensor<1x2x64x32xf32>
  return %0 : tensor<1x2x64x32xf32>
}"""
ON_HOST = """
func.func @gathered(%x: tensor<64x32xf32>) -> tensor<64x16xf32> {
  %0 = "ttir.mesh_shard"(%x) <{shard_type = #ttcore.shard_type<devices>,
    shard_dims = array<i64: -1, 1>, shard_direction = #ttcore.shard_direction<full_to_shard>,
    shard_shape = array<i64: 1, 2>}>
    : (tensor<64x32xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}"""
ON_MESH_CPU = ON_HOST.replace(
    "return %0",
    """%1 = "ttir.tanh"(%0) {ttir.should_hoist}
    : (tensor<64x16xf32>) -> tensor<64x16xf32>
  return %1""",
)
GATHERED = ON_HOST.replace("tensor<64x16xf32> {", "tensor<64x32xf32> {").replace(
    "return %0 : tensor<64x16xf32>",
    """%1 = "ttir.exp"(%0) : (tensor<64x16xf32>) -> tensor<64x16xf32>
  %2 = "ttir.all_gather"(%1) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}>
    : (tensor<64x16xf32>) -> tensor<64x32xf32>
  return %2 : tensor<64x32xf32>""",
)
MESH = 'module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {'


def files_of(text: str, target: str, *, trace: bool) -> Mapping[str, str]:
    """The C++ of a project, and what goes with it."""
    options = CompileOptions("traced", target, trace=trace)
    compiled = compile_module(Source("traced.mlir", text), options)
    module = compiled.description
    sources = {**compiled.files, **render_sources(module)}
    return {**sources, **render_project_files(module, sources)}


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_a_traced_project_has_what_replays_it(target: str) -> None:
    traced = files_of(LAYER, target, trace=True)
    plain = files_of(LAYER, target, trace=False)
    added = {"support/trace.hpp", "support/trace.cpp"}
    added |= {"support/traced_calls.hpp", "support/traced_calls.cpp"}
    added |= {"support/device_writes.hpp", "support/device_writes.cpp"}
    assert set(traced) - set(plain) == added
    assert "constexpr std::size_t trace_region_bytes = 0;" in traced["src/tuning.hpp"]
    assert "support::traced_calls" in traced["src/entry_points.cpp"]
    assert "support/trace.cpp" in traced["CMakeLists.txt"]
    assert not [path for path, text in plain.items() if "support/traced_calls.hpp" in text]
    # The functions are the same: what is captured is what runs otherwise.
    assert traced["src/traced.cpp"] == plain["src/traced.cpp"]


def test_a_function_without_decisions_still_says_how_large_traces_may_be() -> None:
    relu = """func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
      %0 = "ttir.relu"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
      return %0 : tensor<32x32xf32>
    }"""
    traced = files_of(relu, "ttnn", trace=True)
    assert "trace_region_bytes" in traced["src/tuning.hpp"]
    assert "tuning.hpp" not in traced["src/traced.cpp"]


def test_positions_of_caches_stay_on_the_device() -> None:
    assert "read_index" in files_of(CACHE, "ttnn", trace=False)["src/traced.cpp"]
    assert "read_index" not in files_of(CACHE, "ttnn", trace=True)["src/traced.cpp"]


def test_what_the_host_does_between_calls_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        files_of(MESH + ON_HOST + "}", "ttnn", trace=True)
    text = caught.value.render()
    assert "the input 'x', which is on the host" in text
    assert (
        "'ttnn.distribute_tensor' cannot be part of a trace: one of its operands is on the host"
        in text
    )
    assert "without --trace" in text


def test_what_chips_exchange_over_their_links_is_captured() -> None:
    files = files_of(MESH + ON_HOST + "}", "ttmetal", trace=True)
    assert "exchange(" in files["src/traced.cpp"]
    assert "support/trace.cpp" in files
    hoisted = MESH + ON_MESH_CPU + "}"
    with pytest.raises(CompileError, match="its result goes to the host"):
        files_of(hoisted, "ttmetal", trace=True)


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_convolutions_are_captured(target: str) -> None:
    cnn = (EXAMPLES / "cnn" / "cnn.mlir").read_text("utf-8")
    assert "support/trace.cpp" in files_of(cnn, target, trace=True)


def test_weights_that_the_library_prepares_in_each_call_are_refused() -> None:
    cnn = (EXAMPLES / "cnn" / "cnn.mlir").read_text("utf-8")
    given = cnn.replace("argument_type<parameter>", "argument_type<input>")
    assert given != cnn
    with pytest.raises(CompileError, match="cannot be part of a trace"):
        files_of(given, "ttnn", trace=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "name"),
    [
        *((target, name) for target in ("ttnn", "ttmetal") for name in ("layer", "cache")),
        ("ttmetal", "gathered"),
    ],
)
def test_replays_compute_what_calls_compute(target: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.mlir"
    texts = {"layer": LAYER, "cache": CACHE, "gathered": MESH + GATHERED + "}"}
    source.write_text(texts[name], encoding="utf-8")
    for trace in ((), ("--trace",)):
        out = str(tmp_path / ("traced" if trace else "plain"))
        command = [str(source), "-o", out, "--target", target, "--build", "--kind", "so", *trace]
        assert main(command) == 0
    random = np.random.default_rng(1)
    calls = [_arguments(name, call, random) for call in range(4)]
    with load(tmp_path / "plain", seed=5) as plain, load(tmp_path / "traced", seed=5) as traced:
        expected = [plain[name](*arguments) for arguments in calls]
        # All are kept: a call must not change what an earlier one returned.
        found = [traced[name](*arguments) for arguments in calls]
    assert not np.array_equal(expected[1], expected[2])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _arguments(name: str, call: int, random: np.random.Generator) -> list[np.ndarray]:
    if name in ("layer", "gathered"):
        return [random.standard_normal((64, 32)).astype(np.float32)]
    cache = random.standard_normal((1, 2, 64, 32)).astype(np.float32)
    entry = random.standard_normal((1, 2, 1, 32)).astype(np.float32)
    return [cache, entry, np.array([7 * call], np.int32)]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_new_weights_and_tensors_of_callers_end_a_trace(target: str, tmp_path: Path) -> None:
    source = tmp_path / "layer.mlir"
    source.write_text(LAYER, encoding="utf-8")
    out = tmp_path / "out"
    command = [str(source), "-o", str(out), "--target", target, "--build", "--kind", "so"]
    assert main([*command, "--trace"]) == 0
    x = np.random.default_rng(2).standard_normal((64, 32)).astype(np.float32)
    weight = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    with load(out) as model:
        for factor in (1.0, 2.0):
            model.set_weight("w", weight * np.float32(factor))
            first, *others = [model.layer(x) for _ in range(4)]
            logits = x @ (weight * factor)
            expected = np.exp(logits - logits.max(1, keepdims=True))
            expected /= expected.sum(1, keepdims=True)
            np.testing.assert_allclose(first, expected, atol=2e-2)
            for other in others:
                np.testing.assert_array_equal(other, first)
        # What a caller holds on the device stays as it is while the model is called.
        layer = model["layer"]
        held = layer.to_device(x)
        half = [model.layer(x / 2) for _ in range(3)]
        np.testing.assert_array_equal(half[0], half[2])
        on_device = model["layer"].submit(held)
        assert isinstance(on_device, DeviceTensor)
        model.layer(x / 2)
        np.testing.assert_array_equal(on_device.numpy(), first)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_a_traced_project_passes_its_check(target: str, tmp_path: Path) -> None:
    digits = EXAMPLES / "digits" / "digits.mlir"
    command = [str(digits), "-o", str(tmp_path / "out"), "--target", target, "--trace", "--check"]
    assert main(command) == 0
