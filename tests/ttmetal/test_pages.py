"""Arrays of the host as pages of a device's buffers, in the C++ of the projects."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emission.manifest_entries import page_size
from ttcodegen.numerics.rounding import MANTISSA_BITS, block_rounded
from ttcodegen.project.cpu_backend import backend_sources
from ttcodegen.project.sources import support_files
from ttcodegen.project.toolchain import Toolchain

SHIM = """
#include <cstring>

#include "support/pages.hpp"

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;

/// Writes the pages, and the elements that they are read back as; gives the number of pages, or -1.
extern "C" int convert(int type, const std::uint64_t* sizes, std::size_t rank, const void* data,
                       int data_type, bool tiles, void* pages, void* elements) {
    const std::span shape(sizes, rank);
    const auto target = static_cast<DataType>(data_type);
    const Layout layout = tiles ? Layout::TILE : Layout::ROW_MAJOR;
    try {
        const auto bytes = support::to_pages(
            {static_cast<support::ElementType>(type), shape, data}, target, layout);
        const auto array = support::from_pages(bytes, shape, target, layout);
        std::memcpy(pages, bytes.data(), bytes.size());
        std::memcpy(elements, array.bytes.data(), array.bytes.size());
        return static_cast<int>(support::pages_of(shape, target, layout).count);
    } catch (const std::exception&) {
        return -1;
    }
}

extern "C" int data_type(const char* name) {
    constexpr std::pair<const char*, DataType> types[] = {
        {"bf16", DataType::BFLOAT16},   {"f32", DataType::FLOAT32}, {"u32", DataType::UINT32},
        {"bfp_bf8", DataType::BFLOAT8_B}, {"bfp_bf4", DataType::BFLOAT4_B},
        {"u16", DataType::UINT16},      {"u8", DataType::UINT8},    {"si32", DataType::INT32},
    };
    for (const auto& [known, type] : types) {
        if (std::strcmp(known, name) == 0) {
            return static_cast<int>(type);
        }
    }
    return -1;
}
"""
ELEMENT_TYPES = {"float32": 11, "int32": 3, "uint32": 7, "uint16": 6, "uint8": 5}
PLAIN = (
    DataType.BFLOAT16,
    DataType.FLOAT32,
    DataType.INT32,
    DataType.UINT32,
    DataType.UINT16,
    DataType.UINT8,
)
SHAPES = [(), (1,), (33,), (32, 32), (1, 16), (17, 31), (64, 96), (3, 5, 40), (2, 3, 33, 1)]

Convert = Callable[[np.ndarray, DataType, Layout], tuple[bytes, np.ndarray]]


@pytest.fixture(scope="module")
def convert(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """The pages of an array, and what they are read back as."""
    folder = tmp_path_factory.mktemp("pages")
    for path, text in support_files("ttmetal").items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    sources = [Path("support", name) for name in ("array.cpp", "pages.cpp")]
    folder.joinpath("shim.cpp").write_text(
        "".join(f'#include "{path}"\n' for path in sources) + SHIM
    )
    include = backend_sources() / "include"
    command = [toolchain.compiler, *"-std=c++20 -O1 -fPIC -shared -Wall -Wextra -Werror".split()]
    command += ["-I", str(folder), "-isystem", str(include), str(folder / "shim.cpp")]
    subprocess.run([*command, "-o", str(folder / "shim.so")], check=True)
    library = ctypes.CDLL(str(folder / "shim.so"))

    def call(array: np.ndarray, data_type: DataType, layout: Layout) -> tuple[bytes, np.ndarray]:
        placement = TensorPlacement(array.shape, data_type, layout)
        rows = -(-array.shape[-2] // 32) * 32 if array.ndim > 1 else 32
        pages = ctypes.create_string_buffer(max(1, array.size) * rows * 128 + 4096)
        narrow = data_type is DataType.BFLOAT16
        elements = np.empty(
            array.shape, "uint16" if narrow else "float32" if data_type.is_float else array.dtype
        )
        count = library.convert(
            ELEMENT_TYPES[array.dtype.name],
            (ctypes.c_uint64 * max(1, array.ndim))(*array.shape),
            ctypes.c_size_t(array.ndim),
            np.ascontiguousarray(array).ctypes.data_as(ctypes.c_void_p),
            library.data_type(data_type.mlir.encode()),
            ctypes.c_bool(layout is Layout.TILE),
            pages,
            elements.ctypes.data_as(ctypes.c_void_p),
        )
        assert count > 0
        if narrow:
            elements = elements.view(ml_dtypes.bfloat16)
        return pages.raw[: count * page_size(placement)], elements

    return call


def drawn(shape: tuple[int, ...], data_type: DataType) -> np.ndarray:
    """Values that a data type can hold, in what the host has of it."""
    generator = np.random.default_rng(len(shape))
    if data_type.is_float:
        values = generator.normal(size=shape).astype(np.float32)
        return values.astype(data_type.numpy).astype(np.float32)
    return generator.integers(0, 200, shape).astype(data_type.numpy)


def tilized(array: np.ndarray) -> np.ndarray:
    """The elements tile by tile, face by face, padded with zeros."""
    matrices = array.reshape((-1, *(1, 1, *array.shape)[-2:]))
    _, rows, columns = matrices.shape
    padding = ((0, 0), (0, -rows % 32), (0, -columns % 32))
    padded = np.pad(matrices, padding)
    _, rows, columns = padded.shape
    faces = padded.reshape(-1, rows // 32, 2, 16, columns // 32, 2, 16)
    return faces.transpose(0, 1, 4, 2, 5, 3, 6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("data_type", PLAIN, ids=lambda data_type: data_type.mlir)
def test_tiles(convert: Convert, shape: tuple[int, ...], data_type: DataType) -> None:
    array = drawn(shape, data_type)
    pages, elements = convert(array, data_type, Layout.TILE)
    assert pages == tilized(array.astype(data_type.numpy)).tobytes()
    np.testing.assert_array_equal(elements.astype(array.dtype), array)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("data_type", PLAIN, ids=lambda data_type: data_type.mlir)
def test_rows(convert: Convert, shape: tuple[int, ...], data_type: DataType) -> None:
    array = drawn(shape, data_type)
    pages, elements = convert(array, data_type, Layout.ROW_MAJOR)
    rows = array.astype(data_type.numpy).reshape(-1, shape[-1] if shape else 1)
    size = rows.shape[1] * rows.itemsize
    padding = bytes(-size % 32)
    assert pages == b"".join(row.tobytes() + padding for row in rows)
    np.testing.assert_array_equal(elements.astype(array.dtype), array)


@pytest.mark.parametrize("data_type", MANTISSA_BITS, ids=lambda data_type: data_type.mlir)
@pytest.mark.parametrize("shape", SHAPES)
def test_block_floats(convert: Convert, shape: tuple[int, ...], data_type: DataType) -> None:
    generator = np.random.default_rng(1)
    scale = np.exp2(generator.integers(-20, 20, shape))
    array = (generator.normal(size=shape) * scale).astype(np.float32)
    _, elements = convert(array, data_type, Layout.TILE)
    expected = block_rounded(np.atleast_2d(array), MANTISSA_BITS[data_type]).reshape(shape)
    np.testing.assert_array_equal(elements, expected)


def test_block_floats_of_special_values(convert: Convert) -> None:
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -1.0]
    array = np.zeros((32, 32), np.float32)
    for row, value in enumerate(values):
        array[row, :2] = value
        array[row, 3] = 1.0
    for data_type, bits in MANTISSA_BITS.items():
        _, elements = convert(array, data_type, Layout.TILE)
        np.testing.assert_array_equal(elements, block_rounded(array, bits))


def test_a_tile_of_a_block_float(convert: Convert) -> None:
    array = np.zeros((32, 32), np.float32)
    array[0, :3] = [1.0, -0.5, 3.0]
    array[16, 16] = 0.25
    pages, _ = convert(array, DataType.BFLOAT8_B, Layout.TILE)
    assert len(pages) == 64 + 1024
    # Exponents first, a byte for each row of each face.
    assert (pages[0], pages[48], pages[1]) == (128, 125, 0)
    assert list(pages[64:67]) == [0b0010_0000, 0b1001_0000, 0b0110_0000]
    assert pages[64 + 3 * 256] == 0b0100_0000
