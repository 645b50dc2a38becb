"""The builder: a whole file as a pass would write it, and what does not show in its text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.test import TestOp as AnyOp

from tests.emitc.conftest import only_file
from ttcodegen.emitc.builder import EmitCBuilder, Text, open_file, type_of
from ttcodegen.emitc.operators import ComparisonPredicate
from ttcodegen.emitc.printer import print_module
from ttcodegen.foundation.diagnostics import set_source_offset, source_offset

# What the file below calls, so that it can be compiled.
DECLARATIONS = """
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>
namespace ttnn {
struct Tensor {};
struct MeshDevice {};
enum class BufferType { DRAM, L1 };
struct MemoryConfig { BufferType buffer_type; };
Tensor linear(const Tensor&, const Tensor&, const Tensor&, const std::optional<MemoryConfig>&);
Tensor full(float value, MeshDevice& device);
void deallocate(const Tensor&);
std::vector<Tensor> split(const Tensor&, int64_t);
std::tuple<Tensor, Tensor> topk(const Tensor&);
}  // namespace ttnn
"""

EXPECTED = """\
// A digit classifier.
namespace mnist {

const ttnn::MemoryConfig kDram{ttnn::BufferType::DRAM};

struct ForwardInputs {
    ttnn::Tensor x;
};

// Parameters of the layers.
struct ForwardWeights {
    ttnn::Tensor linear_relu_stack_0_weight;
    ttnn::Tensor linear_relu_stack_0_bias;
};

struct ForwardOutputs {
    ttnn::Tensor values;
    ttnn::Tensor indices;
};

ttnn::Tensor twice(const ttnn::Tensor& whole);
ttnn::Tensor half(const ttnn::Tensor& whole);

ForwardOutputs forward(const ForwardInputs& inputs, const ForwardWeights& weights, \
ttnn::MeshDevice& device) {
    // linear_relu_stack.0
    ttnn::Tensor hidden = ttnn::linear(inputs.x, weights.linear_relu_stack_0_weight, \
weights.linear_relu_stack_0_bias, kDram);
    ttnn::deallocate(inputs.x);

    ttnn::Tensor infinity = ttnn::full(-std::numeric_limits<float>::infinity(), device);
    std::vector<ttnn::Tensor> parts = ttnn::split(hidden, -2147483647 - 1);
    ttnn::Tensor first = parts[0];
    auto [values, indices_0] = ttnn::topk(first);
    std::tuple<ttnn::Tensor, ttnn::Tensor> topk = ttnn::topk(parts[1]);
    ttnn::deallocate(std::get<0>(topk));
    ttnn::deallocate(infinity);
    return ForwardOutputs{.values = values, .indices = indices_0};
}

ttnn::Tensor half(const ttnn::Tensor& whole) {
    return ttnn::split(whole, 2).front();
}

}  // namespace mnist
"""


def build_forward(source: EmitCBuilder) -> None:
    body = source.function(
        "forward",
        [
            ("inputs", "const ForwardInputs&"),
            ("weights", "const ForwardWeights&"),
            ("device", "ttnn::MeshDevice&"),
        ],
        "ForwardOutputs",
    )
    inputs, weights, device = body.arguments
    x = body.member(inputs, "x", "ttnn::Tensor")
    weight, bias = (
        body.member(weights, f"linear_relu_stack_0_{part}", "ttnn::Tensor")
        for part in ("weight", "bias")
    )
    body.comment("linear_relu_stack.0")
    hidden = body.call("ttnn::linear", x, weight, bias, Text("kDram"), name="hidden")
    body.call_void("ttnn::deallocate", x)
    body.blank()
    minus_infinity = body.constant(float("-inf"), "float")
    infinity = body.call("ttnn::full", minus_infinity, device, name="infinity")
    smallest = body.constant(-(2**31), "int32_t")
    parts = body.call(
        "ttnn::split", hidden, smallest, type="std::vector<ttnn::Tensor>", name="parts"
    )
    first = body.subscript(parts, 0, "ttnn::Tensor", name="first")
    values, indices = body.call_several(
        "ttnn::topk", first, types=["ttnn::Tensor"] * 2, names=["values", "indices_0"]
    )
    pair = body.call(
        "ttnn::topk",
        body.subscript(parts, 1, "ttnn::Tensor"),
        type="std::tuple<ttnn::Tensor, ttnn::Tensor>",
    )
    body.call_void("ttnn::deallocate", body.get(pair, 0, "ttnn::Tensor"))
    body.call_void("ttnn::deallocate", infinity)
    body.return_(body.aggregate("ForwardOutputs", {"values": values, "indices": indices}))


def mnist() -> ModuleOp:
    module = ModuleOp([])
    source = open_file(module, "src/mnist.cpp")
    source.comment("A digit classifier.")
    with source.namespace("mnist"):
        source.global_constant("kDram", "ttnn::MemoryConfig", "{ttnn::BufferType::DRAM}")
        source.struct("ForwardInputs", [("x", "ttnn::Tensor")])
        fields = [(f"linear_relu_stack_0_{part}", "ttnn::Tensor") for part in ("weight", "bias")]
        source.struct("ForwardWeights", fields, comment="Parameters of the layers.")
        outputs = [("values", "ttnn::Tensor"), ("indices", "ttnn::Tensor")]
        source.struct("ForwardOutputs", outputs)
        signature = ("half", [("whole", "const ttnn::Tensor&")], "ttnn::Tensor")
        source.declare("twice", *signature[1:])
        source.declare_ahead("half")
        build_forward(source)
        half = source.function(*signature)
        halves = half.call(
            "ttnn::split", half.arguments[0], Text("2"), type="std::vector<ttnn::Tensor>", pure=True
        )
        front = half.call_method(halves, "front", type="ttnn::Tensor", pure=True)
        half.return_(front)
    return module


def test_a_file_reads_as_if_written_by_hand() -> None:
    assert only_file(mnist()) == EXPECTED


def test_the_same_text_each_time() -> None:
    assert print_module(mnist()) == print_module(mnist())


def test_the_file_compiles_without_a_warning(check_syntax: Callable[[str], str]) -> None:
    assert check_syntax(DECLARATIONS + only_file(mnist())) == ""


def test_ops_have_the_place_of_their_origin() -> None:
    origin = AnyOp()
    origin.location = FileLineColLoc(StringAttr("model.mlir"), IntAttr(3), IntAttr(5))
    set_source_offset(origin, 42)
    module = ModuleOp([])
    body = open_file(module, "f.cpp").function("f", [("c", "bool")])
    body.origins = (origin,)
    body.call("f2", body.constant(1, "int32_t"))
    (branch,) = body.if_(body.arguments[0])
    branch.end_block()
    operations = [*body.block.ops, *branch.block.ops]
    assert len(operations) == 4
    assert {op.location for op in operations} == {origin.location}
    assert {source_offset(op) for op in operations} == {42}


def test_types_of_values() -> None:
    body = open_file(ModuleOp([]), "f.cpp").function("f", [("x", "const T&"), ("p", "T*")])
    x, pointer = body.arguments
    assert [type_of(x), type_of(pointer)] == ["const T&", "T*"]
    assert type_of(body.compare(ComparisonPredicate.LT, x, x)) == "bool"


def test_names_of_the_input_cannot_become_namespaces() -> None:
    source = open_file(ModuleOp([]), "f.cpp")
    with pytest.raises(ValueError, match="is not the name of a namespace"), source.namespace("a {"):
        pass
