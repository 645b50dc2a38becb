"""Programs for each release of tt-metal: their calls, their kernels, and what users changed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import read_manifest
from scripts.kernel_check_toolchain import ToolchainError, device_headers, find_clang
from scripts.link_check import (
    ROOT,
    LinkCheckError,
    check,
    project_objects,
    read_header_only,
    wheel_libraries,
)
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.emitc.spelling import Text
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.ops.core.calls import Call, in_release
from ttcodegen.systems.releases import CATALOGUE_RELEASE, DEFAULT_RELEASE, RELEASES, release_named

OLDEST, LATER = RELEASES[0], RELEASES[-1]
OTHER = next(name for name in RELEASES if name != DEFAULT_RELEASE)
"""A release that is not the default: a sample is linked and compiled, of the default all."""
WHEELS = ROOT / "build" / "wheels"
CACHE = """
func.func @fill(
    %cache: tensor<2x4x64x32xbf16> {ttir.kv_cache, ttir.name = "cache"},
    %x: tensor<1x4x32x32xbf16> {ttir.name = "x"}
) -> tensor<2x4x64x32xbf16> {
  %0 = "ttir.fill_cache"(%cache, %x) <{batch_offset = 1 : i32}>
      : (tensor<2x4x64x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<2x4x64x32xbf16>
  return %0 : tensor<2x4x64x32xbf16>
}
"""
PRODUCT = """
func.func @product(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%x, %w)
      : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
"""
SLOPE = """
func.func @slope(%g: tensor<32x64xbf16> {ttir.name = "g"}, %x: tensor<32x64xbf16> {ttir.name = "x"})
    -> tensor<32x64xbf16> {
  %0 = "ttir.gelu_bw"(%g, %x) <{approximate = "tanh"}>
      : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.exp"(%0) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}
"""
SELECTION = """
func.func @select(%c: tensor<32x64xCONDITION>, %x: tensor<32x64xVALUE>) -> tensor<32x64xVALUE> {
  %0 = "ttir.constant"() <{value = dense<NUMBER> : tensor<32x64xVALUE>}> : () -> tensor<32x64xVALUE>
  %1 = "ttir.where"(%c, %x, %0)
      : (tensor<32x64xCONDITION>, tensor<32x64xVALUE>, tensor<32x64xVALUE>) -> tensor<32x64xVALUE>
  return %1 : tensor<32x64xVALUE>
}
"""
Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Writes the project of a module for a release."""

    def write(text: str, release: str, *options: str, name: str = "out") -> Path:
        source = tmp_path / "model.mlir"
        source.write_text(text)
        arguments = [str(source), "-o", str(tmp_path / name), "-q", "--tt-metal", release]
        assert main([*arguments, *options]) == 0
        return tmp_path / name

    return write


def texts(*words: str) -> tuple[Text, ...]:
    return tuple(Text(word) for word in words)


def passed(callee: str, *words: str, release: str = LATER) -> list[str]:
    call = in_release(Call(callee, texts(*words), "ttnn::Tensor"), release_named(release))
    return [argument.text for argument in call.arguments if isinstance(argument, Text)]


def test_parameters_of_another_order_move() -> None:
    given = ("x", "1", "axis", "subdevice", "memory", "output", "2")
    assert passed("ttnn::all_gather", *given) == [
        *("x", "1", "axis", "memory", "output", "subdevice", "std::nullopt", "2")
    ]


def test_parameters_that_a_release_lacks_are_left_out() -> None:
    given = ("x", "1", "true", "cores", "multicore", "memory")
    assert passed("ttnn::argmax", *given) == ["x", "1", "true", "cores", "memory"]


def test_parameters_without_a_default_are_always_passed() -> None:
    given = ("q", "kv", "8", "8", "true", "memory")
    assert passed("ttnn::experimental::nlp_create_qkv_heads", *given) == [
        *("q", "kv", "8", "8", "true", "false", "memory")
    ]


def test_what_the_release_takes_alike_stays() -> None:
    assert passed("ttnn::argmax", "x", "1", release=OLDEST) == ["x", "1"]
    assert passed("ttnn::argmax", "x", "1") == ["x", "1"]
    assert passed("ttnn::add", "x", "y") == ["x", "y"]


def test_the_newest_release_is_the_default() -> None:
    numbers = [release_named(name).number for name in RELEASES]
    assert numbers == sorted(numbers)
    assert RELEASES[-1] == DEFAULT_RELEASE
    compiled = compile_module(Source("m.mlir", CACHE), CompileOptions("m"))
    assert compiled.description.release == DEFAULT_RELEASE
    assert f"for tt-metal {DEFAULT_RELEASE}" in compiled.files["src/m.cpp"]


def test_the_release_that_the_catalogue_states_has_no_rows() -> None:
    known = CATALOGUE_RELEASE
    rows = (known.calls, known.kernels, known.absent_calls, known.absent_kernels, known.names)
    assert not any(rows)
    assert known.definitions == ()


def test_releases_are_named_by_their_tables_alone() -> None:
    """A difference between releases is a row of a table: nothing else asks for one by its name."""
    numbers = [str(release_named(name).number) for name in RELEASES]
    names = [*RELEASES, *(name.replace(".", "_") for name in RELEASES), *numbers]
    named = re.compile(rf"(?<![\d.])({'|'.join(map(re.escape, names))})(?![\d.]*\d)")
    package = ROOT / "ttcodegen"
    tables = package / "systems" / "releases"
    texts = [
        path
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and not path.is_relative_to(tables)
    ]
    assert len(texts) > 400
    assert named.search((tables / "tt_metal_0_81_1.py").read_text("utf-8"))
    found = [str(path.relative_to(ROOT)) for path in texts if named.search(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("release", RELEASES)
def test_rows_of_kernels_are_those_of_ops(release: str) -> None:
    known = release_named(release)
    assert {*known.kernels, *known.absent_kernels} <= set(kernel_ops())
    parts = [int(part) for part in release.split(".")]
    assert known.number == parts[0] * 10_000 + parts[1] * 100 + parts[2]


def test_a_cache_is_filled_with_the_call_of_each_release(written: Write) -> None:
    calls = {
        release: " ".join(
            (written(CACHE, release, name=release) / "src/model.cpp").read_text().split()
        )
        for release in RELEASES
    }
    assert re.search(r"ttnn::fill_cache\([^()]*, 1\);", calls[OLDEST])
    assert re.search(r"ttnn::fill_cache\([^()]*, 1, 0\);", calls[LATER])


GELU = "ttnn::operations::unary::GeluVariant"
SLOPES = {"none": f"{GELU}::ACCURATE", "tanh": f"{GELU}::TANH"}


@pytest.mark.parametrize("approximate", SLOPES)
def test_the_slope_of_gelu_is_the_first_of_the_gradients(written: Write, approximate: str) -> None:
    text = SLOPE.replace("tanh", approximate)
    calls = {
        release: (written(text, release, name=release) / "src/model.cpp").read_text()
        for release in RELEASES
    }
    assert "experimental/unary_backward/gelu_backward/gelu_backward.hpp" in calls[OLDEST]
    assert "ttnn::experimental::gelu_bw(" in calls[OLDEST]
    later = "".join(calls[LATER].split())
    assert "#include<ttnn/operations/eltwise/unary_backward/unary_backward.hpp>" in later
    assert "experimental" not in later
    variant = SLOPES[approximate]
    assert f"=ttnn::gelu_bw(inputs.g,inputs.x,{variant})[0].value();" in later
    (made,) = re.findall(r"ttnn::Tensor(\w+)=ttnn::gelu_bw", later)
    assert f"ttnn::exp({made})" in later


def selected(condition: str, value: str, number: str, release: str) -> list[str]:
    """The calls that a selection between a tensor and a number becomes."""
    text = SELECTION.replace("CONDITION", condition).replace("VALUE", value)
    options = CompileOptions("m", release=release)
    compiled = compile_module(Source("m.mlir", text.replace("NUMBER", number)), options)
    (source,) = (text for path, text in compiled.files.items() if path == "src/m.cpp")
    return re.findall(r"ttnn::where\(.*?\)", " ".join(source.split()))


@pytest.mark.parametrize(
    ("condition", "value", "number", "is_alike"),
    [
        ("bf16", "bf16", "1.500000e+00", True),
        ("bf16", "f32", "1.500000e+00", False),
        ("f32", "bf16", "1.500000e+00", False),
        ("bf16", "f32", "0xFF800000", False),
        ("si32", "si32", "7", True),
        ("bf16", "si32", "7", False),
        ("ui16", "ui16", "7", False),
    ],
)
def test_a_number_beside_tensors_of_several_types_is_a_tensor(
    condition: str, value: str, number: str, is_alike: bool
) -> None:
    """Measured: `Mixed dtype is not supported for binary operation BinaryOpType::WHERE_TTS`."""
    (before,) = selected(condition, value, number, OLDEST)
    (after,) = selected(condition, value, number, LATER)
    assert (after == before) is is_alike
    last = after.rpartition(", ")[2]
    assert ("constant" in last or last.isidentifier()) is not is_alike


SORT = """
func.func @sort(%x: tensor<32x64xELEMENT>) -> (tensor<32x64xELEMENT>, tensor<32x64xINDEX>) {
  %0, %1 = "ttir.sort"(%x) <{dim = 1 : si32}>
      : (tensor<32x64xELEMENT>) -> (tensor<32x64xELEMENT>, tensor<32x64xINDEX>)
  return %0, %1 : tensor<32x64xELEMENT>, tensor<32x64xINDEX>
}
"""


@pytest.mark.parametrize("index", ["ui16", "si32"])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_indices_of_floats_of_32_bits_have_32_bits(element: str, index: str) -> None:
    """Measured: `sort` of float32 gives uint32, of bfloat16 uint16."""
    types: dict[str, list[str]] = {}
    for release in RELEASES:
        source = Source("m.mlir", SORT.replace("ELEMENT", element).replace("INDEX", index))
        binary = read_flatbuffer(
            compile_module(source, CompileOptions("m", release=release)).flatbuffer
        )
        assert isinstance(binary, Binary)
        (program,) = binary.programs
        types[release] = [
            program.tensors[operation.results[-1]].type.placement.data_type.mlir
            for operation in program.operations
            if operation.name in ("ttnn.sort", "ttnn.typecast")
        ]
    last = [] if index == "ui16" else ["si32"]
    assert types[OLDEST] == ["u16", *last]
    later = "u32" if element == "f32" else "u16"
    assert types[LATER] == [later, *(last or ["u16"] * (later == "u32"))]


def test_kernels_are_spelled_as_each_release_does(written: Write) -> None:
    kernels: dict[str, str] = {}
    for release in RELEASES:
        out = written(PRODUCT, release, "--target", "ttmetal", name=release)
        [path] = out.glob("kernels/compute_*.cpp")
        kernels[release] = path.read_text()
        assert f"for tt-metal {release}" in kernels[release]
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest["tt_metal_release"] == release
    assert "mm_block_init(" in kernels[OLDEST]
    assert "compute_kernel_hw_startup" not in kernels[OLDEST]
    later = kernels[LATER]
    start = later.index("compute_kernel_hw_startup<SrcOrder::Reverse>(")
    assert start < later.index("matmul_block_init(", start)
    assert "mm_block_init" not in later
    assert '#include "api/compute/compute_kernel_hw_startup.h"' in later


@pytest.mark.parametrize(("before", "after"), [(OLDEST, LATER), (LATER, OLDEST)])
def test_edits_survive_the_change_of_the_release(written: Write, before: str, after: str) -> None:
    out = written(CACHE, before)
    file = out / "src" / "model.cpp"
    generated = file.read_text()
    file.write_text(generated.replace("namespace model {", "// by hand\nnamespace model {", 1))
    assert file.read_text() != generated
    assert written(CACHE, after) == out
    merged = file.read_text()
    assert f"for tt-metal {after}" in merged
    assert "// by hand" in merged
    assert (", 1, 0);" in merged) is (after == LATER)
    assert "<<<<<<<" not in merged


def available(made: Callable[[], Path]) -> Path:
    try:
        return made()
    except (LinkCheckError, ToolchainError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the ttnn wheel cannot be had: {error}")


@pytest.mark.slow
@pytest.mark.parametrize("level", ["0", "2"])
def test_an_example_links_with_another_release(tmp_path: Path, level: str) -> None:
    libraries = available(lambda: wheel_libraries(WHEELS, OTHER))
    source, out = ROOT / "examples/digits/digits.mlir", tmp_path / "digits"
    arguments = [str(source), "-o", str(out), "-q", "--tt-metal", OTHER, "--optimize", level]
    assert main(arguments) == 0
    objects = project_objects(out, ROOT / "build" / "link_check", OTHER)
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    assert check(objects, [], libraries, header_only) == []


@pytest.mark.slow
def test_kernels_of_another_release_compile(written: Write) -> None:
    out = written(PRODUCT, OTHER, "--target", "ttmetal")
    device = available(lambda: device_headers(WHEELS, release=OTHER))
    kernel_check = KernelCheck(find_clang(), device, ROOT / "build" / "kernel_check", jobs=2)
    found = kernel_check.check(read_manifest(out / "manifest.json"))
    assert [str(fault) for fault in found] == []
