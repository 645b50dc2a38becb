"""Edits of a layer that normalizes sums: normalizations with residuals, activations put into calls
and taken out of them, and what the cost model says of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.project.edits import tuned_files
from ttcodegen.project.sources import project_files
from ttcodegen.project.tuning.edited_calls import EditedCalls
from ttcodegen.project.tuning.override_entries import entries, overrides_text, unexpressed
from ttcodegen.project.tuning.report import report_lines
from ttcodegen.project.writer import write_project
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

WEIGHT = "ttcore.argument_type = #ttcore.argument_type<parameter>"
LAYER = f"""
func.func @layer(%x: tensor<64x256xbf16> {{ttcore.argument_type = #ttcore.argument_type<input>}},
    %gate_weight: tensor<256x512xbf16> {{{WEIGHT}}},
    %up_weight: tensor<256x512xbf16> {{{WEIGHT}}},
    %down_weight: tensor<512x256xbf16> {{{WEIGHT}}},
    %scale: tensor<256xbf16> {{{WEIGHT}}}) -> tensor<64x256xbf16> {{
  %gate = "ttir.matmul"(%x, %gate_weight) : (tensor<64x256xbf16>, tensor<256x512xbf16>) -> tensor<64x512xbf16>
  %active = "ttir.silu"(%gate) : (tensor<64x512xbf16>) -> tensor<64x512xbf16>
  %up = "ttir.matmul"(%x, %up_weight) : (tensor<64x256xbf16>, tensor<256x512xbf16>) -> tensor<64x512xbf16>
  %product = "ttir.multiply"(%active, %up) : (tensor<64x512xbf16>, tensor<64x512xbf16>) -> tensor<64x512xbf16>
  %down = "ttir.matmul"(%product, %down_weight) : (tensor<64x512xbf16>, tensor<512x256xbf16>) -> tensor<64x256xbf16>
  %sum = "ttir.add"(%down, %x) : (tensor<64x256xbf16>, tensor<64x256xbf16>) -> tensor<64x256xbf16>
  %norm = "ttir.rms_norm"(%sum, %scale) <{{normalized_shape = array<i64: 256>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}}> : (tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<64x256xbf16>
  return %norm : tensor<64x256xbf16>
}}
"""  # noqa: E501
CODE, TUNING = "src/layer.cpp", "src/tuning.hpp"
OTHER = next(name for name in RELEASES if name != DEFAULT_RELEASE)
SILU = "    ttnn::Tensor active = ttnn::silu(last_use(gate));\n"
SUM = "    ttnn::Tensor sum = ttnn::add(last_use(down), last_use(x));\n"
NORM = "ttnn::rms_norm(sum, 1e-5f, weights.scale)"
PROGRAM = (
    "ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig{"
    ".compute_with_storage_grid_size = {8, 8}, .in0_block_w = 8, .out_subblock_h = 1, "
    ".out_subblock_w = 1, .out_block_h = 2, .out_block_w = 1, .per_core_M = 2, .per_core_N = 1, "
    ".fuse_batch = true, .fused_activation = ttnn::operations::unary::UnaryWithParam("
    "ttnn::operations::unary::UnaryOpType::SILU), .mcast_in0 = true, .gather_in0 = false, "
    ".hop_cores = {}, .num_global_cb_receivers = 0, .untilize_out = false}"
)
Pairs = tuple[tuple[str, str], ...]
RESIDUAL: Pairs = (
    (SUM, ""),
    (NORM, "ttnn::rms_norm(last_use(down), 1e-5f, weights.scale, std::nullopt, last_use(x))"),
)
IN_PROGRAM: Pairs = (
    (SILU, ""),
    ("weights.gate_weight)", f"weights.gate_weight, {{.program_config = {PROGRAM}}})"),
    ("last_use(active)", "last_use(gate)"),
)
BY_HAND: Pairs = (
    (
        SILU,
        "    ttnn::Tensor opened = ttnn::sigmoid(gate);\n"
        "    ttnn::Tensor active = ttnn::multiply(last_use(gate), last_use(opened));\n",
    ),
)
CHANGES: Mapping[str, tuple[Callable[[str], str], Mapping[str, Any]]] = {
    "width": (lambda text: text.replace("512", "640").replace("4096", "8192"), {}),
    "activation": (lambda text: text.replace("ttir.silu", "ttir.gelu"), {}),
    "weight": (lambda text: text.replace("gate_weight", "w1").replace("%scale", "%g"), {}),
    "value": (lambda text: text.replace("%sum", "%total").replace("%gate =", "%opening =")
              .replace("(%gate)", "(%opening)"), {}),
    "batch": (lambda text: text.replace("64x", "128x").replace("32x", "64x"), {}),
    "dtype": (lambda text: text.replace("bf16", "f32"), {}),
    "level 1": (lambda text: text, {"optimize": 1}),
    "release": (lambda text: text, {"release": OTHER}),
}  # fmt: skip


@cache
def generated(
    change: str = "", optimize: int = 0
) -> tuple[CompiledModule, Mapping[str, str | bytes]]:
    make, options = CHANGES.get(change, (lambda text: text, {}))
    given = {"optimize": optimize, **options}
    compiled = compile_module(Source("layer.mlir", make(LAYER)), CompileOptions("layer", **given))
    return compiled, project_files(compiled, formatted=True)


def edited(out: Path, pairs: Pairs, optimize: int = 0) -> None:
    compiled, files = generated(optimize=optimize)
    write_project(compiled.description, out, dict(files))
    for path in (CODE, TUNING):
        text = str(files[path])
        for old, new in pairs:
            text = text.replace(old, new)
        (out / path).write_text(text)
    tuned = tuned_files(out)
    assert tuned
    assert all(file.rest == file.before for file in tuned)


def regenerated(out: Path, change: str = "", optimize: int = 0) -> tuple[str, str]:
    """C++ after a change, and what is said of decisions that are lost."""
    compiled, files = generated(change, optimize)
    conflicts = write_project(compiled.description, out, dict(files))
    said = " ".join(each.reason for each in conflicts)
    return " ".join((out / CODE).read_text().split()), said


def test_a_residual_of_a_norm_is_a_decision(tmp_path: Path) -> None:
    out = tmp_path / "out"
    edited(out, RESIDUAL)
    (line,) = report_lines(tuned_files(out))
    assert line.startswith("sum, norm: ttnn::rms_norm instead of ttnn::add, ttnn::rms_norm")
    assert entries(tuned_files(out)) == {
        "layer": {
            "norm": {
                "calls": [
                    {
                        "op": "rms_norm",
                        "operands": ["sum:0", "norm:1", None, "sum:1"],
                        "attributes": {"epsilon": 1e-05},
                    }
                ]
            }
        }
    }


@pytest.mark.parametrize("change", CHANGES)
def test_a_residual_of_a_norm_survives(change: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    edited(out, RESIDUAL)
    code, said = regenerated(out, change)
    assert said == ""
    assert "ttnn::add(" not in code
    assert code.count("std::nullopt, last_use(x)") == 1 or "nullopt, x" in code


@pytest.mark.parametrize("level", [1, 2])
def test_a_residual_of_a_norm_is_an_override(level: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    edited(out, RESIDUAL)
    options = CompileOptions("layer", optimize=level, overrides=overrides_text(tuned_files(out)))
    code = compile_module(Source("layer.mlir", LAYER), options).files[CODE]
    assert "ttnn::add(" not in code
    assert "ttnn::rms_norm(" in code


def test_a_sum_that_is_read_elsewhere_as_well_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    edited(out, RESIDUAL)
    kind = "tensor<64x256xbf16>"
    text = LAYER.replace(f"return %norm : {kind}", f"return %norm, %sum : {kind}, {kind}")
    text = text.replace(f") -> {kind} {{", f") -> ({kind}, {kind}) {{")
    compiled = compile_module(Source("layer.mlir", text), CompileOptions("layer"))
    (conflict,) = write_project(compiled.description, out, project_files(compiled, formatted=True))
    assert "'sum' is read by" in conflict.reason
    assert "ttnn::add(" in (out / CODE).read_text()


@pytest.mark.parametrize("change", CHANGES)
def test_an_activation_in_a_program_configuration(change: str, tmp_path: Path) -> None:
    """It is kept with the configuration, or neither is: the program is the same in any case."""
    out = tmp_path / "out"
    edited(out, IN_PROGRAM)
    (found,) = entries(tuned_files(out))["layer"].items()
    assert found[0] == "active"
    assert "op_type = silu" in found[1]["program_config"]
    assert unexpressed(tuned_files(out)) == []
    code, said = regenerated(out, change)
    applied = "UnaryOpType::SILU" in code or '.activation = "silu"' in code
    called = "ttnn::silu(" in code
    if change == "activation":
        assert "the op 'active' (silu) is gone; 'gelu' is there now" in said
        assert not applied
        assert not called
    else:
        assert applied is not called
        assert bool(said) is called


WIDE = LAYER.replace("64x", "32x").replace("256", "1024").replace("512", "4096")
"""The layer at sizes for which the optimizer gives the first product a configuration."""
APPLIED = re.compile(r", \.activation = \"silu\"|(?<=fused_activation =)\s*[\w:]+\(\s*[\w:]+SILU\)")


@pytest.mark.parametrize("text", [LAYER, WIDE], ids=["option", "program"])
@pytest.mark.parametrize("change", ["", *CHANGES])
def test_an_activation_that_is_taken_out_of_a_call(change: str, text: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = compiled_at_1(text)
    write_project(made.description, out, project_files(made, formatted=True))
    code, tuning = (out / CODE).read_text(), (out / TUNING).read_text()
    (statement,) = re.findall(r"ttnn::Tensor active =[^;]*;", code)
    plain, found = APPLIED.subn("", statement)
    code = code.replace(statement, f"{plain}\n    active = ttnn::silu(active);")
    tuning, others = APPLIED.subn(" {}", tuning)
    assert found + others == 1
    (out / CODE).write_text(code)
    (out / TUNING).write_text(tuning)
    tuned = tuned_files(out)
    assert all(file.rest == file.before for file in tuned)
    (line,) = report_lines(tuned)
    assert "silu called by itself" in line
    (entry,) = entries(tuned)["layer"].values()
    assert entry == {"fuse": False}
    if not change:
        fresh = compiled_at_1(text, overrides=overrides_text(tuned))
        assert "ttnn::silu(" in fresh.files[CODE]
        return
    make, options = CHANGES[change]
    now = compiled_at_1(make(text), **options)
    conflicts = write_project(now.description, out, project_files(now, formatted=True))
    said = " ".join(each.reason for each in conflicts)
    code = " ".join((out / CODE).read_text().split())
    if change == "activation":
        assert "'active' applies gelu now" in said
    else:
        assert said == ""
        assert code.count("ttnn::silu(") == 1
        assert not APPLIED.search(code)


def compiled_at_1(text: str, **options: Any) -> CompiledModule:
    return compile_module(
        Source("layer.mlir", text), CompileOptions("layer", **{"optimize": 1, **options})
    )


def gains(out: Path) -> dict[str, tuple[float, float]]:
    model = CostModel(default_system("wormhole_b0").chip)
    binary = read_ttnn((out / "model.ttnn").read_bytes())
    found = EditedCalls(binary, tuned_files(out), model.grid).gains(model)
    return {node[1]: (gain.before, gain.now) for node, gain in found.items()}


def test_gains_of_calls_in_place_of_others(tmp_path: Path) -> None:
    """Two calls cost more than one; a norm that adds its operands costs less than both did."""
    edited(tmp_path / "hand", BY_HAND)
    before, now = gains(tmp_path / "hand")["active"]
    assert 0 < before < now
    edited(tmp_path / "residual", RESIDUAL)
    found = gains(tmp_path / "residual")
    assert found["sum"][1] == 0
    assert found["norm"][1] < sum(each[0] for each in found.values())
    assert found["norm"][1] > found["norm"][0]


def test_moved_calls_cost_the_same(tmp_path: Path) -> None:
    up = "    ttnn::Tensor up = call::matmul(x, weights.up_weight);\n"
    gate = "    ttnn::Tensor gate = call::matmul(x, weights.gate_weight);\n"
    out = tmp_path / "out"
    edited(out, ((f"{up}", ""), (gate, f"{up}{gate}")))
    before, now = gains(out)["up"]
    assert before == now > 0


def test_all_refused_entries_are_listed() -> None:
    given: dict[str, Any] = {
        "active": {"calls": [{"op": "tanh", "operands": ["active:0"]}]},
        "up": {"after": "down"},
        "nothing": {"memory": "l1"},
        "norm": {"weights": "bfp_bf8"},
        "product": {"math_fidelity": "lofi"},
        "down": {"sharding": "block_sharded", "grid": [9, 9]},
        "gate": {"memory": "dram"},
    }
    text = json.dumps({"version": 1, "functions": {"layer": given}})
    options = CompileOptions("layer", optimize=1, overrides=text)
    with pytest.raises(CompileError) as caught:
        compile_module(Source("layer.mlir", LAYER), options)
    said = [each.message for each in caught.value.diagnostics]
    assert len(said) == 6
    for op in given.keys() - {"gate"}:
        assert sum(f"'{op}'" in each for each in said) >= 1, op


def test_names_of_calls_in_place_of_others_are_identifiers() -> None:
    calls = [
        {"name": "a.b/c", "op": "sigmoid", "operands": ["active:0"]},
        {"op": "multiply", "operands": ["active:0", "a.b/c"]},
    ]
    text = json.dumps({"version": 1, "functions": {"layer": {"active": {"calls": calls}}}})
    with pytest.raises(CompileError, match=r"has 'name': .a\.b/c."):
        compile_module(Source("layer.mlir", LAYER), CompileOptions("layer", overrides=text))
