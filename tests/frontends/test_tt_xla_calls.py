"""Custom calls of tt-xla whose kernels not every device has, against what they mean in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.running import refusals, run

Array = np.ndarray
GENERATOR = np.random.default_rng(5)


def drawn(*shape: int) -> Array:
    return GENERATOR.normal(size=shape).astype(np.float32)


def call(name: str, options: str, result: str, *operands: Array) -> Array:
    """Output of a custom call for these operands; `result` is its type."""
    kinds = {"float32": "f32", "int32": "i32", "uint32": "ui32"}
    types = [
        f"tensor<{''.join(f'{size}x' for size in each.shape)}{kinds[each.dtype.name]}>"
        for each in operands
    ]
    arguments = ", ".join(f"%x{index}: {type_}" for index, type_ in enumerate(types))
    names = ", ".join(f"%x{index}" for index in range(len(operands)))
    (found,) = run(
        f"""
    func.func @main({arguments}) -> {result} {{
      %r = stablehlo.custom_call @tt.{name}({names}) {{
        api_version = 0 : i32, mhlo.frontend_attributes = {{{options}}}
      }} : ({", ".join(types)}) -> {result}
      return %r : {result}
    }}""",
        *operands,
    )
    return found


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


@pytest.mark.parametrize("name", ["indexer_score", "indexer_score_dsa"])
@pytest.mark.parametrize(("keys", "start"), [(32, 0), (64, 32)])
def test_indexer_score_hides_later_keys(name: str, keys: int, start: int) -> None:
    query, key, weight = drawn(2, 4, 32, 16), drawn(2, 1, keys, 16), drawn(2, 4, 32, 1)
    found = call(
        name, f'chunk_start_idx = "{start}"', f"tensor<2x1x32x{keys}xf32>", query, key, weight
    )
    products = np.maximum(query @ key.transpose(0, 1, 3, 2), 0)
    expected = (products * weight).sum(1, keepdims=True)
    expected[..., np.arange(keys) > np.arange(32)[:, None] + start] = -np.inf
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_indexer_score_refuses_what_is_no_place() -> None:
    text = """
    func.func @main(%q: tensor<1x8x32x128xbf16>, %k: tensor<1x1x32x128xbf16>,
                    %w: tensor<1x8x32x1xbf16>) -> tensor<1x1x32x32xbf16> {
      %0 = stablehlo.custom_call @tt.indexer_score(%q, %k, %w) {
        mhlo.frontend_attributes = {chunk_start_idx = "START"}
      } : (tensor<1x8x32x128xbf16>, tensor<1x1x32x128xbf16>, tensor<1x8x32x1xbf16>)
        -> tensor<1x1x32x32xbf16>
      return %0 : tensor<1x1x32x32xbf16>
    }"""
    (message,) = refusals(text.replace("START", "first"))
    assert "'chunk_start_idx' has to be a number, found 'first'" in message
    (message,) = refusals(text.replace("START", "-1"))
    assert "'chunk_start_idx' is -1" in message


@pytest.mark.parametrize("given", [False, True])
def test_prefill_attends_to_latent_keys(given: bool) -> None:
    query, key = drawn(1, 4, 32, 64), drawn(1, 1, 32, 64)
    value = drawn(1, 1, 32, 32) if given else key[..., :32]
    options = f'head_dim_v = "32", is_causal = "True", has_value = "{given}"'
    operands = [query, key, value] if given else [query, key]
    found = call("flash_mla_prefill", options, "tensor<1x4x32x32xf32>", *operands)
    scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(64)
    scores = np.where(np.tril(np.ones((32, 32), bool)), scores, -np.inf)
    np.testing.assert_allclose(found, softmax(scores) @ value, rtol=1e-3, atol=1e-3)


def test_prefill_adds_a_mask() -> None:
    query, key, mask = drawn(1, 4, 32, 64), drawn(1, 4, 32, 64), drawn(1, 1, 32, 32)
    options = 'head_dim_v = "64", is_causal = "False", has_attention_mask = "True", scale = "0.25"'
    found = call("flash_mla_prefill", options, "tensor<1x4x32x64xf32>", query, key, mask)
    scores = query @ key.transpose(0, 1, 3, 2) * 0.25 + mask
    np.testing.assert_allclose(found, softmax(scores) @ key, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_sparse_attention_skips_sentinels(kind: str) -> None:
    query, keys = drawn(1, 4, 32, 64), drawn(1, 1, 64, 64)
    rows = [GENERATOR.permutation(64)[:16] for _ in range(32)]
    indices = np.asarray(rows, np.int64)[None, None]
    indices[..., 12:] = np.where(GENERATOR.random((1, 1, 32, 4)) < 0.5, -1, indices[..., 12:])
    found = call(
        "sparse_sdpa",
        'v_dim = "32", k_chunk_size = "32"',
        "tensor<1x4x32x32xf32>",
        query,
        keys,
        indices.astype(kind),
    )
    scores = query @ keys.transpose(0, 1, 3, 2) / np.sqrt(64)
    hidden = np.full((32, 64), True)
    for row, places in enumerate(indices[0, 0]):
        hidden[row, places[places >= 0]] = False
    expected = softmax(np.where(hidden, -np.inf, scores)) @ keys[..., :32]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_largest_indices() -> None:
    value = drawn(2, 64)
    found = call("topk_large_indices", 'k = "16"', "tensor<2x16xui32>", value)
    np.testing.assert_array_equal(found, np.argsort(-value, -1, kind="stable")[:, :16])


def test_sparse_products() -> None:
    rows, weights = drawn(2, 3, 32, 16), drawn(1, 4, 16, 8)
    sent = (GENERATOR.random((2, 3, 1, 4)) < 0.5).astype(np.float32)
    options = 'is_input_a_sparse = "False", is_input_b_sparse = "True", nnz = "0"'
    found = call("sparse_matmul", options, "tensor<2x3x1x4x32x8xf32>", rows, weights, sent)
    expected = np.einsum("abmk,ekn->abemn", rows, weights[0]) * sent.reshape(2, 3, 4, 1, 1)
    np.testing.assert_allclose(found, expected[:, :, None], rtol=1e-3, atol=1e-3)

    rows = drawn(6, 4, 32, 16)
    options = 'is_input_a_sparse = "True", is_input_b_sparse = "False"'
    found = call(
        "sparse_matmul", options, "tensor<6x4x32x8xf32>", rows, weights, sent.reshape(1, 1, 6, 4)
    )
    expected = np.einsum("aemk,ekn->aemn", rows, weights[0]) * sent.reshape(6, 4, 1, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_what_experts_made_on_one_device() -> None:
    made, owners = drawn(4, 2, 3, 8), np.ones((1, 1, 4, 1), np.int32)
    experts = GENERATOR.integers(0, 4, size=(1, 2, 3, 2)).astype(np.int32)
    options = 'num_devices = "1", cluster_axis = "0", num_experts_per_tok = "2"'
    found = call("all_to_all_combine", options, "tensor<2x2x3x8xf32>", made, experts, owners)
    for place, batch, row in np.ndindex(2, 2, 3):
        expected = made[experts[0, batch, row, place], batch, row]
        np.testing.assert_allclose(found[place, batch, row], expected, rtol=1e-3, atol=1e-3)


COMPOSITE = """
func.func @main({arguments}) -> ({results}) {{
  %r:{count} = stablehlo.composite "tenstorrent.{name}" {names} {{
    composite_attributes = {{{options}}}, decomposition = @other
  }} : ({types}) -> ({results})
  return {returned} : {results}
}}
func.func private @other({arguments}) -> ({results}) {{
  {zeros}
  return {wrong} : {results}
}}"""
"""A composite whose decomposition gives zeros."""


def composite(name: str, options: str, results: list[Array], *operands: Array) -> list[Array]:
    """Outputs of a composite; `results` gives their shapes."""
    types = [f"tensor<{'x'.join(map(str, each.shape))}xf32>" for each in operands]
    made = [f"tensor<{'x'.join(map(str, each.shape))}xf32>" for each in results]
    text = COMPOSITE.format(
        name=name,
        options=options,
        count=len(made),
        arguments=", ".join(f"%x{index}: {type_}" for index, type_ in enumerate(types)),
        names=", ".join(f"%x{index}" for index in range(len(types))),
        types=", ".join(types),
        results=", ".join(made),
        returned=", ".join(f"%r#{index}" for index in range(len(made))),
        zeros="\n  ".join(
            f"%z{index} = stablehlo.constant dense<0.0> : {type_}"
            for index, type_ in enumerate(made)
        ),
        wrong=", ".join(f"%z{index}" for index in range(len(made))),
    )
    return list(run(text, *operands))


def test_a_step_of_adamw() -> None:
    param, grad, first = drawn(3, 4), drawn(3, 4), drawn(3, 4)
    second = np.abs(drawn(3, 4))
    numbers = {"lr": 0.1, "beta1": 0.5, "beta2": 0.75, "beta1_pow": 0.25, "beta2_pow": 0.5}
    numbers |= {"epsilon": 0.01, "weight_decay": 0.2}
    options = ", ".join(f"{name} = {value} : f32" for name, value in numbers.items())
    found = composite("adamw", options, [param] * 3, param, grad, first, second)
    moved = [0.5 * first + 0.5 * grad, 0.75 * second + 0.25 * grad * grad]
    step = 0.1 * (moved[0] / 0.75) / (np.sqrt(moved[1] / 0.5) + 0.01)
    for array, expected in zip(found, [param * 0.98 - step, *moved], strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)


def test_attention_of_training_and_its_gradient() -> None:
    query, key, value, arrived = (drawn(1, 2, 8, 4) for _ in range(4))
    mask = np.zeros((1, 1, 8, 8), np.float32)
    kept = np.zeros((1, 2, 8, 32), np.float32)
    scores = query @ key.transpose(0, 1, 3, 2) / 2
    logarithms = np.log(np.exp(scores).sum(-1, keepdims=True))
    options = "mask_type = 2 : i32, dropout_probability = 0.0 : f32"
    output, found = composite("sdpa_fw", options, [query, kept], query, key, value, mask)
    np.testing.assert_allclose(output, softmax(scores) @ value, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[..., :1], logarithms, rtol=1e-3, atol=1e-3)
    operands = [arrived, output, query, key, value, found]
    gradients = composite("sdpa_bw", "mask_type = 0 : i32", [query] * 3, *operands)
    expected = softmax(scores).transpose(0, 1, 3, 2) @ arrived
    np.testing.assert_allclose(gradients[2], expected, rtol=1e-3, atol=1e-3)


def test_annotations_change_nothing() -> None:
    x = drawn(1, 4, 8)
    options = 'xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>"'
    found = call("sharding_constraint", options, "tensor<1x4x8xf32>", x)
    np.testing.assert_array_equal(found, x)
    found = call("weight_dtype_override", 'ttcore.weight_dtype = "bfp_bf8"', "tensor<1x4x8xf32>", x)
    np.testing.assert_array_equal(found, x)


def test_attention_of_rank_three() -> None:
    query, key, value = drawn(4, 32, 64), drawn(4, 32, 64), drawn(4, 32, 64)
    found = call(
        "scaled_dot_product_attention",
        'is_causal = "True", scale = "0.25"',
        "tensor<4x32x64xf32>",
        query,
        key,
        value,
    )
    scores = np.where(np.tril(np.ones((32, 32), bool)), query @ key.transpose(0, 2, 1) / 4, -np.inf)
    np.testing.assert_allclose(found, softmax(scores) @ value, rtol=1e-3, atol=1e-3)
