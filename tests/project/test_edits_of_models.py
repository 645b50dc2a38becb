"""Twelve edits of a layer that decodes and of a residual network, after ten changes: each is kept
at its op, or named."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.project.tuned_models import decode_layers, residual_network
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.description import ModuleDescription
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.edits import tuned_files
from ttcodegen.project.sources import project_files
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.project.writer import write_project
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

L1 = "ttnn::L1_MEMORY_CONFIG"
LOFI = "ttnn::DeviceComputeKernelConfig{.math_fidelity = MathFidelity::LoFi}"
UNARY = "ttnn::operations::unary::"
NONE = "std::nullopt"
TUNING = "src/tuning.hpp"
OTHER = next(name for name in RELEASES if name != DEFAULT_RELEASE)
Edit = Callable[[str], str]
"""The text of all files with an edit."""


def option(call: str, given: str) -> Edit:
    """An option more of the call of a matmul, found by the end of its operands."""
    return replaced(f"{call})", f"{call}, {{{given}}})")


def replaced(*pairs: str) -> Edit:
    def edit(text: str) -> str:
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return edit


def silu_in_product(text: str) -> str:
    silu = "    ttnn::Tensor l0_active = ttnn::silu(last_use(l0_gate));\n"
    text = replaced(silu, "", "last_use(l0_active)", "last_use(l0_gate)")(text)
    return option("weights.layers[0].gate.weight", '.activation = "silu"')(text)


def relu_in_sum(text: str) -> str:
    relu = "    ttnn::Tensor active = ttnn::relu(sum);\n"
    activated = f"std::array{{{UNARY}EltwiseUnaryWithParam({UNARY}UnaryOpType::RELU)}}"
    text = replaced(relu, "", "return active;", "return sum;")(text)
    text = replaced(
        "(last_use(expand), last_use(input))",
        f"(last_use(expand), last_use(input), {NONE}, {NONE}, {NONE}, {activated})",
    )(text)
    return text


def constant(text: str) -> str:
    end = text.rindex("}  // namespace")
    added = f"// Precise enough.\nconst {LOFI.replace('{', ' fast{')};\n\n"
    return f"{text[:end]}{added}{text[end:]}"


def new_constant(text: str) -> str:
    text = option("weights.layers[0].down.weight", ".compute_kernel_config = tuning::fast")(text)
    return constant(text)


def new_convolution_constant(text: str) -> str:
    found = re.search(r"ttnn::Tensor spatial = .*?;", text, re.DOTALL)
    assert found
    edited = found[0].replace("tuning::convolution_compute", "tuning::fast")
    return constant(text.replace(found[0], edited))


def convolution_of_stem(text: str) -> str:
    found = re.search(r"ttnn::Tensor stem = .*?;", text, re.DOTALL)
    assert found
    return text.replace(
        found[0], found[0].replace("/*dtype=*/std::nullopt", "/*dtype=*/ttnn::DataType::BFLOAT8_B")
    )


DECODE_EDITS: Mapping[str, Edit] = {
    "memory of queries": option("weights.layers[0].query.weight", f".memory_config = {L1}"),
    "data type of up": option("weights.layers[0].up.weight", ".dtype = ttnn::DataType::BFLOAT8_B"),
    "fidelity of down": option("weights.layers[0].down.weight", f".compute_kernel_config = {LOFI}"),
    "silu in gate": silu_in_product,
    "memory of a norm": replaced(
        "weights.layers[0].mlp_norm.weight)",
        f"weights.layers[0].mlp_norm.weight, {NONE}, {NONE}, {L1})",
    ),
    "memory of a residual": replaced(
        "(last_use(x), last_use(l0_o))", f"(last_use(x), last_use(l0_o), {NONE}, {L1})"
    ),
    "memory of attention": replaced(
        "inputs.l0_values, false)",
        f"inputs.l0_values, false, {NONE}, {{}}, {NONE}, {NONE}, {NONE}, {NONE}, {L1})",
    ),
    "data type of a product": replaced(
        "(last_use(l0_active), last_use(l0_up))",
        "(last_use(l0_active), last_use(l0_up), ttnn::DataType::BFLOAT8_B)",
    ),
    "fidelity of all matmuls": replaced(
        "product_compute = std::nullopt", f"product_compute = {LOFI}"
    ),
    "memory of all matmuls": replaced("product_memory = std::nullopt", f"product_memory = {L1}"),
    "data type of all weights": replaced(
        "_weights_type = ttnn::DataType::BFLOAT16", "_weights_type = ttnn::DataType::BFLOAT8_B"
    ),
    "constant of its own": new_constant,
}
CONVOLUTION = ".weights_dtype = ttnn::DataType::BFLOAT16, .shard_layout = {}"
NETWORK_EDITS: Mapping[str, Edit] = {
    "block of all convolutions": replaced(
        CONVOLUTION, f"{CONVOLUTION[: -len(', .shard_layout = {}')]}, .act_block_h_override = 32"
    ),
    "buffers of all convolutions": replaced(
        CONVOLUTION, f"{CONVOLUTION}, .enable_act_double_buffer = true"
    ),
    "data type of all convolution weights": replaced(
        CONVOLUTION, CONVOLUTION.replace("BFLOAT16", "BFLOAT8_B")
    ),
    "fidelity of all convolutions": replaced(
        "convolution_compute = std::nullopt", f"convolution_compute = {LOFI}"
    ),
    "data type of the stem": convolution_of_stem,
    "relu in the sum": relu_in_sum,
    "memory of the sum": replaced(
        "(last_use(expand), last_use(input))",
        f"(last_use(expand), last_use(input), {NONE}, {L1})",
    ),
    "memory of the classifier": option("weights.classifier.bias", f".memory_config = {L1}"),
    "fidelity of the classifier": option(
        "weights.classifier.bias", f".compute_kernel_config = {LOFI}"
    ),
    "memory of the scores": replaced("(classifier, 1, std::nullopt,", f"(classifier, 1, {L1},"),
    "memory of activations": replaced(
        "activations_memory = ttnn::DRAM", "activations_memory = ttnn::L1"
    ),
    "constant of its own": new_convolution_constant,
}


def decode_change(change: str) -> tuple[str, dict[str, Any]]:
    match change:
        case "width":
            return decode_layers(hidden=512, inner=1024), {}
        case "layer":
            return decode_layers(2), {}
        case "activation":
            return decode_layers(activation="gelu"), {}
        case "weight":
            return decode_layers(gate="w1", output="wo"), {}
        case "value":
            return re.sub(r"%l0_(residual|product|active)\b", r"%first_\1", decode_layers()), {}
        case "batch":
            return decode_layers(users=8), {}
        case "dtype":
            return decode_layers(dtype="f32"), {}
        case "op removed":
            return decode_layers(gated=False), {}
        case "level":
            return decode_layers(), {"optimize": 2}
        case _:
            return decode_layers(), {"release": OTHER}


def network_change(change: str) -> tuple[str, dict[str, Any]]:
    match change:
        case "width":
            return residual_network(channels=128), {}
        case "layer":
            return residual_network(3), {}
        case "activation":
            return residual_network(activation="silu"), {}
        case "weight":
            return residual_network(stem="conv1", classifier="fc"), {}
        case "value":
            return re.sub(r"%(average|scores|b0_sum)\b", r"%the_\1", residual_network()), {}
        case "batch":
            return residual_network(images=4), {}
        case "dtype":
            return residual_network(dtype="f32"), {}
        case "op removed":
            return residual_network(activated=False), {}
        case "level":
            return residual_network(), {"optimize": 2}
        case _:
            return residual_network(), {"release": OTHER}


CHANGES = (
    *("width", "layer", "activation", "weight", "value"),
    *("batch", "dtype", "op removed", "level", "release"),
)
Change = Callable[[str], tuple[str, dict[str, Any]]]
MODELS: Mapping[str, tuple[str, Change, Mapping[str, Edit]]] = {
    "decode": (decode_layers(), decode_change, DECODE_EDITS),
    "network": (residual_network(), network_change, NETWORK_EDITS),
}
SHARDED = "places the calls around it as well"
NAMED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("decode", "activation"): {"silu in gate": "'gelu' is there now"},
    ("decode", "op removed"): {"silu in gate": "'l0_active' (silu) is gone"},
    ("decode", "level"): {
        "memory of queries": """{"memory": "l1", "sharding": "interleaved"}} keeps it a call""",
        "memory of a norm": SHARDED,
        "memory of a residual": SHARDED,
        "memory of all matmuls": SHARDED,
    },
    ("network", "activation"): {"relu in the sum": "'silu' is there now"},
    ("network", "op removed"): {"relu in the sum": "'b0_active, b1_active' (relu) is gone"},
    ("network", "level"): {"memory of the sum": SHARDED},
}
"""Decisions that are lost after a change, with words of the reason."""
SPELLED_OTHERWISE = {
    ("decode", "level", "fidelity of all matmuls"),
    ("decode", "level", "silu in gate"),
    ("network", "level", "relu in the sum"),
    ("network", "dtype", "fidelity of all convolutions"),
    *(
        ("network", "level", f"{what} of all {which}")
        for what, which in (
            ("block", "convolutions"),
            ("buffers", "convolutions"),
            ("data type", "convolution weights"),
        )
    ),
    ("network", "level", "fidelity of all convolutions"),
    ("network", "level", "constant of its own"),
}
"""Decisions that other places of the new program hold: calls instead of a constant, two calls or
constants instead of one, or the optimizer itself."""


@cache
def generated(name: str, change: str) -> tuple[ModuleDescription, dict[str, str | bytes]]:
    model, changed, _ = MODELS[name]
    text, options = (model, {}) if not change else changed(change)
    compiled = compile_module(Source(f"{name}.mlir", text), CompileOptions(name, **options))
    return compiled.description, project_files(compiled, formatted=True)


def edited_files(name: str, edit: Edit) -> dict[str, str]:
    """The C++ of a model with an edit."""
    _, files = generated(name, "")
    paths = (f"src/{name}.cpp", TUNING)
    mark = "\n//// next file\n"
    texts = edit(mark.join(str(files[path]) for path in paths)).split(mark)
    return dict(zip(paths, texts, strict=True))


def kinds(out: Path) -> list[tuple[str, ...]]:
    """The decisions of a project, without the names of their ops."""
    files = tuned_files(out)
    calls = [call for file in files for call in file.calls]
    found = [(c.parameter, *c.words) for call in calls for c in call.changes]
    constants = [each.constant for file in files for each in file.constants]
    return sorted([*found, *((each.name,) for each in constants)])


def _arguments(
    out: Path, name: str, change: str
) -> tuple[ModuleDescription, Path, dict[str, str | bytes]]:
    description, files = generated(name, change)
    return description, out, files


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(each, marks=() if each in ("layer", "level") else pytest.mark.slow)
        for each in CHANGES
    ],
)
def test_each_edit_is_kept_or_named(name: str, change: str, tmp_path: Path) -> None:
    named = NAMED.get((name, change), {})
    assert set(named) <= set(MODELS[name][2])
    for number, (edit, function) in enumerate(MODELS[name][2].items()):
        out = tmp_path / str(number)
        write_project(*_arguments(out, name, ""))
        for path, text in edited_files(name, function).items():
            (out / path).write_text(text)
        tuned = tuned_files(out)
        assert any(file.calls or file.constants for file in tuned), edit
        assert all(file.rest == file.before for file in tuned), edit
        before = kinds(out)
        conflicts = write_project(*_arguments(out, name, change))
        said = " ".join(str(each.reason) for each in conflicts)
        assert named.get(edit, "") in said, edit
        assert bool(said) == (edit in named), (edit, said)
        if not said and (name, change, edit) not in SPELLED_OTHERWISE:
            assert kinds(out) == before, edit


def test_an_activation_of_a_sum_is_an_override(tmp_path: Path) -> None:
    """The optimizer fuses it as the person did, at the call that the entry names."""
    out = tmp_path / "out"
    write_project(*_arguments(out, "network", ""))
    for path, text in edited_files("network", relu_in_sum).items():
        (out / path).write_text(text)
    assert entries(tuned_files(out)) == {
        "classify": {"b0_active": {"fuse": True}, "b1_active": {"fuse": True}}
    }


def test_an_activation_of_an_operand_does_not_take_the_place_of_one_of_the_result(
    tmp_path: Path,
) -> None:
    """relu(a) + b is another program than relu(a + b): an edit of text, and no decision."""
    out = tmp_path / "out"
    write_project(*_arguments(out, "network", ""))
    for path, text in edited_files("network", relu_in_sum).items():
        (out / path).write_text(text.replace(f"{NONE}, std::array", f"{NONE}, {{}}, std::array"))
    assert entries(tuned_files(out)) == {}
    assert any(file.rest != file.before for file in tuned_files(out))
