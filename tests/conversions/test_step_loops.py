"""Steps of recurrent layers are a loop over calls of one function."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.foundation.diagnostics import Source

PARAMETER = "ttcore.argument_type = #ttcore.argument_type<parameter>"
STATE = "tensor<32x64xbf16>"
SEQUENCE = "tensor<{0}x32x64xbf16>"


def recurrence(steps: int, *, order: str = "forward", wanted: str = "all") -> str:
    """`h = tanh(x[t] + sin(h @ w))`, over a sequence whose parts are taken before the steps.

    Args:
        steps: how many there are.
        order: "backward" for a sequence that is read from its end.
        wanted: "all" for the states of all steps, else only the last one is returned.
    """
    sequence = SEQUENCE.format(steps)
    lines: list[str] = []
    for step in range(steps):
        lines += [
            f'%p{step} = "ttir.slice_static"(%x) <{{begins = [{step} : i32, 0 : i32, 0 : i32], '
            f"ends = [{step + 1} : i32, 32 : i32, 64 : i32], "
            f"step = [1 : i32, 1 : i32, 1 : i32]}}> : ({sequence}) -> tensor<1x32x64xbf16>",
            f'%x{step} = "ttir.reshape"(%p{step}) <{{shape = [32 : i32, 64 : i32]}}> : '
            f"(tensor<1x32x64xbf16>) -> {STATE}",
        ]
    state = "%h"
    taken = list(range(steps)) if order == "forward" else list(range(steps))[::-1]
    unary, binary = f"({STATE}) -> {STATE}", f"({STATE}, {STATE}) -> {STATE}"
    for step in taken:
        lines += [
            f'%m{step} = "ttir.matmul"({state}, %w) : ({STATE}, tensor<64x64xbf16>) -> {STATE}',
            f'%s{step} = "ttir.sin"(%m{step}) : {unary}',
            f'%a{step} = "ttir.add"(%s{step}, %x{step}) : {binary}',
            f'%c{step} = "ttir.cos"(%a{step}) : {unary}',
            f'%e{step} = "ttir.exp"(%c{step}) : {unary}',
            f'%t{step} = "ttir.tanh"(%e{step}) : {unary}',
        ]
        state = f"%t{step}"
    result = STATE
    if wanted == "all":
        result = f"tensor<{steps}x32x64xbf16>"
        for step in range(steps):
            lines.append(
                f'%r{step} = "ttir.reshape"(%t{step}) <{{shape = [1 : i32, 32 : i32, 64 : i32]}}> '
                f": ({STATE}) -> tensor<1x32x64xbf16>"
            )
        names = ", ".join(f"%r{step}" for step in range(steps))
        types = ", ".join(["tensor<1x32x64xbf16>"] * steps)
        lines.append(f'%all = "ttir.concat"({names}) <{{dim = 0 : si32}}> : ({types}) -> {result}')
        state = "%all"
    body = _numbered("\n  ".join(lines))
    return (
        f"func.func @forward(%x: {sequence}, %h: {STATE}, "
        f'%w: tensor<64x64xbf16> {{{PARAMETER}, ttir.name = "cell.weight"}}) -> {result} {{\n'
        f"  {body}\n  return {_numbered(state)} : {result}\n}}"
    )


def _numbered(text: str) -> str:
    """The text with numbers for values, which say nothing, where names are kept."""
    return re.sub(r"%([a-z])(\d+)", lambda m: f"%{ord(m[1])}{m[2]:0>2}", text)


def main_function(text: str) -> str:
    """The C++ of the entry function, in one line."""
    options = CompileOptions("model", style=clang_format_style())
    cpp = compile_module(Source("model.mlir", text), options).files["src/model.cpp"]
    return re.sub(r"\s+", " ", cpp[cpp.index("ForwardOutputs forward(") :])


def test_steps_are_a_loop_that_carries_the_state() -> None:
    """Parts of the sequence are taken where a step needs them, and numbers count with the step."""
    text = main_function(recurrence(6, wanted="last"))
    assert text.count("cell_step(") == 1
    assert re.search(r"for \(int32_t step = 0; step < 6; \+\+step\)", text), text
    assert "{step, 0, 0}" in text
    assert "{step + 1, 32, 64}" in text
    assert not re.search(r"\w+_\d+ = ", text), text


@pytest.mark.parametrize(
    ("order", "add"), [("forward", r"push_back\("), ("backward", r"insert\(\w+\.begin\(\), ")]
)
def test_what_all_steps_give_is_held_in_a_vector(order: str, add: str) -> None:
    text = main_function(recurrence(6, order=order))
    assert text.count("cell_step(") == 1
    assert re.search(add, text), text
    taken = re.search(r"concat\((\w+), 0\)", text)
    assert taken is not None, text
    assert f"std::vector<ttnn::Tensor> {taken[1]}" in text
    if order == "backward":
        assert "{5 - step, 0, 0}" in text


def test_two_steps_are_called_one_by_one() -> None:
    assert "for (" not in main_function(recurrence(2))


def test_a_first_state_of_another_name_keeps_its_variable() -> None:
    """The state before the first step is kept as well: the loop carries another variable."""
    state = "tensor<1x32x64xbf16>"
    unary = f"({state}) -> {state}"
    lines = [f'%10 = "ttir.reciprocal"(%h) : {unary}']
    for step in range(1, 6):
        chain = ["sin", "cos", "exp", "neg", "tanh"]
        lines.append(
            f'%{step}00 = "ttir.matmul"(%{step}0, %w) : ({state}, tensor<64x64xbf16>) -> {state}'
        )
        names = [f"%{step}0{place}" for place in range(len(chain))] + [f"%{step + 1}0"]
        lines += [
            f'{after} = "ttir.{op}"({before}) : {unary}'
            for op, (before, after) in zip(chain, pairwise(names), strict=True)
        ]
    states = ", ".join(f"%{step}0" for step in range(1, 7))
    types, result = ", ".join([state] * 6), "tensor<6x32x64xbf16>"
    lines.append(f'%7 = "ttir.concat"({states}) <{{dim = 0 : si32}}> : ({types}) -> {result}')
    body = "\n  ".join(lines)
    weight = f'tensor<64x64xbf16> {{{PARAMETER}, ttir.name = "cell.weight"}}'
    text = main_function(
        f"func.func @forward(%h: {state}, %w: {weight}) -> ({result}, {state}) {{\n"
        f"  {body}\n  return %7, %60 : {result}, {state}\n}}"
    )
    first = re.search(r"by_step\{(\w+)\}; ttnn::Tensor (\w+) = ttnn::Tensor\((\w+)\);", text)
    assert first is not None, text
    assert first[1] == first[3] != first[2]
    assert f"{first[2]} = cell_step(last_use({first[2]})" in text


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_steps_of_layers_share_the_weights_of_their_layer(kind: str) -> None:
    """The array of weights has an element for each layer, not for each step, so the steps of a
    layer are a loop."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    from ttcodegen.torch import export

    module = getattr(torch.nn, kind)(16, 24, num_layers=2)
    text = main_function(export(module, (torch.zeros(5, 2, 16),)))
    assert len(re.findall(r"for \(int32_t step = \d; step < 5; \+\+step\)", text)) == 2
    assert set(re.findall(r"constants\.\w+\[(\d+)\]", text)) == {"0", "1"}


def test_a_state_that_calls_pass_on_keeps_its_variables() -> None:
    """The second state of the first step is returned as well, so that there is no loop."""
    state = "tensor<1x32x64xbf16>"
    lines: list[str] = []
    first, second = "%h", "%c"
    for step in range(3):
        chain = [first]
        for place, name in enumerate(("sin", "cos", "exp", "neg", "abs", "cos", "tanh")):
            made = f"%{step + 1}0{place}"
            lines.append(f'{made} = "ttir.{name}"({chain[-1]}) : ({state}) -> {state}')
            chain.append(made)
        pair = f"({state}, {state}) -> {state}"
        lines += [
            f'%{step + 1}10 = "ttir.matmul"({chain[-1]}, %w) : '
            f"({state}, tensor<64x64xbf16>) -> {state}",
            f'%{step + 1}11 = "ttir.add"({second}, %{step + 1}10) : {pair}',
            f'%{step + 1}12 = "ttir.multiply"(%{step + 1}11, %{step + 1}10) : {pair}',
        ]
        first, second = f"%{step + 1}12", f"%{step + 1}11"
    body = "\n  ".join(lines)
    text = main_function(
        f"func.func @forward(%h: {state}, %c: {state}, "
        f'%w: tensor<64x64xbf16> {{{PARAMETER}, ttir.name = "cell.weight"}}) '
        f"-> ({state}, {state}, {state}) {{\n  {body}\n"
        f"  return {first}, {second}, %111 : {state}, {state}, {state}\n}}"
    )
    assert "for (" not in text
    assert "auto [cell, cell_scaled] = cell" in text, text
    # The first of the three is still used, so that the second one gets a variable.
    assert text.count("std::tie(cell_shifted, cell_scaled) = std::tuple_cat(") == 2, text
