"""The C++ of whole modules, as text."""

from __future__ import annotations

import re

import pytest

from tests.project.tuned_models import residual_network
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.foundation.diagnostics import Source

MODULE = """
func.func @classify(
    %image: tensor<1x64xf32> {ttcore.argument_type = #ttcore.argument_type<input>},
    %w: tensor<64x10xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                           ttir.name = "head.proj.weight"},
    %b: tensor<10xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                        ttir.name = "head.proj.bias"})
    -> (tensor<1x10xf32> {ttir.name = "scores"}) {
  %0 = "ttir.linear"(%image, %w, %b)
    : (tensor<1x64xf32>, tensor<64x10xf32>, tensor<10xf32>) -> tensor<1x10xf32>
  %1 = "ttir.relu"(%0) : (tensor<1x10xf32>) -> tensor<1x10xf32>
  return %1 : tensor<1x10xf32>
}
"""


def emit(text, name="model"):
    return compile_module(Source("test.mlir", text), CompileOptions(name))


def test_a_function_reads_like_one_that_a_person_wrote():
    source = emit(MODULE).files["src/model.cpp"]
    body = source[source.index("ClassifyOutputs classify(") :]
    assert body.splitlines()[1:7] == [
        "    ttnn::Tensor image = ttnn::to_layout(inputs.image, ttnn::Layout::TILE);",
        "",
        "    // head.proj",
        "    ttnn::Tensor head_proj = call::linear("
        "last_use(image), weights.head.proj.weight, weights.head.proj.bias);",
        "    head_proj = ttnn::relu(head_proj);",
        "    return ClassifyOutputs{.scores = head_proj};",
    ]


def test_the_compute_configuration_is_a_constant_with_short_names():
    source = emit(MODULE).files["src/tuning.hpp"]
    assert source.count("using tt::tt_metal::MathFidelity;") == 1
    assert source.count("ttnn::DeviceComputeKernelConfig exact_compute{") == 1
    assert ".math_fidelity = MathFidelity::HiFi3" in source


def test_programs_of_16_bit_floats_leave_the_computing_to_the_library():
    module = MODULE.replace("xf32", "xbf16")
    tuning = emit(module).files["src/tuning.hpp"]
    (compute,) = re.findall(r"DeviceComputeKernelConfig\S* (\w+) = (\S+);", tuning)
    assert compute == ("product_compute", "std::nullopt")


def test_edits_have_the_short_name_of_the_fidelity():
    source = emit(MODULE).files["src/tuning.hpp"]
    assert "namespace model {\n\nusing tt::tt_metal::MathFidelity;" in source


def test_inputs_weights_and_outputs_have_structures_of_their_own():
    style = clang_format_style()
    options = CompileOptions("model", style=style)
    header = compile_module(Source("test.mlir", MODULE), options).files["src/model.hpp"]
    assert re.findall(r"struct (\w+) \{\n((?:    .*\n)*)", header) == [
        ("ClassifyInputs", "    ttnn::Tensor image;\n"),
        (
            "ClassifyWeights",
            "    struct {\n"
            "        struct {\n"
            "            ttnn::Tensor weight;\n"
            "            ttnn::Tensor bias;\n"
            "        } proj;\n"
            "    } head;\n",
        ),
        ("ClassifyOutputs", "    ttnn::Tensor scores;\n"),
    ]


def test_memory_configurations_are_constants_that_can_be_turned():
    files = emit("""
func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %table = "ttir.constant"() <{value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>}>
    : () -> tensor<2x1xf32>
  %1 = "ttir.reshape"(%table) <{shape = [1 : i32, 2 : i32]}> : (tensor<2x1xf32>)
    -> tensor<1x2xf32>
  %2 = "ttir.pad"(%1) <{padding = array<i32: 0, 0, 0, 30>, value = 0.0 : f32}>
    : (tensor<1x2xf32>) -> tensor<1x32xf32>
  %0 = "ttir.add"(%x, %2) : (tensor<32x32xf32>, tensor<1x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}""").files
    constant = "const ttnn::MemoryConfig& weights_memory = ttnn::DRAM_MEMORY_CONFIG;"
    assert constant in files["src/tuning.hpp"]
    assert "&device, tuning::weights_memory)" in files["src/model.cpp"]
    assert '#include "tuning.hpp"' in files["src/model.cpp"]


def test_the_same_input_gives_the_same_bytes():
    first, second = emit(MODULE), emit(MODULE)
    assert first.files == second.files
    assert first.flatbuffer == second.flatbuffer


@pytest.mark.parametrize(
    "name",
    [
        'x; system("rm")',
        "a\\nb */ #include <evil>",
        "int",
        "1st layer",
        "größe",
        "__reserved",
        "device",
        "a" * 300,
    ],
)
def test_no_name_of_the_input_becomes_code(name):
    text = MODULE.replace("head.proj.weight", name.replace('"', '\\"'))
    files = emit(text).files
    declared = re.findall(r"ttnn::Tensor (.*);", files["src/model.hpp"])
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", field) for field in declared)
    assert not any("#include <evil>" in line for line in files["src/model.cpp"].splitlines())


def test_equal_names_stay_apart():
    text = MODULE.replace("head.proj.bias", "head_proj_weight")
    header = emit(text).files["src/model.hpp"]
    assert re.findall(r"ttnn::Tensor (head\w*);", header) == ["head_proj_weight"]
    text = text.replace("head.proj.weight", "head-proj-weight")
    header = emit(text).files["src/model.hpp"]
    assert re.findall(r"ttnn::Tensor (head\w*);", header) == [
        *("head_proj_weight", "head_proj_weight_2")
    ]


def test_a_function_called_main_does_not_become_the_program():
    text = MODULE.replace("@classify", "@main")
    assert "ForwardOutputs forward(" in emit(text).files["src/model.cpp"]


def chain(length):
    """A function of alternating ops on one weight per layer."""
    arguments = ["%x0: tensor<32x32xf32>"]
    lines = []
    for i in range(length):
        arguments.append(
            f"%w{i}: tensor<32x32xf32> {{ttcore.argument_type = #ttcore.argument_type<parameter>, "
            f'ttir.name = "blocks.{i // 40}.fc{i}.weight"}}'
        )
        lines.append(
            f'%x{i + 1} = "ttir.add"(%x{i}, %w{i}) '
            ": (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>"
        )
    return (
        f"func.func @f({', '.join(arguments)}) -> tensor<32x32xf32> {{\n"
        + "\n".join(lines)
        + f"\nreturn %x{length} : tensor<32x32xf32>\n}}"
    )


def test_a_long_function_is_divided_along_its_layers():
    source = emit(chain(200)).files["src/model.cpp"]
    parts = re.findall(r"^static .* (f_\w+)\(", source, re.MULTILINE)
    assert parts[0].startswith("f_blocks")
    assert len(parts) == len(set(parts)) >= 3
    bodies = re.split(r"^}$", source, flags=re.MULTILINE)
    assert max(body.count("\n") for body in bodies) < 400
    assert all(source.count(f" {part}(") == 2 for part in parts)


def test_a_constant_goes_into_the_data_folder():
    compiled = emit("""
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %table = "ttir.constant"() <{value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}>
    : () -> tensor<2x2xf32>
  %0 = "ttir.add"(%x, %table) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}""")
    (data,) = compiled.description.data
    assert data.array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert f'support::load_tensor("{data.name}"' in compiled.files["src/model.cpp"]


def test_a_splat_is_a_number_and_costs_nothing():
    compiled = emit("""
func.func @f(%x: tensor<8192x17000xbf16>) -> tensor<8192x17000xbf16> {
  %c = "ttir.constant"() <{value = dense<2.5> : tensor<8192x17000xbf16>}>
    : () -> tensor<8192x17000xbf16>
  %0 = "ttir.multiply"(%x, %c)
    : (tensor<8192x17000xbf16>, tensor<8192x17000xbf16>) -> tensor<8192x17000xbf16>
  return %0 : tensor<8192x17000xbf16>
}""")
    assert "ttnn::multiply(inputs.x, 2.5f)" in compiled.files["src/model.cpp"]
    assert not compiled.description.data
    assert len(compiled.flatbuffer) < 10_000


def test_a_file_includes_the_standard_headers_of_the_names_it_uses():
    text = """
    func.func @forward(%x: tensor<32x64xf32>) -> tensor<64x32xf32> {
      %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>}
        : (tensor<32x64xf32>) -> tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    """
    source = emit(text).files["src/model.cpp"]
    assert "int64_t" in source
    assert [line for line in source.splitlines() if line.startswith("#include <c")] == [
        "#include <cstdint>"
    ]


def test_the_parts_of_a_long_function_name_the_device_as_it_does():
    convolutions = "\n".join(
        f"""
        %{i + 1} = "ttir.conv2d"(%{i}, {"%w" if i * i // 7 % 2 else "%v"}) {{
            stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}}
          : (tensor<1x8x8x4xbf16>, tensor<4x4x3x3xbf16>) -> tensor<1x8x8x4xbf16>
          loc("layer{i // 20}/conv")"""
        for i in range(200)
    )
    weight = "tensor<4x4x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}"
    source = emit(f"""
    func.func @forward(%0: tensor<1x8x8x4xbf16>, %w: {weight}, %v: {weight})
        -> tensor<1x8x8x4xbf16> {{
      {convolutions}
      return %200 : tensor<1x8x8x4xbf16>
    }}
    """).files["src/model.cpp"]
    parts = re.findall(r"^static .*MeshDevice& (\S+?)(?:,|\))", source, re.MULTILINE)
    assert len(parts) > 1
    assert set(parts) == {"device"}


def test_prepared_weights_are_assigned_to_their_fields_at_once() -> None:
    source = Source("net.mlir", residual_network(3))
    text = compile_module(source, CompileOptions("net")).files["src/net.cpp"]
    assert re.search(r"constants\.stem\.weight = ttnn::[\w:]+prepare_conv_weights\(", text)
    assert not re.search(r"constants\.[\w.\[\]]+ = \w+;", text)
