"""Convolutions against loops over their definitions."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.ops.convolution.sliding_window import FlattenedImage, Window, convolution

RANDOM = np.random.default_rng(11)
NCHW = {"batch_dim": 0, "channel_dim": 1, "height_dim": 2, "width_dim": 3}
CNHW = {"batch_dim": 1, "channel_dim": 0, "height_dim": 2, "width_dim": 3}


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.dtype(dtype))


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), atol=tolerance, rtol=tolerance
    )


def correlate(x, weight, bias, stride, padding, dilation, groups, replicate=False):
    """The definition, window by window: x (N, positions..., Ci), padding one pair a dimension."""
    x = x.astype(np.float64)
    widths = [(0, 0), *padding, (0, 0)]
    x = np.pad(x, widths, mode="edge") if replicate else np.pad(x, widths)
    outputs, width, *kernel = weight.shape
    sizes = [
        (x.shape[1 + a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1
        for a in range(len(kernel))
    ]
    result = np.zeros((x.shape[0], *sizes, outputs))
    for n, o in np.ndindex(x.shape[0], outputs):
        first = o // (outputs // groups) * width
        for position in np.ndindex(*sizes):
            total = 0.0 if bias is None else float(bias.reshape(-1)[o])
            for tap in np.ndindex(*kernel):
                at = tuple(
                    p * s + t * d
                    for p, s, t, d in zip(position, stride, tap, dilation, strict=True)
                )
                row = x[(n, *at)][first : first + width]
                total += float(row @ weight[(o, slice(None), *tap)])
            result[(n, *position, o)] = total
    return result


CONV2D_CASES = [
    # stride, padding (top, left, bottom, right), dilation, groups
    ([1], [0], [1], 1),
    ([2], [1], [1], 1),
    ([1, 2], [0, 1], [2, 1], 1),
    ([2, 1], [1, 0, 2, 3], [1, 2], 1),
    ([1], [1], [1], 2),
    ([2], [1, 1, 0, 0], [1], 4),
]


def pairs_of(padding):
    if len(padding) == 4:
        return [(padding[0], padding[2]), (padding[1], padding[3])]
    return [(padding[0], padding[0]), (padding[-1], padding[-1])]


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CONV2D_CASES)
@pytest.mark.parametrize("has_bias", [True, False])
def test_conv2d(evaluate, stride, padding, dilation, groups, has_bias):
    x, weight = draw(2, 7, 8, 4), draw(8, 4 // groups, 3, 2)
    bias = draw(1, 1, 1, 8) if has_bias else None
    expected = correlate(
        x, weight, bias, (stride * 2)[:2], pairs_of(padding), (dilation * 2)[:2], groups
    )
    ran = evaluate(
        "conv2d",
        [x, weight, bias],
        expected.shape,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)
    conv = ran.ops[ran.names.index("ttnn.conv2d")]
    assert conv.result_shape == (1, 1, expected[..., 0].size, 8)


@pytest.mark.parametrize(
    ("dims", "order"), [(NCHW, (0, 3, 1, 2)), (CNHW, (3, 0, 1, 2)), ({}, (0, 1, 2, 3))]
)
def test_conv2d_takes_any_order_of_dimensions(evaluate, dims, order):
    x, weight, bias = draw(2, 6, 5, 3), draw(4, 3, 3, 3), draw(4)
    expected = correlate(x, weight, bias, (1, 1), [(1, 1), (1, 1)], (1, 1), 1)
    bias = bias.reshape([4 if axis == dims.get("channel_dim", 3) else 1 for axis in range(4)])
    ran = evaluate(
        "conv2d",
        [x.transpose(order), weight, bias],
        tuple(expected.shape[axis] for axis in order),
        stride=[1],
        padding=[1],
        dilation=[1],
        **dims,
    )
    assert_close(ran.golden[0], expected.transpose(order))
    assert_close(ran.lowered[0], expected.transpose(order))


def test_conv2d_of_a_flattened_image_needs_no_reshape(evaluate):
    x, weight = draw(2, 6, 5, 3), draw(4, 3, 3, 3)
    expected = correlate(x, weight, None, (2, 2), [(1, 1), (1, 1)], (1, 1), 1)
    ran = evaluate(
        "conv2d",
        [x.reshape(1, 1, 60, 3), weight, None],
        (1, 1, 18, 4),
        stride=[2],
        padding=[1],
        dilation=[1],
        flattened_compat_info=FlattenedImage(2, 6, 5),
    )
    assert_close(ran.golden[0], expected.reshape(1, 1, 18, 4))
    assert_close(ran.lowered[0], expected.reshape(1, 1, 18, 4))
    assert ran.names == ["ttnn.conv2d"]


def test_conv2d_passes_asymmetric_padding_in_the_librarys_order(evaluate):
    x, weight = draw(1, 4, 4, 1), draw(1, 1, 2, 2)
    ran = evaluate(
        "conv2d",
        [x, weight, None],
        (1, 7, 9, 1),
        stride=[1],
        padding=[1, 2, 3, 4],
        dilation=[1],
    )
    conv = ran.ops[ran.names.index("ttnn.conv2d")]
    assert conv.parameter("padding") == [1, 3, 2, 4]  # top, bottom, left, right
    assert_close(ran.lowered[0], ran.golden[0])


def test_conv2d_gives_bf16_for_bf16(evaluate):
    x, weight = draw(1, 8, 8, 32, dtype="bfloat16"), draw(16, 32, 1, 1, dtype="bfloat16")
    ran = evaluate(
        "conv2d", [x, weight, None], (1, 8, 8, 16), stride=[1], padding=[0], dilation=[1]
    )
    assert ran.lowered[0].dtype == ml_dtypes.bfloat16


def test_conv2d_is_the_same_in_blocks(monkeypatch):
    x, weight = draw(2, 9, 7, 4), draw(6, 4, 3, 3)
    window = Window((3, 3), (2, 1), ((1, 1), (0, 1)), (1, 2))
    whole = convolution(x, weight, window, 1)
    monkeypatch.setattr("ttcodegen.ops.convolution.sliding_window._COLUMNS", 1)
    assert_close(convolution(x, weight, window, 1), whole, 1e-6)


ONE = {"stride": [1], "padding": [0], "dilation": [1]}


@pytest.mark.parametrize(
    ("weight", "result", "changed", "message"),
    [
        ((4, 3, 3, 3), (1, 6, 6, 4), {}, "expected a result of shape (1, 4, 3, 4)"),
        ((4, 2, 3, 3), (1, 4, 3, 4), {}, "expected a weight of 4x3 channels"),
        ((4, 3, 9, 9), (1, 1, 1, 4), {}, "does not fit into (6, 5)"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"stride": [0]}, "stride must be positive"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"padding": [1, 2, 3]}, "expected 1, 2 or 4 numbers"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"padding": [-1]}, "padding must not be negative"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"dilation": [1, 1, 1]}, "expected 1 or 2 numbers"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"groups": 2}, "do not divide into 2 groups"),
        ((4, 3, 3, 3), (1, 4, 3, 4), {"height_dim": 0}, "must be 0 to 3 in some order"),
        ((4, 3, 3), (1, 4, 3, 4), {}, "expected a weight of rank 4"),
    ],
)
def test_conv2d_refuses(refusal, weight, result, changed, message):
    arguments = {**ONE, **changed}
    assert message in refusal(
        "conv2d", [draw(1, 6, 5, 3), draw(*weight), None], result, **arguments
    )


@pytest.mark.parametrize("shape", [(1, 1, 1, 3), (2, 2), (1, 2, 2, 1), (), (0,)])
def test_conv2d_refuses_a_bias_of_another_shape(refusal, shape):
    operands = [draw(1, 6, 5, 3), draw(4, 3, 3, 3), draw(*shape)]
    assert "expected a bias of 4 elements" in refusal("conv2d", operands, (1, 4, 3, 4), **ONE)


@pytest.mark.parametrize(("channels", "outputs"), [(0, 4), (3, 0), (0, 0)])
def test_conv2d_of_no_channels_is_nothing_but_the_bias(evaluate, channels, outputs):
    operands = [draw(1, 6, 5, channels), draw(outputs, channels, 3, 3), draw(outputs)]
    ran = evaluate("conv2d", operands, (1, 4, 3, outputs), **ONE)
    expected = np.broadcast_to(operands[2], (1, 4, 3, outputs))
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


def scatter(x, weight, stride, padding, output_padding, dilation, groups):
    """The definition: every element adds its multiple of the kernel to the output."""
    n, h, w, channels = x.shape
    _, width, kh, kw = weight.shape
    size = [
        (h - 1) * stride[0] + dilation[0] * (kh - 1) + 1 + output_padding[0],
        (w - 1) * stride[1] + dilation[1] * (kw - 1) + 1 + output_padding[1],
    ]
    result = np.zeros((n, *size, width * groups))
    for b, y, z, c in np.ndindex(n, h, w, channels):
        group = c // (channels // groups)
        for i, j, o in np.ndindex(kh, kw, width):
            at = (b, y * stride[0] + i * dilation[0], z * stride[1] + j * dilation[1])
            result[(*at, group * width + o)] += float(x[b, y, z, c]) * float(weight[c, o, i, j])
    (top, bottom), (left, right) = padding
    return result[:, top : size[0] - bottom, left : size[1] - right]


@pytest.mark.parametrize(
    ("stride", "padding", "output_padding", "dilation", "groups"),
    [
        ([1], [0], [0], [1], 1),
        ([2], [1], [1], [1], 1),
        ([2, 3], [0, 1, 1, 2], [1, 2], [1, 2], 1),
        ([2], [1, 0], [0], [2, 1], 2),
        ([2], [3, 0, 1, 3], [1], [1], 1),
    ],
)
def test_conv_transpose2d(evaluate, stride, padding, output_padding, dilation, groups):
    x, weight, bias = draw(2, 4, 5, 4), draw(4, 3, 3, 2), draw(1, 1, 1, 3 * groups)
    pair = [(values * 2)[:2] for values in (stride, output_padding, dilation)]
    expected = scatter(x, weight, pair[0], pairs_of(padding), pair[1], pair[2], groups) + bias
    ran = evaluate(
        "conv_transpose2d",
        [x, weight, bias],
        expected.shape,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
    )
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)


def test_conv_transpose2d_refuses_a_weight_the_wrong_way_round(refusal):
    operands = [draw(1, 4, 4, 3), draw(5, 3, 3, 3), None]
    message = refusal("conv_transpose2d", operands, (1, 6, 6, 5), output_padding=[0], **ONE)
    assert "expected a weight of 3x5 channels" in message


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [([1], [0], [1], 1), ([2], [1, 2], [2], 1), ([1], [2], [1], 2)],
)
@pytest.mark.parametrize("first", [True, False])
def test_conv1d(evaluate, stride, padding, dilation, groups, first):
    x, weight, bias = draw(2, 9, 4), draw(6, 4 // groups, 3), draw(1, 1, 6)
    pair = (padding[0], padding[-1])
    expected = correlate(x, weight, bias, stride, [pair], dilation, groups)
    order = (0, 2, 1) if first else (0, 1, 2)
    dims = {"batch_dim": 0, "channel_dim": 1, "length_dim": 2} if first else {}
    ran = evaluate(
        "conv1d",
        [x.transpose(order), weight, bias.transpose(order)],
        tuple(expected.shape[axis] for axis in order),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        **dims,
    )
    assert_close(ran.golden[0], expected.transpose(order))
    assert_close(ran.lowered[0], expected.transpose(order))
    assert "ttnn.conv2d" in ran.names


@pytest.mark.parametrize(
    ("channels", "groups", "mode"),
    [(3, 1, "zeros"), (32, 2, "zeros"), (6, 3, "zeros"), (4, 1, "replicate")],
)
@pytest.mark.parametrize("first", [True, False])
def test_conv3d(evaluate, channels, groups, mode, first):
    x, weight = draw(1, 4, 5, 4, channels), draw(6, channels // groups, 3, 2, 2)
    bias = draw(1, 1, 1, 1, 6)
    pads = [(1, 1), (0, 0), (1, 1)]
    expected = correlate(x, weight, bias, (1, 2, 1), pads, (1, 1, 1), groups, mode == "replicate")
    order = (0, 4, 1, 2, 3) if first else (0, 1, 2, 3, 4)
    names = ("batch_dim", "channel_dim", "depth_dim", "height_dim", "width_dim")
    ran = evaluate(
        "conv3d",
        [x.transpose(order), weight, bias.transpose(order)],
        tuple(expected.shape[axis] for axis in order),
        stride=[1, 2, 1],
        padding=[1, 0, 1],
        groups=groups,
        padding_mode=mode,
        **(dict(zip(names, range(5), strict=True)) if first else {}),
    )
    assert_close(ran.golden[0], expected.transpose(order))
    assert_close(ran.lowered[0], expected.transpose(order))
    convs = [op for op in ran.ops if op.name == "ttnn.conv3d"]
    assert all(op.shape("input")[-1] % 32 == 0 for op in convs)


def test_conv3d_refuses(refusal):
    operands = [draw(1, 4, 5, 4, 3), draw(6, 3, 3, 2, 2), None]
    shape = (1, 2, 4, 3, 6)
    numbers = {"stride": [1], "padding": [0]}
    message = refusal("conv3d", operands, shape, padding_mode="reflect", **numbers)
    assert "expected padding_mode zeros or replicate, found reflect" in message
    message = refusal("conv3d", operands, (1, 4, 5, 4, 6), **numbers)
    assert "expected a result of shape (1, 2, 4, 3, 6), found (1, 4, 5, 4, 6)" in message


def test_convolution_of_one_layer_takes_well_under_a_second():
    x, weight = draw(1, 80, 80, 160), draw(160, 160, 3, 3)
    window = Window((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
    result = convolution(x, weight, window, 1)
    picked = list(itertools.product([0, 40, 79], [0, 40, 79]))
    for y, z in picked:
        near = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])[0, y : y + 3, z : z + 3]
        expected = np.einsum("ijc,ocij->o", near, weight)
        assert_close(result[0, y, z], expected, 1e-3)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(("sizes", "dilation"), [((17, 18), (1, 1)), ((2, 17, 19), (1, 2, 3))])
@pytest.mark.parametrize("groups", [1, 2])
def test_many_channels_are_multiplied_where_they_lie(dtype, sizes, dilation, groups):
    x = (5 * draw(2, *sizes, 256 * groups)).astype(dtype)
    rank = len(sizes)
    kernel = (2,) * (rank - 2) + (1, 2)
    weight = (5 * draw(2 * groups, 256, *kernel)).astype(dtype)
    window = Window(kernel, (1,) * rank, ((0, 0),) * rank, dilation)
    found = convolution(x, weight, window, groups)
    columns = np.lib.stride_tricks.sliding_window_view(
        x.astype(np.float64),
        [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)],
        tuple(range(1, rank + 1)),
    )[(..., *(slice(None, None, d) for d in dilation))]
    for group in range(groups):
        outputs = slice(2 * group, 2 * group + 2)
        seen = columns[(*[slice(None)] * (rank + 1), slice(256 * group, 256 * group + 256))]
        axes = [*range(1, rank + 2)], [*range(rank + 1, 2 * rank + 2)]
        expected = np.tensordot(weight[outputs].astype(np.float64), seen, axes)
        expected = np.moveaxis(expected, 0, -1)
        np.testing.assert_allclose(found[..., outputs], expected, rtol=1e-4, atol=1e-2)


def test_a_long_depthwise_sequence_is_convolved_in_parts(evaluate):
    """One call has room in L1 for 4608 weights, in an image of one row."""
    x, weight, bias = draw(1, 5, 2100), draw(2100, 1, 3), draw(1, 1, 2100)
    ran = evaluate(
        "conv1d",
        [x, weight, bias],
        (1, 5, 2100),
        stride=[1],
        padding=[1, 1],
        dilation=[1],
        groups=2100,
        batch_dim=0,
        length_dim=1,
        channel_dim=2,
    )
    assert ran.names.count("ttnn.conv2d") == 3
    padded = np.pad(x, [(0, 0), (1, 1), (0, 0)])
    expected = sum(padded[:, tap : tap + 5] * weight[:, 0, tap] for tap in range(3)) + bias
    assert_close(ran.golden[0], expected)
    assert_close(ran.lowered[0], expected)
