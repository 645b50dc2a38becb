"""Tensors that modules of TTNN write to files and read back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.frontends import source_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter

LAYOUTS = """#dram = #ttnn.buffer_type<dram>
#host = #ttnn.buffer_type<system_memory>
#rows = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x32xf32, #host>>
#tiles = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>,
    memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
"""
D, H = "tensor<32x32xf32, #tiles>", "tensor<32x32xf32, #rows>"
DEVICE = '%d = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device'


def dump(value: str, path: str = "a.tensorbin", type_: str = D) -> str:
    return f'"ttnn.dump_tensor"({value}) <{{file_path = "{path}"}}> : ({type_}) -> ()'


def load(name: str, path: str = "a.tensorbin") -> str:
    return f'{name} = "ttnn.load_tensor"(%d) <{{file_path = "{path}"}}> : (!ttnn.device) -> {D}'


def module(*lines: str, returned: str) -> str:
    types = ", ".join([D] * len(returned.split(",")))
    body = "\n".join(lines)
    return (
        f"{LAYOUTS}func.func @f(%x: {D}, %y: {D}) -> ({types}) {{\n{DEVICE}\n{body}\n"
        f"return {returned} : {types}\n}}\n"
    )


TWICE = module(
    dump("%x"), load("%0"), dump("%y"), load("%1"), dump("%1", "b.tensorbin"), returned="%0, %1"
)
ON_HOST = f"""{LAYOUTS}func.func @f(%x: {H}) -> {H} {{
  {dump("%x", type_=H)}
  %0 = "ttnn.load_tensor"() <{{file_path = "a.tensorbin"}}> : () -> {H}
  return %0 : {H}
}}
"""
X, Y = (np.random.default_rng(seed).normal(size=(32, 32)).astype(np.float32) for seed in (1, 2))


def run(text: str) -> list[np.ndarray]:
    return Golden(source_module(Source("m.mlir", text), Diagnostics())).run("f", [X, Y])


def refusal(text: str) -> str:
    with pytest.raises(CompileError) as error:
        compile_module(Source("m.mlir", text), CompileOptions("m"))
    return str(error.value)


def calls(text: str) -> list[str]:
    files = compile_module(Source("m.mlir", text), CompileOptions("m")).files
    lines = " ".join(files["src/m.cpp"].split()).split(";")
    return [re.sub(r".*?ttnn::(?=\w+_tensor_f)", "", line) for line in lines if "_tensor_f" in line]


def test_each_read_gives_what_was_written_last() -> None:
    for result, expected in zip(run(TWICE), (X, Y), strict=True):
        assert np.array_equal(result, expected)
    flatbuffer = compile_module(Source("m.mlir", TWICE), CompileOptions("m")).flatbuffer
    for result, expected in zip(
        Interpreter(read_ttnn(flatbuffer)).run("f", [X, Y]), (X, Y), strict=True
    ):
        assert np.array_equal(result, expected)


def test_the_calls_are_those_of_the_release_in_their_order() -> None:
    found = calls(TWICE)
    assert [call.partition("_tensor")[0] for call in found] == [
        "dump",
        "load",
        "dump",
        "load",
        "dump",
    ]
    assert found[0] == 'dump_tensor_flatbuffer("a.tensorbin", inputs.x)'
    assert found[1] == 'load_tensor_flatbuffer("a.tensorbin", &device)'


def test_a_tensor_of_the_host_is_read_without_a_device() -> None:
    assert calls(ON_HOST)[1] == 'load_tensor_flatbuffer("a.tensorbin")'


def test_the_earlier_release_has_the_calls_elsewhere() -> None:
    options = CompileOptions("m", release="0.70.1")
    source = compile_module(Source("m.mlir", TWICE), options).files["src/m.cpp"]
    assert 'tt::tt_metal::dump_tensor_flatbuffer("a.tensorbin"' in source
    assert 'tt::tt_metal::load_tensor_flatbuffer("a.tensorbin", &device)' in source


def test_a_file_that_nothing_writes_compiles_and_has_no_value_to_compare() -> None:
    text = module(load("%0"), returned="%0")
    assert calls(text) == ['load_tensor_flatbuffer("a.tensorbin", &device)']
    with pytest.raises(CompileError, match=r"reads 'a\.tensorbin', which nothing before it"):
        run(text)


def test_other_files_are_refused() -> None:
    message = refusal(module(dump("%x", "a.bin"), returned="%x"))
    assert "ttnn.dump_tensor: expected a file_path *.tensorbin, found 'a.bin'" in message
    other = load("%0").replace("tensor<32x32xf32", "tensor<64x32xf32")
    message = refusal(module(dump("%x"), other, returned="%x"))
    assert "expected the shape (32, 32) of the tensor that was dumped" in message


@pytest.mark.slow
def test_the_cpu_backend_reads_what_it_wrote(
    cpu_backend: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(TWICE)
    assert main(["m.mlir", "-o", "out", "--check", "-q"]) == 0
    files = [path.name for path in tmp_path.rglob("*.tensorbin")]
    assert sorted(files) == ["a.tensorbin", "b.tensorbin"]
