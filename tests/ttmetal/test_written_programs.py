"""Modules that hold programs of the device already, as the pipeline prints them or a person writes
them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import source_module
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of
from ttcodegen.transforms.ttmetal.device_programs import call_meanings

IMAGE, ROWS = tensor((8, 64), "bf16"), tensor((2, 4, 64), "bf16")
TEXT = function(
    "several",
    [IMAGE],
    [
        call("exp", ["%a0"], [IMAGE], IMAGE),
        call("reshape", ["%0"], [IMAGE], ROWS, shape="[2 : i32, 4 : i32, 64 : i32]"),
        call("softmax", ["%1"], [ROWS], ROWS, dimension="2 : si32"),
    ],
    f"%2 : {ROWS}",
)
OPTIONS = CompileOptions("several", "ttmetal")
EXAMPLE = np.linspace(-1, 1, 512, dtype=np.float32).reshape(8, 64)


def programs(text: str = TEXT) -> Source:
    """Text of a module after the pipeline to device programs."""
    module = source_module(Source("several.mlir", text))
    runner = PassRunner(load_dialects())
    runner.run(module, passes_of(Step("ttir-to-ttmetal-pipeline", {})))
    return Source("several.mlir", module_text(module))


def sources(source: Source) -> dict[str, str]:
    """The C++ of a module, without what identifies its text."""
    files = compile_module(source, OPTIONS).files
    return {path: re.sub("SHA-256 [0-9a-f]+", "", text) for path, text in files.items()}


def test_programs_compile_to_what_their_source_compiles_to() -> None:
    assert sources(programs()) == sources(Source("several.mlir", TEXT))


def test_programs_beside_functions_of_the_cpu_compile_to_what_their_source_compiles_to() -> None:
    text = f"""func.func @f(%x: {IMAGE}) -> {IMAGE} {{
  %0 = "ttir.exp"(%x) : ({IMAGE}) -> {IMAGE}
  %1 = "ttir.neg"(%0) {{ttir.should_hoist}} : ({IMAGE}) -> {IMAGE}
  %2 = "ttir.exp"(%1) : ({IMAGE}) -> {IMAGE}
  return %2 : {IMAGE} }}
"""
    found = sources(programs(text))
    assert "src/cpu_functions.cpp" in found
    assert found == sources(Source("several.mlir", text))


def test_a_program_that_was_edited_compiles() -> None:
    written = programs()
    edited = re.sub(r'(name = "buffer_depth", value =) 2', r"\1 3", written.text)
    assert "buffer_depth = 3" in sources(Source("several.mlir", edited))["src/tuning.hpp"]


def test_programs_mean_what_their_functions_say() -> None:
    module = source_module(programs())
    call_meanings(module)
    text = module_text(module)
    assert not re.search("ttmetal|ttkernel|#ttnn", text)
    assert len(re.findall("func.call @", text)) == 2
    assert '"ttir.reshape"' in text


def test_programs_are_checked_against_their_meanings() -> None:
    source = programs()
    compiled = compile_module(source, OPTIONS)

    def inputs(_module: ModuleOp, _function: FuncOp) -> tuple[np.ndarray, ...]:
        return (EXAMPLE,)

    (runs,) = run_in_numpy(source, compiled, inputs)
    np.testing.assert_allclose(runs.golden[0].sum(axis=2), 1, atol=0.02)


def test_the_library_does_not_run_them() -> None:
    with pytest.raises(CompileError, match="not compiled for ttnn") as raised:
        compile_module(programs(), CompileOptions("several", "ttnn"))
    assert raised.value.diagnostics[0].remedy == "give --target ttmetal"


def test_a_program_without_a_meaning_compiles_but_is_not_checked() -> None:
    declared = re.sub(
        r"(@reshape_meaning\()%\w+: ([^\n]*) \{\n.*?\n  \}",
        r"\1\2",
        programs().text,
        flags=re.DOTALL,
    )
    source = Source("several.mlir", declared)
    assert not compile_module(source, OPTIONS).flatbuffer
    with pytest.raises(CompileError, match="this program has no meaning"):
        call_meanings(source_module(source))


ONE_OP = function("several", [IMAGE], [call("exp", ["%a0"], [IMAGE], IMAGE)], f"%0 : {IMAGE}")


def test_tensors_without_a_layout_are_in_dram_and_meanings_need_no_mark() -> None:
    printed = programs(ONE_OP)
    plain = printed.text.replace(", #ttnn_layout>", ">")
    plain = plain.replace(" attributes {ttmetal.meaning}", "")
    assert plain.count("<8x64xbf16>") > printed.text.count("<8x64xbf16>")
    assert "ttmetal.meaning" in printed.text
    assert sources(Source("several.mlir", plain)) == sources(printed)


def test_tensors_with_a_layout_of_another_kind_are_refused() -> None:
    other = (
        "#ttcore.metal_layout<logical_shape = 8x64, dim_alignments = 32x32, "
        "collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, undef, l1>"
    )
    written = programs(ONE_OP).text.replace(", #ttnn_layout>", f", {other}>")
    with pytest.raises(CompileError, match="which is no tensor in a memory of the device") as error:
        sources(Source("several.mlir", written))
    assert error.value.diagnostics[0].place is not None
