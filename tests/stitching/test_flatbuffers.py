"""Flatbuffers run one after the other on tensors that stay on the device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.stitching.conftest import BF16, EXAMPLE, Models
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.rt import load_binary, open_device, to_layout
from ttcodegen.runtime.stitching import Device, DeviceTensor, StitchedProgram, Transfer


def weights_of(project: Path) -> dict[str, np.ndarray]:
    return {path.stem: np.load(path) for path in sorted((project / "data").glob("*.npy"))}


def weight_tensors(
    device: Device, program: StitchedProgram, project: Path
) -> dict[str, DeviceTensor]:
    values = weights_of(project)
    return {
        port.name: device.tensor(values[port.name], port.layout)
        for port in program.inputs
        if port.kind == "parameter"
    }


def test_layouts_can_be_asked_for(models: Models) -> None:
    encode = load_binary(models.encoder / "model.ttnn")["encode"]
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    (hidden,) = encode.outputs
    assert (hidden.name, hidden.layout.layout) == ("hidden", Layout.TILE)
    assert (decode.inputs[0].name, decode.inputs[0].layout.layout) == ("hidden", Layout.ROW_MAJOR)
    assert [port.kind for port in encode.inputs] == ["input", "parameter", "parameter"]


def test_nothing_between_passes_through_the_host(models: Models) -> None:
    encode = load_binary(models.encoder / "model.ttnn")["encode"]
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    with open_device() as device:
        images = device.tensor(models.images, encode.inputs[0].layout)
        encoder_weights = weight_tensors(device, encode, models.encoder)
        decoder_weights = weight_tensors(device, decode, models.decoder)
        before = list(device.transfers)
        (hidden,) = encode.submit([images], encoder_weights)
        assert repr(hidden) == "DeviceTensor(32x128 bf16 tile dram interleaved)"
        converted = to_layout(hidden, decode.inputs[0].layout)
        (scores,) = decode.submit([converted], decoder_weights)
        assert device.transfers == before
        found = scores.numpy()
        assert device.transfers[-1] == Transfer("to host", 2048)
    np.testing.assert_allclose(found.astype(np.float32), models.scores, atol=0.01)


def test_a_tensor_that_lies_right_is_passed_on_as_it_is(models: Models) -> None:
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    with open_device() as device:
        hidden = device.tensor(models.hidden, decode.inputs[0].layout)
        assert to_layout(hidden, decode.inputs[0].layout) is hidden


def test_inputs_of_no_declared_kind_are_taken_as_outputs_lie(
    models: Models, tmp_path: Path
) -> None:
    text = (EXAMPLE / "decoder.mlir").read_text()
    declared = "{ttcore.argument_type = #ttcore.argument_type<input>, "
    assert declared in text
    source = Source("decoder.mlir", text.replace(declared, "{"))
    path = tmp_path / "decoder.ttnn"
    path.write_bytes(compile_module(source, CompileOptions("decoder")).flatbuffer)
    encode = load_binary(models.encoder / "model.ttnn")["encode"]
    assert load_binary(path)["decode"].inputs[0].layout == encode.outputs[0].layout


def test_a_tensor_that_lies_otherwise_is_refused(models: Models) -> None:
    encode = load_binary(models.encoder / "model.ttnn")["encode"]
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    with open_device() as device:
        weights = weight_tensors(device, encode, models.encoder)
        images = device.tensor(models.images, encode.inputs[0].layout)
        (hidden,) = encode.submit([images], weights)
        with pytest.raises(
            CompileError, match="'hidden' of 'decode' should be placed as"
        ) as caught:
            decode.submit([hidden], weight_tensors(device, decode, models.decoder))
        assert "note: convert it with to_layout" in caught.value.render()
        with pytest.raises(CompileError, match=r"shape \(32, 128\) cannot be placed as 32x64"):
            to_layout(hidden, encode.inputs[0].layout)
        with pytest.raises(CompileError, match="'decode' needs the input 'weight'"):
            decode.submit([to_layout(hidden, decode.inputs[0].layout)])
        with pytest.raises(CompileError, match="has no further inputs; it takes images"):
            encode.submit([images] * 4)
        with pytest.raises(CompileError, match=r"expected the shape \(32, 64\), found \(2,\)"):
            device.tensor(np.zeros(2), encode.inputs[0].layout)


def test_conversions_are_those_of_the_device(models: Models) -> None:
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    layout = decode.inputs[0].layout
    exact = np.full(layout.shape, 1.0 + 2.0**-10, np.float32)
    with open_device() as device:
        wide = device.tensor(exact, layout.with_(data_type=DataType.FLOAT32))
        narrow = to_layout(wide, layout)
        assert (narrow.numpy() == 1).all()
        assert narrow.numpy().dtype == BF16
        host = to_layout(narrow, layout.on_host())
        assert device.transfers[-1].direction == "to host"
        assert np.array_equal(to_layout(host, layout).numpy(), narrow.numpy())


def test_tensors_end(models: Models) -> None:
    decode = load_binary(models.decoder / "model.ttnn")["decode"]
    with open_device() as device, open_device() as other:
        hidden = device.tensor(models.hidden, decode.inputs[0].layout)
        unsuitable = weight_tensors(other, decode, models.decoder)
        with pytest.raises(CompileError, match="are on different devices"):
            decode.submit([hidden], unsuitable)
        hidden.deallocate()
        with pytest.raises(CompileError, match="the tensor was deallocated"):
            hidden.numpy()
        kept = device.tensor(models.hidden, decode.inputs[0].layout)
    with pytest.raises(CompileError, match="the device is closed"):
        kept.numpy()
    with pytest.raises(CompileError, match="there is no program 'x', only decode"):
        load_binary(models.decoder / "model.ttnn")["x"]


CACHE = """
func.func @step(
    %cache: tensor<1x1x32x32xbf16> {ttir.name = "cache"},
    %new: tensor<1x1x1x32xbf16> {ttir.name = "new"}, %at: tensor<1xi32> {ttir.name = "at"}
) -> tensor<1x1x32x32xbf16> {
  %0 = "ttir.update_cache"(%cache, %new, %at) <{batch_offset = 0 : i32}>
      : (tensor<1x1x32x32xbf16>, tensor<1x1x1x32xbf16>, tensor<1xi32>) -> tensor<1x1x32x32xbf16>
  return %0 : tensor<1x1x32x32xbf16>
}
"""


def test_what_a_program_overwrites_is_so_for_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "step.ttnn"
    source = Source("step.mlir", CACHE)
    path.write_bytes(compile_module(source, CompileOptions("step")).flatbuffer)
    step = load_binary(path)["step"]
    layouts = {port.name: port.layout for port in step.inputs}
    with open_device() as device:
        cache = device.tensor(np.zeros((1, 1, 32, 32)), layouts["cache"])
        for position in range(3):
            new = device.tensor(np.full((1, 1, 1, 32), position + 1.0), layouts["new"])
            at = device.tensor(np.array([position]), layouts["at"])
            (result,) = step.submit([cache, new, at])
            # The output is placed as the input is, so that it is passed on as it is.
            assert to_layout(result, layouts["cache"]) is result
        rows = cache.numpy()[0, 0, :4, 0].astype(np.float32)
    assert rows.tolist() == [1, 2, 3, 0]


def test_programs_of_both_targets_are_stitched(models: Models, tmp_path: Path) -> None:
    out = tmp_path / "decoder"
    arguments = [str(EXAMPLE / "decoder.mlir"), "-o", str(out), "--target", "ttmetal"]
    assert main([*arguments, "--no-format"]) == 0
    encode = load_binary(models.encoder / "model.ttnn")["encode"]
    decode = load_binary(out / "model.ttm")["decode"]
    with open_device() as device:
        weights = weight_tensors(device, encode, models.encoder)
        images = device.tensor(models.images, encode.inputs[0].layout)
        (hidden,) = encode.submit([images], weights)
        # Device kernels take tiles, which is what the encoder leaves.
        assert to_layout(hidden, decode.inputs[0].layout) is hidden
        (scores,) = decode.submit([hidden], weight_tensors(device, decode, models.decoder))
        found = scores.numpy().astype(np.float32)
    np.testing.assert_allclose(found, models.scores, atol=0.01)
