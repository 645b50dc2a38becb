"""Constants of a program that are too many for one function are all prepared."""

from __future__ import annotations

import re
from collections import OrderedDict

import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

COUNT = 60


def test_every_constant_is_prepared() -> None:
    lines: list[str] = []
    for i in range(COUNT):
        numbers = ", ".join(f"{i + k}.0" for k in range(3))
        lines.append(
            f'  %c{i} = "ttir.constant"() <{{value = dense<[{numbers}]> : tensor<3xf32>}}> '
            ": () -> tensor<3xf32>"
        )
        before = "%x" if i == 0 else f"%s{i - 1}"
        types = "(tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>"
        lines.append(f'  %s{i} = "ttir.multiply"({before}, %c{i}) : {types}')
    text = "\n".join(
        [
            "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {",
            *lines,
            f"  return %s{COUNT - 1} : tensor<3xf32>",
            "}",
        ]
    )
    files = compile_module(Source("in.mlir", text), CompileOptions("m")).files
    struct = re.search(r"struct FConstants \{(.*?)\n\};", files["src/m.hpp"], re.DOTALL)
    assert struct is not None
    fields = re.findall(r"ttnn::Tensor (\w+);", struct[1])
    assert len(fields) == COUNT
    prepared = re.findall(r"^ +constants\.(\w+) =", files["src/m.cpp"], re.MULTILINE)
    assert sorted(prepared) == sorted(fields)


def test_parts_are_named_after_their_own_layers() -> None:
    """A number that all of them use is of the first layer, and made in each."""
    torch = pytest.importorskip("torch")
    from ttcodegen.torch import export

    layers: list[tuple[str, object]] = []
    for index in range(10):
        before, after = 3 if index == 0 else 8 + index, 9 + index
        convolution = torch.nn.Conv2d(before, after, 1 + 2 * (index % 3), padding=index % 3)
        layers += [(f"conv{index}", convolution), (f"norm{index}", torch.nn.BatchNorm2d(after))]
    model = torch.nn.Sequential(OrderedDict(layers)).eval()
    text = export(model, (torch.ones(1, 3, 16, 16),))
    cpp = compile_module(Source("in.mlir", text), CompileOptions("m")).files["src/m.cpp"]
    parts = re.findall(r"^static void prepare_forward_(\w+)\(", cpp, re.MULTILINE)
    assert len(parts) > 1
    assert sum("norm0" in part for part in parts) == 1, parts
