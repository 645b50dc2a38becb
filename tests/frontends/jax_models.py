"""Models of JAX with weights from a seed: small, but of the shape of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

Array = jax.Array


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        return nn.Dense(10)(nn.relu(nn.Dense(128)(x)))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(8, (3, 3))(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.Conv(16, (3, 3), strides=2, use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        return nn.Dense(10)(x.mean(axis=(1, 2)))


class ResidualBlock(nn.Module):
    features: int
    stride: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        conv = partial(nn.Conv, self.features, use_bias=False)
        norm = partial(nn.BatchNorm, use_running_average=True)
        y = nn.relu(norm()(conv((3, 3), self.stride, padding=1)(x)))
        y = norm()(conv((3, 3), padding=1)(y))
        if x.shape != y.shape:
            x = norm(name="norm_proj")(conv((1, 1), self.stride, name="conv_proj")(x))
        return nn.relu(x + y)


class ResNet18(nn.Module):
    """As in the examples of flax, a quarter as wide."""

    width: int = 16

    @nn.compact
    def __call__(self, x: Array) -> Array:
        x = nn.Conv(self.width, (7, 7), 2, padding=3, use_bias=False, name="conv_init")(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True, name="bn_init")(x))
        x = nn.max_pool(x, (3, 3), (2, 2), padding=((1, 1), (1, 1)))
        for stage in range(4):
            for index in range(2):
                stride = 2 if stage > 0 and index == 0 else 1
                x = ResidualBlock(self.width * 2**stage, stride)(x)
        return nn.Dense(10)(jnp.mean(x, axis=(1, 2)))


class Block(nn.Module):
    """A block of an encoder as flax's own layers write it."""

    heads: int = 2

    @nn.compact
    def __call__(self, x: Array) -> Array:
        size = x.shape[-1]
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, name="attention")(y, y)
        y = nn.Dense(4 * size)(nn.LayerNorm()(x))
        return x + nn.Dense(size)(nn.gelu(y))


# Written without a library, as many decoders are


def _layer_norm(p: Any, x: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]


def _heads(x: Array, heads: int) -> Array:
    batch, length, size = x.shape
    return x.reshape(batch, length, heads, size // heads).transpose(0, 2, 1, 3)


def _cached(cache: Any, key: Array, value: Array, position: Array) -> Any:
    start = (0, 0, position, 0)
    return {
        "key": jax.lax.dynamic_update_slice(cache["key"], key, start),
        "value": jax.lax.dynamic_update_slice(cache["value"], value, start),
    }


def decoder(params: Any, token: Array, position: Array, caches: Any) -> Any:
    """One step of a decoder like GPT-2, with the caches of keys and values as arguments."""
    x = params["wte"][token] + params["wpe"][position]
    updated: list[Any] = []
    for p, cache in zip(params["h"], caches, strict=True):
        qkv = _layer_norm(p["ln_1"], x) @ p["attn"]["kernel"] + p["attn"]["bias"]
        query, key, value = (_heads(part, 2) for part in jnp.split(qkv, 3, axis=-1))
        cache = _cached(cache, key, value, position)
        scores = query @ cache["key"].swapaxes(-1, -2) / jnp.sqrt(query.shape[-1]).astype(x.dtype)
        seen = jnp.arange(scores.shape[-1]) <= position
        weights = jax.nn.softmax(jnp.where(seen, scores, jnp.finfo(x.dtype).min), axis=-1)
        y = (weights @ cache["value"]).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + y @ p["proj"]["kernel"] + p["proj"]["bias"]
        y = jax.nn.gelu(_layer_norm(p["ln_2"], x) @ p["fc"]["kernel"] + p["fc"]["bias"])
        x = x + y @ p["out"]["kernel"] + p["out"]["bias"]
        updated.append(cache)
    logits = _layer_norm(params["ln_f"], x) @ params["wte"].T
    return {"logits": logits, "token": jnp.argmax(logits, axis=-1), "caches": updated}


def _rms_norm(scale: Array, x: Array) -> Array:
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide**2, axis=-1, keepdims=True) + 1e-6)
    return wide.astype(x.dtype) * scale


def _rotated(x: Array, cosine: Array, sine: Array) -> Array:
    first, second = jnp.split(x, 2, axis=-1)
    return x * cosine + jnp.concatenate([-second, first], axis=-1) * sine


def llama(params: Any, tokens: Array) -> Array:
    """A decoder like Llama, over a whole prompt: rotary embedding, grouped heads, silu."""
    x = jnp.take(params["embed"], tokens, axis=0)
    length, heads, groups, size = tokens.shape[1], 4, 2, 32
    angles = jnp.arange(length)[:, None] * 1e4 ** (-jnp.arange(0, size, 2) / size)
    angles = jnp.concatenate([angles, angles], axis=-1)
    cosine, sine = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    for p in params["layers"]:
        y = _rms_norm(p["input_norm"], x)
        query = _rotated(_heads(y @ p["q_proj"], heads), cosine, sine)
        key = _rotated(_heads(y @ p["k_proj"], groups), cosine, sine)
        value = _heads(y @ p["v_proj"], groups)
        key, value = (jnp.repeat(each, heads // groups, axis=1) for each in (key, value))
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * size**-0.5
        causal = jnp.tril(jnp.ones((length, length), bool))
        scores = jnp.where(causal, scores, jnp.finfo(scores.dtype).min)
        weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
        y = jnp.einsum("bhqk,bhkd->bhqd", weights, value)
        x = x + y.transpose(0, 2, 1, 3).reshape(x.shape) @ p["o_proj"]
        y = _rms_norm(p["post_norm"], x)
        x = x + (jax.nn.silu(y @ p["gate_proj"]) * (y @ p["up_proj"])) @ p["down_proj"]
    return _rms_norm(params["norm"], x) @ params["lm_head"]


# Weights from a seed


class Draw:
    """Draws weights one after another."""

    def __init__(self, dtype: Any) -> None:
        self._key, self.dtype = jax.random.PRNGKey(0), dtype

    def __call__(self, *shape: int, scale: float | None = None) -> Array:
        self._key, key = jax.random.split(self._key)
        scale = shape[0] ** -0.5 if scale is None else scale
        return (jax.random.normal(key, shape) * scale).astype(self.dtype)

    def around_one(self, size: int) -> Array:
        return 1 + self(size, scale=0.1)

    def dense(self, inputs: int, outputs: int) -> dict[str, Array]:
        return {"kernel": self(inputs, outputs), "bias": self(outputs, scale=0.1)}

    def norm(self, size: int) -> dict[str, Array]:
        return {"scale": self.around_one(size), "bias": self(size, scale=0.1)}


def _decoder_params(draw: Draw, size: int = 64, layers: int = 2) -> Any:
    return {
        "wte": draw(128, size, scale=1.0),
        "wpe": draw(32, size, scale=0.1),
        "h": [
            {
                "ln_1": draw.norm(size),
                "attn": draw.dense(size, 3 * size),
                "proj": draw.dense(size, size),
                "ln_2": draw.norm(size),
                "fc": draw.dense(size, 4 * size),
                "out": draw.dense(4 * size, size),
            }
            for _ in range(layers)
        ],
        "ln_f": draw.norm(size),
    }


def _llama_params(draw: Draw, size: int = 128, layers: int = 2) -> Any:
    return {
        "embed": draw(128, size, scale=1.0),
        "layers": [
            {
                "input_norm": draw.around_one(size),
                "q_proj": draw(size, size),
                "k_proj": draw(size, size // 2),
                "v_proj": draw(size, size // 2),
                "o_proj": draw(size, size),
                "post_norm": draw.around_one(size),
                "gate_proj": draw(size, 2 * size),
                "up_proj": draw(size, 2 * size),
                "down_proj": draw(2 * size, size),
            }
            for _ in range(layers)
        ],
        "norm": draw.around_one(size),
        "lm_head": draw(size, 128),
    }


class Model(NamedTuple):
    """A function, its parameters, and arguments for it."""

    function: Callable[..., Any]
    params: Any
    example: tuple[Any, ...]


def _flax(module: nn.Module, *shape: int) -> Callable[[Draw], Model]:
    def make(draw: Draw) -> Model:
        example = draw(*shape, scale=1.0)
        params = module.init(jax.random.PRNGKey(1), example)
        # Statistics and scales as after training, when none is 0 or 1.
        moved = jax.tree_util.tree_map(
            lambda leaf: (
                (leaf + 0.2 * jnp.abs(draw(*leaf.shape, scale=1.0))).astype(draw.dtype)
                if leaf.ndim == 1
                else leaf.astype(draw.dtype)
            ),
            params,
        )
        return Model(module.apply, moved, (example,))

    return make


def _decoder(draw: Draw) -> Model:
    caches = [{name: draw(1, 2, 32, 32, scale=1.0) for name in ("key", "value")} for _ in range(2)]
    return Model(decoder, _decoder_params(draw), (jnp.array([[5]]), jnp.array(7), caches))


def _llama(draw: Draw) -> Model:
    tokens = jax.random.randint(jax.random.PRNGKey(2), (1, 32), 0, 128)
    return Model(llama, _llama_params(draw), (tokens,))


MODELS: dict[str, Callable[[Draw], Model]] = {
    "mlp": _flax(MLP(), 32, 64),
    "cnn": _flax(CNN(), 1, 32, 32, 3),
    "resnet18": _flax(ResNet18(), 1, 64, 64, 3),
    "block": _flax(Block(), 1, 32, 64),
    "decoder": _decoder,
    "llama": _llama,
}


def model(name: str, dtype: Any) -> Model:
    """The model of that name, its weights and arguments of that type of elements."""
    return MODELS[name](Draw(dtype))
