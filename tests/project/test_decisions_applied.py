"""Decisions of a person, applied again to a model that has changed: each is kept, or named."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections.abc import Mapping
from cProfile import Profile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.optimizer.modules import token
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.description import ModuleDescription
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.edits import Conflict, tuned_files
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.project.tuning import matching
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.project.tuning.statements import statements
from ttcodegen.project.writer import write_project

EXAMPLE = Path(__file__).parents[2] / "examples/transformer"
CODE, TUNING = "src/transformer.cpp", "src/tuning.hpp"
Edit = tuple[tuple[str, str], ...]


@cache
def model(blocks: int = 1, **constants: int) -> str:
    make: dict[str, Any] = runpy.run_path(str(EXAMPLE / "make.py"))
    text = make["module_text"]
    text.__globals__.update(constants)
    return text(blocks)


def renamed(text: str, *names: tuple[str, str]) -> str:
    for old, new in names:
        text = re.sub(rf"{re.escape(old)}\b", new, text)
    return text


def changed(change: str) -> tuple[str, dict[str, Any]]:
    """The model after a change, and the options that it is compiled with."""
    text = model()
    gate = '  %silu_22 = "ttir.silu"(%feed_forward_gate)'
    match change:
        case "width":
            return model(HIDDEN=512), {}
        case "layer":
            return model(2), {}
        case "activation":
            return text.replace("ttir.silu", "ttir.gelu"), {}
        case "weight":
            return renamed(
                text,
                ("feed_forward_gate_weight", "mlp_gate_weight"),
                ("feed_forward.gate.weight", "mlp.gate.weight"),
                ("attention_query_weight", "projection_weight"),
                ("attention.query.weight", "projection.weight"),
            ), {}
        case "value":
            values = ("%feed_forward_gate", "%gate"), ("%attention_query", "%query")
            return renamed(text, *values, ("%after_attention", "%residual")).replace(
                "%query_weight", "%attention_query_weight"
            ), {}
        case "batch":
            return model(POSITIONS=64), {}
        case "dtype":
            return text.replace("bf16", "f32"), {}
        case "op removed":
            assert gate in text
            kept = [line for line in text.splitlines(True) if not line.startswith(gate)]
            return "".join(kept).replace("%silu_22", "%feed_forward_gate"), {}
        case "level":
            return text, {"optimize": 2}
        case _:
            return text, {"release": _other_release()}


def _other_release() -> str:
    from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

    return next(name for name in RELEASES if name != DEFAULT_RELEASE)


CHANGES = (
    *("width", "layer", "activation", "weight", "value"),
    *("batch", "dtype", "op removed", "level", "release"),
)


@cache
def generated(change: str) -> tuple[ModuleDescription, dict[str, str | bytes]]:
    text, options = (model(), {}) if not change else changed(change)
    compiled = compile_module(
        Source("transformer.mlir", text), CompileOptions("transformer", **options)
    )
    return compiled.description, project_files(compiled, formatted=True)


L1 = "ttnn::L1_MEMORY_CONFIG"
LOFI = "ttnn::DeviceComputeKernelConfig{.math_fidelity = MathFidelity::LoFi}"
PROGRAM = (
    "ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig{"
    ".compute_with_storage_grid_size = {8, 1}, .in0_block_w = 4, .out_subblock_h = 1, "
    ".out_subblock_w = 1, .out_block_h = 1, .out_block_w = 1, .per_core_M = 1, .per_core_N = 1, "
    ".fuse_batch = true, .fused_activation = {}, .mcast_in0 = true, .gather_in0 = false, "
    ".hop_cores = {}, .num_global_cb_receivers = 0, .untilize_out = false}"
)
UNARY = "ttnn::operations::unary::"
SILU = "    feed_forward_gate = ttnn::silu(feed_forward_gate);\n"
LAST = "}  // namespace transformer::tuning"


def product(weight: str, options: str) -> Edit:
    return ((f"weights.{weight}.weight)", f"weights.{weight}.weight, {{{options}}})"),)


EDITS: Mapping[str, tuple[Edit, str]] = {
    "memory of a product": (
        product("attention.query", f".memory_config = {L1}"),
        r"(attention_query|query) = call::matmul\([^;]*\.memory_config = ttnn::L1_MEMORY_CONFIG}",
    ),
    "data type of a product": (
        product("feed_forward.up", ".dtype = ttnn::DataType::BFLOAT8_B"),
        r"feed_forward_up = call::matmul\([^;]*\.dtype = ttnn::DataType::BFLOAT8_B}",
    ),
    "fidelity of a product": (
        product("feed_forward.down", f".compute_kernel_config = {LOFI}"),
        r"feed_forward_down = call::matmul\([^;]*MathFidelity::LoFi}}",
    ),
    "program of a product": (
        product("feed_forward.up", f".program_config = {PROGRAM}"),
        r"feed_forward_up = call::matmul\([^;]*compute_with_storage_grid_size = {8, 1}",
    ),
    "activation in a product": (
        (*product("feed_forward.gate", '.activation = "silu"'), (SILU, "")),
        r'(feed_forward_gate|gate) = call::matmul\([^;]*\.activation = "silu"}',
    ),
    "activation in a multiplication": (
        (
            (SILU, ""),
            (
                "last_use(feed_forward_up));",
                "last_use(feed_forward_up), std::nullopt, std::nullopt, std::nullopt, {}, "
                f"std::array{{{UNARY}EltwiseUnaryWithParam({UNARY}UnaryOpType::SILU)}});",
            ),
        ),
        r"product = ttnn::multiply\([^;]*UnaryOpType::SILU\)}\)",
    ),
    "memory of a norm": (
        (
            (
                "weights.feed_forward_norm.weight)",
                f"weights.feed_forward_norm.weight, std::nullopt, std::nullopt, {L1})",
            ),
        ),
        r"feed_forward_norm = ttnn::rms_norm\([^;]*ttnn::L1_MEMORY_CONFIG[,)]",
    ),
    "memory of a sum": (
        (("last_use(attention_output));", f"last_use(attention_output), std::nullopt, {L1});"),),
        r"(after_attention|residual) = ttnn::add\([^;]*nullopt, ttnn::L1_MEMORY_CONFIG\)",
    ),
    "fidelity of all products": (
        (("product_compute = std::nullopt", f"product_compute = {LOFI}"),),
        r"product_compute = [^;]*LoFi",
    ),
    "memory of all products": (
        (("product_memory = std::nullopt", f"product_memory = {L1}"),),
        r"product_memory = ttnn::L1_MEMORY_CONFIG",
    ),
    "data type of all weights": (
        (
            (
                "_weights_type = ttnn::DataType::BFLOAT16",
                "_weights_type = ttnn::DataType::BFLOAT8_B",
            ),
        ),
        r"product_weights_type = ttnn::DataType::BFLOAT8_B",
    ),
    "constant with comments": (
        (
            (
                LAST,
                "// Precise enough.\n"
                "const ttnn::DeviceComputeKernelConfig fast_compute"
                f"{{.math_fidelity = MathFidelity::LoFi}};\n\n{LAST}",
            ),
            (
                "    ttnn::Tensor attention_output =\n",
                "    // a third of the time\n    ttnn::Tensor attention_output =\n",
            ),
            *product("attention.output", ".compute_kernel_config = tuning::fast_compute"),
        ),
        r"// a third of the time ttnn::Tensor attention_output = "
        r"call::matmul\([^;]*tuning::fast_compute}.*"
        r"// Precise enough. const ttnn::DeviceComputeKernelConfig fast_compute{",
    ),
}
NAMED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("width", "program of a product"): ("'feed_forward_up': program", "has out_subblock_w = 2"),
    ("batch", "program of a product"): ("'feed_forward_up': program", "has out_subblock_h = 2"),
    ("activation", "activation in a product"): ("'feed_forward_gate': act", "'gelu' is there now"),
    ("activation", "activation in a multiplication"): ("'multiply': act", "'gelu' is there now"),
    ("op removed", "activation in a product"): (
        "'feed_forward_gate': act",
        "'silu' (silu) is gone",
    ),
    ("op removed", "activation in a multiplication"): ("'multiply': act", "'silu' (silu) is gone"),
    ("level", "memory of a product"): (
        "'attention_query': memory",
        "'qkv' (matmul) is there now; with --overrides, "
        '{"attention_query": {"memory": "l1", "sharding": "interleaved"}} keeps it a call',
    ),
    ("level", "activation in a multiplication"): ("'multiply': activation", "applies silu already"),
}


def spaced(text: str) -> str:
    """A text on one line, as it would be without a limit on its length."""
    return re.sub(r" (?=})", "", re.sub(r"(?<=[({]) ", "", " ".join(text.split())))


def regenerate(out: Path, change: str) -> list[Conflict]:
    description, files = generated(change)
    return write_project(description, out, files)


def tune(out: Path, edits: Edit) -> None:
    description, files = generated("")
    write_project(description, out, files)
    texts = {path: (out / path).read_text() for path in (CODE, TUNING)}
    for old, new in edits:
        assert [text.count(old) for text in texts.values() if old in text] == [1], old
        texts = {path: text.replace(old, new) for path, text in texts.items()}
    for path, text in texts.items():
        (out / path).write_text(text)


def edited_variables(out: Path, change: str) -> set[str | None]:
    """The variables of statements that are not as they were generated."""
    _, files = generated(change)
    found: set[str | None] = set()
    for path in (CODE, TUNING):
        text = files[path]
        assert isinstance(text, str)
        words = {each.words for each in statements(text)}
        now = statements((out / path).read_text().partition("<<<<<<<")[0])
        found |= {each.target for each in now if each.words not in words}
    return found


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            change, marks=() if change in ("activation", "value", "level") else pytest.mark.slow
        )
        for change in CHANGES
    ],
)
def test_each_edit_is_kept_or_named(change: str, tmp_path: Path) -> None:
    for number, (name, (edits, shown)) in enumerate(EDITS.items()):
        out = tmp_path / str(number)
        tune(out, edits)
        conflicts = regenerate(out, change)
        text = spaced((out / CODE).read_text() + (out / TUNING).read_text())
        said = " ".join(str(each.reason) for each in conflicts)
        named = NAMED.get((change, name), ())
        assert [words for words in named if words not in said] == [], name
        if named:
            # What is not applied stops the build, and leaves the program as it is generated.
            assert "<<<<<<<" in text, name
            assert all(part in text for part in (" ".join(named[0].split()),)), name
        else:
            assert said == "", name
            assert re.search(shown, text), name
        # No other op gets the decision.
        if "all products" not in name:
            assert len(edited_variables(out, change)) <= (2 if "constant" in name else 1), name


@pytest.mark.parametrize("change", ["value", pytest.param("layer", marks=pytest.mark.slow)])
def test_decisions_survive_changes_one_after_the_other(change: str, tmp_path: Path) -> None:
    kept = [n for n in EDITS if n not in ("activation in a multiplication", "program of a product")]
    tune(tmp_path / "out", tuple(edit for name in kept for edit in EDITS[name][0]))
    for each in (change, "", change, ""):
        assert regenerate(tmp_path / "out", each) == []
    text = spaced((tmp_path / "out" / CODE).read_text() + (tmp_path / "out" / TUNING).read_text())
    for name in kept:
        assert re.search(EDITS[name][1], text), name
    # They are still edits of a person, and not what the compiler decided.
    files = tuned_files(tmp_path / "out")
    assert sum(len(file.calls) + len(file.constants) for file in files) == len(kept) + 1
    assert all(file.rest == file.before for file in files)


CNN = (EXAMPLE.parent / "cnn/cnn.mlir").read_text()
SHARED = "{.weights_dtype = ttnn::DataType::BFLOAT16, .shard_layout = {}}"
BLOCKS = "{.weights_dtype = ttnn::DataType::BFLOAT16, .act_block_h_override = 32}"
DECODED = token(32, 32, 8)
OTHERS: Mapping[str, tuple[str, int, Mapping[str, tuple[str, int]], Mapping[str, Edit]]] = {
    "cnn": (
        CNN,
        0,
        {
            "activation": (CNN.replace("ttir.relu", "ttir.silu"), 0),
            "names": (CNN.replace("conv0", "stem").replace("classifier", "head"), 0),
            "data type": (CNN.replace("bf16", "f32"), 0),
        },
        {
            "blocks": ((SHARED, BLOCKS),),
            "memory": (
                (
                    "weights.classifier.bias)",
                    f"weights.classifier.bias, {{.memory_config = {L1}}})",
                ),
            ),
            "softmax": (("(classifier, 1, std::nullopt,", f"(classifier, 1, {L1},"),),
            "activations": (("activations_memory = ttnn::DRAM", "activations_memory = ttnn::L1"),),
        },
    ),
    "token": (
        DECODED,
        2,
        {
            "users": (token(8, 32, 8), 2),
            "heads": (token(32, 16, 8), 2),
            "names": (DECODED.replace("%wo", "%out").replace("%qd", "%decoded"), 2),
        },
        {
            "block": ((".in0_block_w = 4", ".in0_block_w = 2"),),
            "fidelity": (
                ("tuning::qkv_program}", f"tuning::qkv_program, .compute_kernel_config = {LOFI}}}"),
            ),
            "attention": (
                ("/*memory_config=*/tuning::activations_memory)", f"/*memory_config=*/{L1})"),
            ),
            "activations": (("activations_memory = ttnn::DRAM", "activations_memory = ttnn::L1"),),
        },
    ),
}


def decided(out: Path) -> list[dict[str, Any]]:
    """Decisions without the names of their ops; of a program configuration, the changed field."""
    found = [entry for ops in entries(tuned_files(out)).values() for entry in ops.values()]
    for entry in found:
        if "program_config" in entry:
            entry["program_config"] = re.findall(r"in0_block_w = \d+", entry["program_config"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_a_convolutional_network_and_a_layer_of_decoding(name: str, tmp_path: Path) -> None:
    model, level, changes, edits = OTHERS[name]

    def files_of(text: str, optimize: int) -> tuple[ModuleDescription, dict[str, str | bytes]]:
        compiled = compile_module(Source("", text), CompileOptions(name, optimize=optimize))
        return compiled.description, project_files(compiled, formatted=True)

    before = files_of(model, level)
    for change, (text, optimize) in changes.items():
        after = files_of(text, optimize)
        for edit, replaced in edits.items():
            out = tmp_path / change / edit
            write_project(before[0], out, before[1])
            for path in (f"src/{name}.cpp", TUNING):
                now = (out / path).read_text()
                for old, new in replaced:
                    now = now.replace(old, new)
                (out / path).write_text(now)
            tuned = decided(out)
            assert tuned != []
            assert write_project(after[0], out, after[1]) == [], (change, edit)
            assert decided(out) == tuned, (change, edit)


def test_a_field_is_changed_in_the_configuration_that_decides_now(tmp_path: Path) -> None:
    """At level 2 the convolutions apply their relu themselves, by another configuration."""
    out = tmp_path / "out"
    conflicts: list[Conflict] = []
    for level in (0, 2):
        compiled = compile_module(Source("", CNN), CompileOptions("cnn", optimize=level))
        files = project_files(compiled, formatted=False)
        conflicts = write_project(compiled.description, out, files)
        if level == 0:
            text = (out / TUNING).read_text()
            assert SHARED in text
            (out / TUNING).write_text(text.replace(SHARED, BLOCKS))
    assert conflicts == []
    config = re.search(r"Conv2dConfig conv2d_program ?{(.*?)};", (out / TUNING).read_text(), re.S)
    assert config
    # In the order of declaration, as C++ asks for.
    names = re.findall(r"\.(\w+) =", config[1])
    assert names == ["weights_dtype", "activation", "act_block_h_override", "shard_layout"]
    assert "/*conv_config=*/tuning::conv2d_program" in (out / "src/cnn.cpp").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["layer", "dtype", "level"])
def test_calls_with_decisions_compile(change: str, tmp_path: Path, toolchain: Toolchain) -> None:
    out = tmp_path / "out"
    kept = [n for n in EDITS if n not in ("activation in a multiplication", "program of a product")]
    tune(out, tuple(edit for name in kept for edit in EDITS[name][0]))
    regenerate(out, change)
    for path in (CODE, TUNING):
        text = (out / path).read_text()
        (out / path).write_text(re.sub(r"^<<<<<<< .*?^>>>>>>> .*?$", "", text, flags=re.M | re.S))
    include = EXAMPLE.parents[1] / "standalone/include"
    command = [toolchain.compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", "-I.", CODE]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True)
    assert done.stderr == ""


def test_one_of_several_calls_in_a_row_that_is_gone_is_named(tmp_path: Path) -> None:
    """Any of the others may be it, where all have other names."""
    kind = "tensor<64x64xbf16>"

    def chain(names: list[str]) -> str:
        lines, value = [f"func.func @f(%x: {kind}) -> {kind} {{"], "%x"
        for name in names:
            lines.append(f'  %{name} = "ttir.sin"({value}) : ({kind}) -> {kind}')
            value = f"%{name}"
        return "\n".join([*lines, f"  return {value} : {kind}", "}"])

    out = tmp_path / "out"
    for names in (["alder", "birch", "cedar"], ["daisy", "elm"]):
        compiled = compile_module(Source("", chain(names)), CompileOptions("chain"))
        files = project_files(compiled, formatted=False)
        conflicts = write_project(compiled.description, out, files)
        code = out / "src/chain.cpp"
        if "birch" in names:
            old = "ttnn::sin(last_use(alder))"
            assert old in code.read_text()
            code.write_text(code.read_text().replace(old, f"{old[:-1]}, {L1})"))
    assert "'birch': memory ttnn::L1_MEMORY_CONFIG: there is no such" in conflicts[0].reason
    assert L1 not in code.read_text().partition("<<<<<<<")[0]


def test_renamed_calls_take_work_in_proportion() -> None:
    """A chain is found call by call from its first on, and none is looked at again."""

    def nodes(name: str, length: int) -> list[matching.Node]:
        lines, value = ["ttnn::Tensor f(const ttnn::Tensor& x) {"], "x"
        for number in range(length):
            lines.append(f"    ttnn::Tensor {name}{number} = ttnn::sin({value});")
            value = f"{name}{number}"
        return matching.program({"src/f.cpp": "\n".join([*lines, "}", ""])}, ())

    counts: list[int] = []
    for length in (100, 200):
        old, new = nodes("a", length), nodes("b", length)
        counted = Profile()
        found = counted.runcall(matching.matched, old, new)
        assert found == dict(zip(old, new, strict=True))
        counts.append(sum(entry.callcount for entry in counted.getstats()))
    assert counts[1] < 2.5 * counts[0]


def test_calls_around_an_activation_that_became_part_of_one_are_found(tmp_path: Path) -> None:
    """At level 1 the first product applies sigmoid; the second one of three is still the second."""
    kind = "tensor<32x64xbf16>"
    given = "{ttcore.argument_type = #ttcore.argument_type<input>}"
    text = (
        f"func.func @gated(%gate: {kind} {given}, %alpha: {kind} {given}, %value: {kind} {given}) "
        f"-> {kind} {{\n"
        f'  %0 = "ttir.multiply"(%gate, %alpha) : ({kind}, {kind}) -> {kind}\n'
        f'  %1 = "ttir.sigmoid"(%0) : ({kind}) -> {kind}\n'
        f'  %2 = "ttir.multiply"(%gate, %1) : ({kind}, {kind}) -> {kind}\n'
        f'  %3 = "ttir.multiply"(%value, %2) : ({kind}, {kind}) -> {kind}\n'
        f"  return %3 : {kind}\n}}\n"
    )
    out = tmp_path / "out"
    code = out / "src/gated.cpp"
    for level in (0, 1):
        compiled = compile_module(Source("", text), CompileOptions("gated", optimize=level))
        files = project_files(compiled, formatted=False)
        assert write_project(compiled.description, out, files) == []
        if level == 0:
            calls = re.findall(r"ttnn::multiply\([^;]*\);", code.read_text())
            edit = calls[1].replace(");", f", std::nullopt, {L1});")
            code.write_text(code.read_text().replace(calls[1], edit))
    calls = re.findall(r"ttnn::(?:multiply|sigmoid)\([^;]*\);", code.read_text())
    assert [L1 in call for call in calls] == [False, True, False]
    assert "SIGMOID" in calls[0]
