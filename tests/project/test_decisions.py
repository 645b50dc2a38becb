"""Edits of a project, read back as decisions of ops."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.optimizer.overrides.overrides import read_overrides
from ttcodegen.project.tuning.decisions import compared
from ttcodegen.project.tuning.edited_files import EditedFile
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.project.tuning.report import report_lines
from ttcodegen.project.tuning.statements import statements

TRANSFORMER = Path(__file__).parents[2] / "examples/transformer/transformer.mlir"
CODE = """\
namespace model {
Outputs block(const Inputs& inputs) {
    // scores
    ttnn::Tensor scores = call::matmul(inputs.x, inputs.w);
    scores = ttnn::silu(scores);
    ttnn::Tensor sum = ttnn::add(scores, inputs.x, std::nullopt, tuning::activations_memory);
    return Outputs{.sum = sum};
}
namespace call {
struct MatmulOptions {
    std::optional<ttnn::DeviceComputeKernelConfig> compute_kernel_config = tuning::product_compute;
};
}  // namespace call
}  // namespace model
"""
TUNING = """\
namespace model::tuning {
inline const ttnn::MemoryConfig& activations_memory = ttnn::DRAM_MEMORY_CONFIG;
const std::optional<ttnn::DeviceComputeKernelConfig> product_compute = std::nullopt;
}  // namespace model::tuning
"""
OPS = [
    OpLines(LoweredOp("block", name, None), "src/model.cpp", line, line)
    for line, name in ((4, "scores"), (5, "silu"), (6, "sum"))
]


def edited(*edits: tuple[str, str]) -> list[EditedFile]:
    code, tuning = CODE, TUNING
    for old, new in edits:
        assert old in code + tuning
        code, tuning = code.replace(old, new), tuning.replace(old, new)
    before = {"src/model.cpp": CODE, "src/tuning.hpp": TUNING}
    after = {"src/model.cpp": code, "src/tuning.hpp": tuning}
    return compared(
        before, {path: after[path] for path in after if after[path] != before[path]}, OPS
    )


PRODUCT = "call::matmul(inputs.x, inputs.w)"
PROGRAM = (
    "ttnn::operations::matmul::MatmulMultiCoreReuseProgramConfig{"
    ".compute_with_storage_grid_size = {8, 4}, .in0_block_w = 2, .out_subblock_h = 1, "
    ".out_subblock_w = 1, .per_core_M = 1, .per_core_N = 4}"
)
SHARDED = (
    "ttnn::MemoryConfig{ttnn::TensorMemoryLayout::WIDTH_SHARDED, ttnn::BufferType::L1, "
    "tt::tt_metal::ShardSpec(ttnn::CoreRangeSet(ttnn::CoreRange({0, 0}, {3, 1})), {32, 64})}"
)


def with_options(options: str) -> tuple[str, str]:
    return PRODUCT, f"{PRODUCT[:-1]}, {{{options}}})"


@pytest.mark.parametrize(
    ("edit", "op", "entry"),
    [
        (
            with_options(".memory_config = ttnn::L1_MEMORY_CONFIG"),
            "scores",
            {"memory": "l1", "sharding": "interleaved"},
        ),
        (
            with_options(f".memory_config = {SHARDED}"),
            "scores",
            {"memory": "l1", "sharding": "width_sharded", "grid": [4, 2], "shard": [32, 64]},
        ),
        (with_options(".dtype = ttnn::DataType::BFLOAT8_B"), "scores", {"data_type": "bfp_bf8"}),
        (
            with_options(
                ".compute_kernel_config = "
                "ttnn::DeviceComputeKernelConfig{.math_fidelity = MathFidelity::LoFi}"
            ),
            "scores",
            {"math_fidelity": "lofi"},
        ),
        (
            with_options(f".program_config = {PROGRAM}"),
            "scores",
            {
                "program_config": "#ttnn.matmul_multi_core_reuse_program_config<"
                "compute_with_storage_grid_size = #ttnn.core_coord<8, 4>, in0_block_w = 2, "
                "out_subblock_h = 1, out_subblock_w = 1, per_core_m = 1, per_core_n = 4>"
            },
        ),
        (
            ("tuning::activations_memory)", "ttnn::L1_MEMORY_CONFIG)"),
            "sum",
            {"memory": "l1", "sharding": "interleaved"},
        ),
        (
            ("activations_memory = ttnn::DRAM", "activations_memory = ttnn::L1"),
            "sum",
            {"memory": "l1", "sharding": "interleaved"},
        ),
        (
            (
                "product_compute = std::nullopt",
                "product_compute = "
                "ttnn::DeviceComputeKernelConfig{.math_fidelity = MathFidelity::HiFi3}",
            ),
            "scores",
            {"math_fidelity": "hifi3"},
        ),
    ],
)
def test_changes_of_how_a_call_is_made_are_entries(
    edit: tuple[str, str], op: str, entry: dict[str, object]
) -> None:
    files = edited(edit)
    found = entries(files)
    assert found == {"block": {op: entry}}
    assert read_overrides(json.dumps({"version": 1, "functions": found})) == found
    assert [file.rest for file in files] == [file.before for file in files]


def test_an_activation_that_moves_into_a_call_is_one_decision() -> None:
    files = edited(with_options('.activation = "silu"'), ("    scores = ttnn::silu(scores);\n", ""))
    assert entries(files) == {"block": {"silu": {"fuse": True}}}
    assert [file.rest for file in files] == [CODE]


SEPARATE = CODE.replace("    scores = ttnn::silu", "    ttnn::Tensor active = ttnn::silu").replace(
    "ttnn::add(scores", "ttnn::add(active"
)


@pytest.mark.parametrize("variable", ["scores", "active"])
def test_an_activation_with_a_variable_of_its_own_is_one_decision_with_its_readers(
    variable: str,
) -> None:
    now = SEPARATE.replace("    ttnn::Tensor active = ttnn::silu(scores);\n", "")
    now = now.replace(PRODUCT, with_options('.activation = "silu"')[1])
    now = now.replace("ttnn::Tensor scores", f"ttnn::Tensor {variable}")
    now = now.replace("ttnn::add(active", f"ttnn::add({variable}")
    (file,) = compared({"src/model.cpp": SEPARATE}, {"src/model.cpp": now}, OPS)
    assert entries([file]) == {"block": {"silu": {"fuse": True}}}
    assert file.rest == SEPARATE


def test_a_call_that_reads_another_result_stays_text() -> None:
    """Without an activation that something else applies, another operand is another program."""
    now = SEPARATE.replace("    ttnn::Tensor active = ttnn::silu(scores);\n", "")
    now = now.replace("ttnn::add(active", "ttnn::add(scores")
    (file,) = compared({"src/model.cpp": SEPARATE}, {"src/model.cpp": now}, OPS)
    assert not file.calls
    assert file.rest == now


def test_all_decisions_of_a_call_go_by_the_name_of_the_activation_that_it_applies() -> None:
    """So are calls named that the optimizer fuses."""
    options = '.dtype = ttnn::DataType::BFLOAT8_B, .activation = "silu"'
    files = edited(with_options(options), ("    scores = ttnn::silu(scores);\n", ""))
    assert entries(files) == {"block": {"silu": {"fuse": True, "data_type": "bfp_bf8"}}}


def test_constants_that_are_as_they_were_generated_are_known() -> None:
    files = edited(with_options(".memory_config = tuning::activations_memory"))
    placed = {"memory": "dram", "sharding": "interleaved"}
    assert entries(files) == {"block": {"scores": placed}}


def test_the_comment_beside_a_decision_goes_with_it() -> None:
    files = edited(
        with_options(".memory_config = ttnn::L1_MEMORY_CONFIG"),
        ("    // scores\n", "    // scores\n    // read twice, and it fits\n"),
    )
    assert entries(files)["block"]["scores"]["comment"] == "read twice, and it fits"
    assert files[0].rest == CODE


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(with_options('.activation = "gelu"'), id="another activation"),
        pytest.param(("inputs.x, inputs.w", "inputs.w, inputs.x"), id="other operands"),
        pytest.param(("ttnn::silu", "ttnn::gelu"), id="another op"),
        pytest.param((".sum = sum", ".sum = scores"), id="another result"),
        pytest.param(with_options(".transpose_a = true"), id="another product"),
    ],
)
def test_changes_of_what_is_computed_stay_text(edit: tuple[str, str]) -> None:
    files = edited(edit)
    assert entries(files) == {}
    assert files[0].rest == files[0].after
    assert all(line.startswith("text") for line in report_lines(files))


def test_a_configuration_that_applies_another_activation_stays_text() -> None:
    """The constant and the call that was taken out belong together."""
    before = TUNING.replace(
        "}  // namespace", "const ttnn::prim::Conv2dConfig convolution{};\n}  // namespace"
    )
    relu = "{.activation = ttnn::operations::unary::UnaryWithParam(UnaryOpType::RELU)}"
    (file,) = compared(
        {"src/tuning.hpp": before},
        {"src/tuning.hpp": before.replace("convolution{}", f"convolution{relu}")},
        OPS,
    )
    assert not file.constants
    assert file.rest == file.after


def test_calls_that_give_several_results_are_read() -> None:
    text = "void f() { x = std::get<0>(ttnn::conv2d(x, w)); y = ttnn::max_pool2d(x, 1)[0]; }"
    calls = [each.call for each in statements(text)]
    assert [call and call.callee for call in calls] == ["ttnn::conv2d", "ttnn::max_pool2d"]


def test_text_edits_name_the_op_that_they_are_in() -> None:
    files = edited(("ttnn::silu(scores)", "ttnn::silu(scores, true)"))
    assert list(report_lines(files)) == ["text in silu: src/model.cpp:5"]


def test_template_arguments_and_strings_do_not_divide_arguments() -> None:
    text = 'void f() { g(std::array<int, 2>{1, 2}, "a, (b", a < b, /*last=*/R"(x)y")"); }'
    (statement,) = statements(text)
    assert statement.call is not None
    assert [each.text for each in statement.call.positional] == [
        "std::array<int, 2>{1, 2}",
        '"a, (b"',
        "a<b",
        'R"(x)y")"',
    ]
    assert statement.call.positional[3].label == "last"


@cache
def printed(level: int) -> dict[str, str]:
    source = Source(str(TRANSFORMER), TRANSFORMER.read_text())
    return compile_module(source, CompileOptions("transformer", optimize=level)).files


@pytest.mark.parametrize("level", [0, 2])
def test_every_call_of_the_library_that_is_emitted_is_read(level: int) -> None:
    text = printed(level)["src/transformer.cpp"]
    body = text[text.index("BlockOutputs block(") :]
    calls = [s.call.callee for s in statements(body) if s.call is not None]
    emitted = [
        word.partition("(")[0]
        for word in body.replace("(", "( ").split()
        if word.startswith(("ttnn::", "call::")) and word.endswith("(")
    ]
    assert calls == [name for name in emitted if name not in ("ttnn::Shape",)]


def test_the_command_prints_decisions_above_a_patch_and_writes_overrides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, overrides = tmp_path / "out", tmp_path / "decided.json"
    assert main([str(TRANSFORMER), "-o", str(out)]) == 0
    file = out / "src/transformer.cpp"
    file.write_text(
        file.read_text().replace(
            "weights.feed_forward.up.weight)",
            "weights.feed_forward.up.weight, {.memory_config = ttnn::L1_MEMORY_CONFIG})",
        )
    )
    capsys.readouterr()
    assert main(["--edits", str(out), "--write-overrides", str(overrides)]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "# feed_forward_up: memory ttnn::L1_MEMORY_CONFIG  (src/transformer.cpp:"
    )
    assert second.startswith("diff --git")
    placed = {"memory": "l1", "sharding": "interleaved"}
    found = json.loads(overrides.read_text())
    assert found["functions"] == {"block": {"feed_forward_up": placed}}
    command = [str(TRANSFORMER), "-o", str(tmp_path / "again"), "--overrides", str(overrides)]
    assert main(command) == 0
