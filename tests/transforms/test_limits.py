"""Small inputs that describe exponential work are refused where they do, before the work."""

from __future__ import annotations

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.naming.sources import location_name
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.functions import InlinePass

T = "tensor<4xf32>"


def exp_at(location: str) -> str:
    return (
        f'func.func @f(%a: {T}) -> {T} {{ %0 = "ttir.exp"(%a) : ({T}) -> {T} {location}\n'
        f"return %0 : {T} }}\n"
    )


def doubling(first: str, next_: str, sigil: str = "#") -> str:
    """Thirty aliases, each of which names the one before it twice."""
    lines = [f"{sigil}x0 = {first}"]
    lines += [f"{sigil}x{i} = {next_.replace('@', f'{sigil}x{i - 1}')}" for i in range(1, 31)]
    return "\n".join(lines) + "\n"


def refusal(text: str, target: str = "ttnn") -> str:
    source = Source("in.mlir", text)
    with pytest.raises(CompileError) as caught:
        compile_module(source, CompileOptions("m", target))
    return caught.value.render(source).splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        doubling('loc("f":1:1)', "loc(fused[@, @])") + exp_at("loc(#x30)"),
        doubling('loc("f":1:1)', "loc(callsite(@ at @))") + exp_at("loc(#x30)"),
        doubling("1 : i32", "[@, @]") + exp_at("").replace('"(%a)', '"(%a) {x = #x30}'),
        doubling("f32", "tuple<@, @>", "!") + exp_at("").replace(f"-> {T} \n", "-> !x30\n"),
    ],
)
def test_aliases_that_double(text: str) -> None:
    message = refusal(text)
    assert message.startswith("in.mlir:17:1: error: alias '")
    assert message.endswith("x16' expands to more than 100000 parts")


def test_aliases_that_are_nested_deeply() -> None:
    lines = ['#x0 = loc("f":1:1)', *(f"#x{i} = loc(fused[#x{i - 1}])" for i in range(1, 500))]
    message = refusal("\n".join(lines) + "\n" + exp_at("loc(#x499)"))
    assert message == "in.mlir:101:1: error: alias '#x100' is nested more than 100 deep"


def test_many_locations_side_by_side_are_read() -> None:
    lines = [f'#x{i} = loc("f":{i}:1)' for i in range(5000)]
    fused = ", ".join(f"#x{i}" for i in range(5000))
    text = "\n".join(lines) + f"\n#all = loc(fused[{fused}])\n" + exp_at("loc(#all)")
    compile_module(Source("in.mlir", text), CompileOptions("m"))


def test_names_are_found_without_looking_at_all_parts() -> None:
    text = doubling('loc("f":1:1)', "loc(fused[@, @])").splitlines()[:16]
    module = parse_module(Source("in.mlir", "\n".join(text) + "\n" + exp_at("loc(#x15)")))
    (op, _) = next(iter(module.ops)).body.block.ops  # type: ignore[attr-defined]
    assert location_name(op.location) is None
    module = parse_module(Source("in.mlir", exp_at('loc(fused[unknown, "b"("c"), "d"])')))
    (op, _) = next(iter(module.ops)).body.block.ops  # type: ignore[attr-defined]
    assert location_name(op.location) == "b"


def test_functions_that_call_the_next_twice() -> None:
    functions = [exp_at("").replace("@f", "private @f25")]
    for i in range(25):
        visibility = "private " if i else ""
        functions.append(
            f"func.func {visibility}@f{i}(%a: {T}) -> {T} {{\n"
            f"%0 = call @f{i + 1}(%a) : ({T}) -> {T}\n%1 = call @f{i + 1}(%0) : ({T}) -> {T}\n"
            f"return %1 : {T} }}"
        )
    text = "\n".join(functions)
    assert " error: the calls of '@f7' expand to more than 1000000 operations" in refusal(text)
    module = parse_module(Source("in.mlir", "\n".join([functions[0], *functions[15:]])
                                 .replace("private @f14", "@f14")))  # fmt: skip
    InlinePass().apply(load_dialects(), module)
    (entry,) = module.ops
    assert sum(op.name == "ttir.exp" for op in entry.walk()) == 2**11


BATCH = 2**31
SAMPLING = f"""func.func @f(%x: tensor<{BATCH}x32xbf16>, %i: tensor<{BATCH}x32xi32>,
    %k: tensor<{BATCH}xi32>, %p: tensor<{BATCH}xbf16>, %t: tensor<{BATCH}xbf16>)
    -> tensor<{BATCH}xi32> {{
  %0 = "ttir.sampling"(%x, %i, %k, %p, %t)
      : (tensor<{BATCH}x32xbf16>, tensor<{BATCH}x32xi32>, tensor<{BATCH}xi32>,
         tensor<{BATCH}xbf16>, tensor<{BATCH}xbf16>) -> tensor<{BATCH}xi32>
  return %0 : tensor<{BATCH}xi32>
}}
"""


def test_a_batch_that_becomes_an_op_for_every_few_rows() -> None:
    assert refusal(SAMPLING) == (
        "in.mlir:4:8: error: 'ttir.sampling' of this size would become more than 20000 operations"
    )


def test_device_programs_of_tensors_larger_than_the_device() -> None:
    huge = f"tensor<{BATCH}x{BATCH}xf32>"
    message = refusal(exp_at("").replace(T, huge), "ttmetal")
    assert message.startswith(f"in.mlir:1:14: error: a tensor of type {huge} does not fit into")
    numbers = "tensor<300000000xf32>"
    text = f"""func.func @f() -> {numbers} {{
  %0 = "ttir.arange"() <{{start = 0 : si64, end = 300000000 : si64, step = 1 : si64,
      arange_dimension = 0 : i64}}> : () -> {numbers}
  return %0 : {numbers}
}}
"""
    assert refusal(text, "ttmetal").startswith(f"in.mlir:2:8: error: a tensor of type {numbers}")
