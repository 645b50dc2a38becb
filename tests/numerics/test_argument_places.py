"""Arguments and outputs are distinguished by their positions: names may be equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.rt.commands.emitc import compare_with_flatbuffer
from ttcodegen.runtime.executable import (
    FlatbufferExecutable,
    ProgramInfo,
    TensorInfo,
    open_flatbuffer,
)
from ttcodegen.runtime.library import LoadedFunction

ROW: dict[str, Any] = {
    "inputs": [
        {"name": "h", "cpp_name": "h", "kind": "input"},
        {"name": "w", "cpp_name": "w", "kind": "parameter"},
        {"name": "mask", "cpp_name": "mask", "kind": "input"},
    ],
    "outputs": [
        {"name": "w", "cpp_name": "w", "kind": "output"},
        {"name": "h", "cpp_name": "h", "kind": "output"},
    ],
}  # fmt: skip


class Tensor:
    """Description of a tensor in the buffer table of a library."""

    def __init__(self, field: str) -> None:
        self.field = field.encode()


class Library:
    """A library with one function, `ROW`."""

    def call(self, name: str, *arguments: object) -> bytes:
        return b"f"

    def describe(self, kind: str, index: int) -> list[Tensor]:
        return [Tensor(f) for f in {"input": ["h", "mask"], "weight": ["w"]}.get(kind, ["w", "h"])]


class Module:
    library = Library()


def test_outputs_that_are_called_as_inputs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def signature(tensor: Tensor, row: Any) -> Any:
        return (tensor.field.decode(), row["kind"])

    monkeypatch.setattr("ttcodegen.runtime.library.signature_of", signature)
    function = LoadedFunction(Module(), 0, ROW)  # type: ignore[arg-type]
    found: Any = function.arguments
    assert found == (("h", "input"), ("w", "parameter"), ("mask", "input"))


TEXT = """func.func @f(%h: tensor<32x32xf32> {ttir.name = "h"},
    %w: tensor<32x32xf32> {ttir.name = "w",
                           ttcore.argument_type = #ttcore.argument_type<parameter>},
    %m: tensor<32x32xf32> {ttir.name = "m"})
    -> (tensor<32x32xf32> {ttir.name = "h"}) {
  %0 = "ttir.subtract"(%h, %w) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = "ttir.div"(%0, %m) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
"""


class LibraryExecutable:
    """Runs as the C++ would, and lists inputs before weights, as a library without a manifest."""

    path = Path("lib.so")

    def __init__(self, flatbuffer: FlatbufferExecutable, names: dict[str, str]) -> None:
        info = flatbuffer.programs[0]
        h, w, m = (self.renamed(t, names) for t in info.arguments)
        self.programs = (ProgramInfo(info.name, (h, m, w), info.outputs),)
        self._flatbuffer = flatbuffer

    @staticmethod
    def renamed(tensor: TensorInfo, names: dict[str, str]) -> TensorInfo:
        values = {**vars(tensor), "name": names.get(tensor.name, tensor.name)}
        return TensorInfo(**values)

    def run(self, program: int, arguments: list[np.ndarray]) -> list[np.ndarray]:
        h, m, w = arguments
        return self._flatbuffer.run(0, [h, w, m])


def opened(tmp_path: Path) -> FlatbufferExecutable:
    path = tmp_path / "f.ttnn"
    path.write_bytes(compile_module(Source("f.mlir", TEXT), CompileOptions("f")).flatbuffer)
    return open_flatbuffer(path)


def compared(flatbuffer: FlatbufferExecutable, names: dict[str, str]) -> list[bool]:
    numbers = np.random.default_rng(0)
    inputs = [numbers.random((32, 32), np.float32) + 1 for _ in range(3)]
    expected = flatbuffer.run(0, inputs)
    library: Any = LibraryExecutable(flatbuffer, names)
    arguments: dict[str, Any] = {"pcc": None, "atol": None, "rtol": None, "allclose": False}
    checks = compare_with_flatbuffer(arguments, flatbuffer, library, 0, inputs, expected)
    return [check.agreement.passed for check in checks]


def test_inputs_and_weights_of_equal_shapes_are_not_swapped(tmp_path: Path) -> None:
    assert compared(opened(tmp_path), {}) == [True]


def test_another_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="are not the same program"):
        compared(opened(tmp_path), {"m": "n"})
