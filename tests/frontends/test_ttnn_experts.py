# ruff: noqa: E501 -- calls as tools print them
"""Calls of experts whose weights were put in the order of the cores before."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.test_ttnn_composites import close, drawn, run
from ttcodegen.foundation.diagnostics import CompileError

TOKENS, EXPERTS, HIDDEN, INNER, CHOSEN = 8, 4, 64, 32, 2
W0 = f"tensor<1x{EXPERTS}x{HIDDEN}x{INNER}xf32>"
W2 = f"tensor<1x{EXPERTS}x{INNER}x{HIDDEN}xf32>"
B0 = f"tensor<1x{EXPERTS}x{INNER}xf32>"
B2 = f"tensor<1x{EXPERTS}x{HIDDEN}xf32>"
FIRST = f"tensor<8x1x{EXPERTS}x2x96x{INNER}xf32>"
SECOND = f"tensor<8x1x{EXPERTS}x2x64x{INNER}xf32>"
RESULT = f"tensor<{CHOSEN}x{TOKENS}x{HIDDEN}xf32>"
GIVEN = (
    f"%x: tensor<1x{TOKENS}x{HIDDEN}xf32>, %i: tensor<1x{TOKENS}x{CHOSEN}xsi32>, "
    f"%s: tensor<1x{TOKENS}x{CHOSEN}xf32>, %m: tensor<1x{EXPERTS}xsi32>"
)
TYPES = ", ".join(part.split(": ")[1] for part in GIVEN.split(", "))
PARAMETER = "{ttcore.argument_type = #ttcore.argument_type<parameter>}"
CORES = "mux_core_range_set = #ttnn.core_range_set<[#ttnn.core_range<(1,1), (3,3)>]>"
SIZES = f"hidden_size = {HIDDEN} : ui32, intermediate_size = {INNER} : ui32"
DEVICE = '%d = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device'


def call(activation: str = "silu") -> str:
    return (
        '"ttnn.moe_compute"(%x, %i, %s, %m, %p, %q, %out, %sem, %d) <{operandSegmentSizes = '
        "array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1>, layer_id = 0 : ui32, output_height_shard_dim = 4 : ui32, "
        f"intermediate_size = {INNER} : ui32, has_bias = false, activation_function = "
        f"#ttcore.moe_activation_function<{activation}>, cluster_axis = 1 : ui32, {CORES}}}> : ({TYPES}, {FIRST}, "
        f"{SECOND}, {RESULT}, !ttnn.global_semaphore, !ttnn.device) -> {RESULT}"
    )


MADE = f"""
    %sem = "ttnn.allocate_moe_compute_semaphore"(%d) <{{output_height_shard_dim = 4 : ui32, hidden_size = {HIDDEN} : ui32, initial_value = 0 : ui32, {CORES}}}> : (!ttnn.device) -> !ttnn.global_semaphore
    %out = "ttnn.empty"(%d) <{{shape = #ttnn.shape<{CHOSEN}x{TOKENS}x{HIDDEN}>}}> : (!ttnn.device) -> {RESULT}"""
PREPARED = f"""
    %p = "ttnn.prepare_moe_compute_w0_w1_weights"(%w0, %w1, %b0, %b1, %d) <{{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>, {SIZES}}}> : ({W0}, {W0}, {B0}, {B0}, !ttnn.device) -> {FIRST}
    %q = "ttnn.prepare_moe_compute_w2_weights"(%w2, %b2, %d) <{{{SIZES}}}> : ({W2}, {B2}, !ttnn.device) -> {SECOND}"""
BIASED = f"""
func.func @f({GIVEN}, %w0: {W0} {PARAMETER}, %w1: {W0} {PARAMETER}, %w2: {W2} {PARAMETER}, %b0: {B0} {PARAMETER}, %b1: {B0} {PARAMETER}, %b2: {B2} {PARAMETER}) -> {RESULT} {{
    {DEVICE}{MADE}{PREPARED}
    %0 = {call("swiglu")}
    return %0 : {RESULT}
}}
"""
"""With biases, and weights that are put in order in the same function."""
CACHED = f"""
module {{
  func.func private @f_const_eval_0(%u0: {W0}, %u1: {W0}) -> {FIRST} attributes {{const_eval}} {{
    {DEVICE}
    %r = "ttnn.to_layout"(%u1) <{{layout = #ttnn.layout<row_major>}}> : ({W0}) -> {W0}
    %0 = "ttnn.prepare_moe_compute_w0_w1_weights"(%u0, %r, %d) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>, {SIZES}}}> : ({W0}, {W0}, !ttnn.device) -> {FIRST}
    return %0 : {FIRST}
  }}
  func.func private @f_const_eval_1(%u: {W2}) -> {SECOND} attributes {{const_eval}} {{
    {DEVICE}
    %0 = "ttnn.prepare_moe_compute_w2_weights"(%u, %d) <{{{SIZES}}}> : ({W2}, !ttnn.device) -> {SECOND}
    return %0 : {SECOND}
  }}
  func.func @f({GIVEN}, %w0: {W0} {PARAMETER}, %w1: {W0} {PARAMETER}, %w2: {W2} {PARAMETER}) -> {RESULT} {{
    {DEVICE}{MADE}
    %c = ttcore.load_cached(@f_const_eval_0, [%w0, %w1]) : ({W0}, {W0}) -> {FIRST}
    %p = "ttnn.to_memory_config"(%c) : ({FIRST}) -> {FIRST}
    %q = ttcore.load_cached(@f_const_eval_1, [%w2]) : ({W2}) -> {SECOND}
    %0 = {call()}
    return %0 : {RESULT}
  }}
}}
"""
"""Weights that are put in order once, in functions of their own."""


def experts() -> tuple[np.ndarray, ...]:
    named = np.random.default_rng(3).integers(0, EXPERTS, (1, TOKENS, CHOSEN)).astype(np.int32)
    return (
        drawn(1, TOKENS, HIDDEN),
        named,
        drawn(1, TOKENS, CHOSEN),
        np.zeros((1, EXPERTS), np.int32),
        drawn(1, EXPERTS, HIDDEN, INNER) / 8,
        drawn(1, EXPERTS, HIDDEN, INNER)[:, ::-1] / 8,
        drawn(1, EXPERTS, INNER, HIDDEN) / 6,
    )


def test_weights_are_found_in_functions_that_run_once() -> None:
    x, named, scores, owners, w0, w1, w2 = experts()
    (found,) = run(CACHED, x, named, scores, owners, w0, w1, w2)
    gate, up = x @ w0[0], x @ w1[0]
    made = gate / (1 + np.exp(-gate)) * up @ w2[0]
    rows = np.arange(TOKENS)
    close(found, np.stack([made[named[0, :, k], rows] for k in range(CHOSEN)]))


def test_biases_are_found_with_the_weights() -> None:
    arrays = experts()
    biases = drawn(1, EXPERTS, INNER), -drawn(1, EXPERTS, INNER), drawn(1, EXPERTS, HIDDEN)
    x, named, _, _, w0, w1, w2 = arrays
    (found,) = run(BIASED, *arrays, *biases)
    gate = np.minimum(x @ w0[0] + biases[0][0][:, None], 7)
    up = np.clip(x @ w1[0] + biases[1][0][:, None], -7, 7)
    made = (up + 1) * gate / (1 + np.exp(-1.702 * gate)) @ w2[0] + biases[2][0][:, None]
    rows = np.arange(TOKENS)
    close(found, np.stack([made[named[0, :, k], rows] for k in range(CHOSEN)]))


def test_weights_of_unknown_origin_are_refused() -> None:
    text = f"""
func.func @f({GIVEN}, %p: {FIRST} {PARAMETER}, %q: {SECOND} {PARAMETER}) -> {RESULT} {{
    {DEVICE}{MADE}
    %0 = {call()}
    return %0 : {RESULT}
}}
"""
    with pytest.raises(CompileError, match="the module does not say what they were before"):
        run(text)
    cut = BIASED.replace("(%x, %i, %s, %m, %p, %q, %out, %sem, %d)", "(%x, %i, %s, %m, %p)")
    with pytest.raises(CompileError, match="takes six tensors, found 5"):
        run(
            cut.replace(
                f", {FIRST}, {SECOND}, {RESULT}, !ttnn.global_semaphore, !ttnn.device)",
                f", {FIRST})",
            )
        )
