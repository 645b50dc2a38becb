"""Portable bytecode: the same programs as text, and files that are damaged or of another kind.

The modules were printed and serialised by jax from the same functions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.golden_values import Golden

MODULES = Path(__file__).parent / "modules"
GENERATOR = np.random.default_rng(3)


def drawn(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


INPUTS = {
    "jax_mlp": [drawn(64, 128), drawn(128), drawn(128, 10), drawn(10), drawn(8, 64)],
    "jax_decode": [drawn(1, 4, 64, 32), drawn(1, 4, 1, 32), np.int32(5), drawn(1, 4, 1, 32)],
}


def inputs_of(module: object, name: str) -> list[np.ndarray]:
    types = next(iter(module.ops)).function_type.inputs  # pyright: ignore
    return [
        np.broadcast_to(np.asarray(value).ravel()[0], type_.get_shape()).astype(value.dtype)
        if np.asarray(value).shape != type_.get_shape()
        else np.asarray(value)
        for value, type_ in zip(INPUTS[name], types, strict=True)
    ]


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_bytecode_means_what_the_text_means(name: str) -> None:
    modules = [
        read_module(Source.read(str(MODULES / f"{name}.{suffix}")))
        for suffix in ("mlirbc", "stablehlo.mlir")
    ]
    binary, text = (Golden(m).run("main", inputs_of(m, name)) for m in modules)
    for got, want in zip(binary, text, strict=True):
        np.testing.assert_array_equal(got, want)


def test_names_come_from_locations() -> None:
    for suffix in ("mlirbc", "debug.stablehlo.mlir"):
        module = read_module(Source.read(str(MODULES / f"jax_decode.{suffix}")))
        text = str(module)
        assert 'ttir.name = "cache"' in text
        assert 'ttir.name = "pos"' in text


def failure(data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        read_module(Source.from_bytes("model.mlirbc", data))
    return caught.value.render(Source.from_bytes("model.mlirbc", data))


def test_every_truncation_is_refused() -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    for size in range(4, len(data), 7):
        text = failure(data[:size])
        assert "bytecode" in text
        assert "note: " in text


def test_damaged_bytes_never_crash() -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    generator = np.random.default_rng(5)
    for _ in range(150):
        damaged = bytearray(data)
        for place in generator.integers(4, len(data), 3):
            damaged[place] = generator.integers(256)
        try:
            read_module(Source.from_bytes("model.mlirbc", bytes(damaged)))
        except CompileError:
            pass


def test_newer_versions_are_refused() -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    text = failure(data[:4] + bytes([99 << 1 | 1]) + data[5:])
    assert "of version 99 of the format (by StableHLO_v1.15.0)" in text
    text = failure(data.replace(b"dot_general_v2", b"dot_general_v7"))
    assert "of a newer version of StableHLO (StableHLO_v1.15.0)" in text
    assert "vhlo.dot_general_v7" in text


@pytest.mark.parametrize("newer", [b"StableHLO_v1.18.0", b"StableHLO_v2.00.0"])
def test_artifacts_for_a_newer_version_are_refused(newer: bytes) -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    text = failure(data.replace(b"StableHLO_v1.15.0", newer))
    assert text.startswith("model.mlirbc: error: ")
    assert f"for {newer[11:].decode()} of StableHLO; versions up to 1.17 are read" in text
    assert "note: serialize the module for 1.17.0" in text


def test_artifacts_for_older_versions_are_read() -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    for version in (b"StableHLO_v1.17.0", b"StableHLO_v0.99.0"):
        source = Source.from_bytes("model.mlirbc", data.replace(b"StableHLO_v1.15.0", version))
        assert "ttir." in str(read_module(source))


def test_other_bytecode_is_refused() -> None:
    data = (MODULES / "jax_mlp.mlirbc").read_bytes()
    text = failure(data.replace(b"vhlo\0", b"what\0"))
    assert "another dialect than VHLO: what" in text
    assert "serialize_portable_artifact" in text


F32 = bytes([4 << 1 | 1])
"""The type of f32 as VHLO encodes it, and stand-ins for other types."""


@pytest.mark.parametrize(
    ("code", "what"),
    [(6, "floats of eight bits or fewer"), (24, "quantized elements"), (30, "quantized elements")],
)
def test_types_that_are_not_read_are_named(code: int, what: str) -> None:
    from ttcodegen.frontends.stablehlo.reading.bytecode import read_bytecode

    data = bytearray((MODULES / "jax_mlp.mlirbc").read_bytes())
    tables, _ = read_bytecode(bytes(data))
    (entry,) = (
        e for e in tables.types if bytes(data[e.start : e.end]) == F32 and e.dialect == "vhlo"
    )
    data[entry.start] = code << 1 | 1
    text = failure(bytes(data))
    assert f"bytecode with {what} is not supported" in text
    assert "note: give the module as text" in text


def test_a_size_that_is_not_known_is_printed_as_such() -> None:
    from ttcodegen.frontends.stablehlo.reading.bytecode import read_bytecode

    data = bytearray((MODULES / "jax_mlp.mlirbc").read_bytes())
    tables, _ = read_bytecode(bytes(data))
    # A tensor of two dimensions: its code, their count, two sizes of two bytes or one.
    for entry in tables.types:
        content = bytes(data[entry.start : entry.end])
        if content[:2] == bytes([20 << 1 | 1, 2 << 1 | 1]) and content[2] & 1:
            data[entry.start + 2] = (1 << 1 | 1) | 0  # -1 in zigzag
    assert "tensors of unknown size are not supported: tensor<?x" in failure(bytes(data))
