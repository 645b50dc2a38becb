"""The models of the zoo that are made of layers of flax and equinox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# A function of parameters and arguments, the parameters, and how arguments are drawn.
Made = tuple[Callable[..., Any], Any, Callable[[np.random.Generator], tuple[Any, ...]]]

_SEQUENCE = (2, 12, 32)
_IMAGES = (2, 16, 16, 3)
_CHANNELS_FIRST = (3, 16, 16)


def _drawn(*shapes: Sequence[int]) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    return lambda rng: tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


def _tokens(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.integers(0, 128, (2, 12)).astype(np.int32),)


def _linen(
    build: Callable[[Any], Any], draw: Callable[[np.random.Generator], tuple[Any, ...]]
) -> Callable[[], Made]:
    """A module of flax.linen, or a function of its layers as the only method of one."""

    def made() -> Made:
        import jax
        from flax import linen as nn

        class Model(nn.Module):
            @nn.compact
            def __call__(self, *args: Any) -> Any:
                return build(nn)(*args)

        module = Model()
        args = draw(np.random.default_rng(0))
        params = jax.jit(module.init)(jax.random.key(0), *args)
        return module.apply, params, draw

    return made


def _nnx(
    build: Callable[[Any, Any], Any], draw: Callable[[np.random.Generator], tuple[Any, ...]]
) -> Callable[[], Made]:
    """A module of flax.nnx, taken apart into its graph and its state."""

    def made() -> Made:
        from flax import nnx

        module = build(nnx, nnx.Rngs(0))
        module.eval()
        graph, state = nnx.split(module)

        def function(params: Any, *args: Any) -> Any:
            return nnx.merge(graph, nnx.State(params))(*args)

        function.__name__ = type(module).__name__.lower()
        return function, nnx.to_pure_dict(state), draw

    return made


def _equinox(
    build: Callable[[Any, Any], Any],
    draw: Callable[[np.random.Generator], tuple[Any, ...]],
    call: Callable[..., Any] | None = None,
) -> Callable[[], Made]:
    """A module of equinox over a batch: its arrays are the parameters."""

    def made() -> Made:
        import equinox as eqx
        import jax

        module = build(eqx.nn, jax.random.key(0))
        arrays, rest = eqx.partition(eqx.nn.inference_mode(module), eqx.is_array)
        leaves, shape = jax.tree_util.tree_flatten(arrays)

        def function(params: Any, *args: Any) -> Any:
            whole = eqx.combine(jax.tree_util.tree_unflatten(shape, list(params)), rest)
            return call(whole, *args) if call else jax.vmap(whole)(*args)

        function.__name__ = type(module).__name__.lower()
        return function, tuple(leaves), draw

    return made


def _scanned(cell: Any, x: Any) -> Any:
    """The last state of a cell of equinox over a sequence."""
    import jax
    import jax.numpy as jnp

    start = jnp.zeros(cell.hidden_size)
    pair = type(cell).__name__ == "LSTMCell"

    def one(sequence: Any) -> Any:
        state = (start, start) if pair else start
        return jax.lax.scan(lambda s, each: (cell(each, s), None), state, sequence)[0]

    return jax.vmap(one)(x)


def _block(nn: Any, heads: int = 2) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(heads)(y, y)
        y = nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))
        return x + nn.Dense(x.shape[-1])(nn.gelu(y))

    return run


def _vit(nn: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        x = nn.Conv(32, (4, 4), (4, 4))(x)
        x = x.reshape(x.shape[0], -1, 32)
        x = x + nn.Embed(16, 32).embedding
        return nn.Dense(10)(nn.LayerNorm()(_block(nn)(_block(nn)(x))).mean(1))

    return run


def _decoder(nn: Any) -> Callable[[Any], Any]:
    def run(tokens: Any) -> Any:
        embed = nn.Embed(128, 32)
        x = embed(tokens)
        mask = nn.make_causal_mask(tokens)
        for _ in range(2):
            y = nn.RMSNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(4)(y, y, mask=mask)
            y = nn.RMSNorm()(x)
            x = x + nn.Dense(32)(nn.silu(nn.Dense(64)(y)) * nn.Dense(64)(y))
        return embed.attend(nn.RMSNorm()(x))

    return run


def _cnn(nn: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for features in (8, 16):
            x = nn.Conv(features, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.mean((1, 2)))

    return run


def _unet(nn: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        import jax.numpy as jnp

        a = nn.silu(nn.GroupNorm(4)(nn.Conv(8, (3, 3))(x)))
        b = nn.silu(nn.Conv(16, (3, 3), 2)(a))
        c = nn.ConvTranspose(8, (3, 3), (2, 2))(b)
        return nn.Conv(3, (3, 3))(jnp.concatenate([a, c], -1))

    return run


def _depthwise(nn: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        x = nn.Conv(8, (1, 1))(x)
        x = nn.relu6(nn.Conv(8, (3, 3), feature_group_count=8)(x))
        x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.log_softmax(nn.Dense(10)(x.reshape(x.shape[0], -1)))

    return run


def _mixer(nn: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        y = nn.LayerNorm()(x).swapaxes(1, 2)
        y = nn.Dense(12)(nn.gelu(nn.Dense(24)(y))).swapaxes(1, 2)
        x = x + y
        return x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))

    return run


JAX_MODELS: dict[str, Callable[[], Made]] = {
    "flax/MLP": _linen(
        lambda nn: nn.Sequential([nn.Dense(64), nn.relu, nn.Dense(10)]), _drawn((4, 32))
    ),
    "flax/CNN": _linen(_cnn, _drawn(_IMAGES)),
    "flax/UNet": _linen(_unet, _drawn(_IMAGES)),
    "flax/Depthwise": _linen(_depthwise, _drawn(_IMAGES)),
    "flax/ViT": _linen(_vit, _drawn(_IMAGES)),
    "flax/Mixer": _linen(_mixer, _drawn(_SEQUENCE)),
    "flax/Encoder": _linen(_block, _drawn(_SEQUENCE)),
    "flax/Decoder": _linen(_decoder, _tokens),
    "flax/LSTM": _linen(lambda nn: nn.RNN(nn.LSTMCell(64)), _drawn(_SEQUENCE)),
    "flax/OptimizedLSTM": _linen(lambda nn: nn.RNN(nn.OptimizedLSTMCell(64)), _drawn(_SEQUENCE)),
    "flax/GRU": _linen(lambda nn: nn.RNN(nn.GRUCell(64)), _drawn(_SEQUENCE)),
    "flax/MGU": _linen(lambda nn: nn.RNN(nn.MGUCell(64)), _drawn(_SEQUENCE)),
    "flax/SimpleRNN": _linen(lambda nn: nn.RNN(nn.SimpleCell(64)), _drawn(_SEQUENCE)),
    "flax/BiLSTM": _linen(
        lambda nn: nn.Bidirectional(nn.RNN(nn.LSTMCell(32)), nn.RNN(nn.LSTMCell(32))),
        _drawn(_SEQUENCE),
    ),
    "flax/ConvLSTM": _linen(
        lambda nn: nn.RNN(nn.ConvLSTMCell(8, (3, 3))), _drawn((1, 4, 8, 8, 3))
    ),
    "flax/nnx.MLP": _nnx(
        lambda n, rngs: n.Sequential(
            n.Linear(32, 64, rngs=rngs), n.BatchNorm(64, rngs=rngs), n.relu, n.Linear(64, 10,
            rngs=rngs)
        ),
        _drawn((4, 32)),
    ),
    "flax/nnx.CNN": _nnx(
        lambda n, rngs: n.Sequential(
            n.Conv(3, 8, (3, 3), rngs=rngs), n.GroupNorm(8, 4, rngs=rngs), n.swish,
            n.Conv(8, 16, (3, 3), strides=2, rngs=rngs),
        ),
        _drawn(_IMAGES),
    ),
    "flax/nnx.Attention": _nnx(
        lambda n, rngs: n.MultiHeadAttention(4, 32, decode=False, rngs=rngs), _drawn(_SEQUENCE)
    ),
    "flax/nnx.LSTM": _nnx(
        lambda n, rngs: n.RNN(n.LSTMCell(32, 64, rngs=rngs), rngs=rngs), _drawn(_SEQUENCE)
    ),
    "flax/nnx.GRU": _nnx(
        lambda n, rngs: n.RNN(n.GRUCell(32, 64, rngs=rngs), rngs=rngs), _drawn(_SEQUENCE)
    ),
    "equinox/MLP": _equinox(lambda n, key: n.MLP(32, 10, 64, 2, key=key), _drawn((4, 32))),
    "equinox/CNN": _equinox(
        lambda n, key: n.Sequential([
            n.Conv2d(3, 8, 3, key=key), n.MaxPool2d(2, 2), n.GroupNorm(4, 8),
            n.ConvTranspose2d(8, 4, 3, 2, key=key),
        ]),
        _drawn((2, *_CHANNELS_FIRST)),
    ),
    "equinox/Pools": _equinox(
        lambda n, key: n.Sequential([
            n.Conv2d(3, 8, 3, groups=1, padding=1, key=key), n.AvgPool2d(3, 2, padding=1),
            n.AdaptiveAvgPool2d(4),
        ]),
        _drawn((2, *_CHANNELS_FIRST)),
    ),
    "equinox/AdaptiveMaxPool": _equinox(
        lambda n, key: n.AdaptiveMaxPool2d(5), _drawn((2, *_CHANNELS_FIRST))
    ),
    "equinox/LSTM": _equinox(
        lambda n, key: n.LSTMCell(32, 64, key=key), _drawn(_SEQUENCE), _scanned
    ),
    "equinox/GRU": _equinox(
        lambda n, key: n.GRUCell(32, 64, key=key), _drawn(_SEQUENCE), _scanned
    ),
    "equinox/Attention": _equinox(
        lambda n, key: n.MultiheadAttention(4, 32, key=key), _drawn(_SEQUENCE, _SEQUENCE, _SEQUENCE)
    ),
    "equinox/Norms": _equinox(
        lambda n, key: n.Sequential([n.LayerNorm((12, 32)), n.RMSNorm((12, 32))]),
        _drawn(_SEQUENCE),
    ),
    "equinox/Rotary": _equinox(
        lambda n, key: n.RotaryPositionalEmbedding(32), _drawn(_SEQUENCE)
    ),
    "equinox/Conv1d": _equinox(
        lambda n, key: n.Sequential([
            n.Conv1d(32, 16, 3, dilation=2, key=key), n.WeightNorm(
                n.ConvTranspose1d(16, 8, 4, stride=2, key=key)) ,
        ]),
        _drawn((2, 32, 24)),
    ),
    "equinox/Conv3d": _equinox(
        lambda n, key: n.Conv3d(3, 8, 3, padding=1, key=key), _drawn((1, 3, 6, 8, 8))
    ),
}  # fmt: skip
