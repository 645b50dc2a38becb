"""Names of values from name stacks of JAX."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr, UnknownLoc

from ttcodegen.foundation.diagnostics import CompileError, Source, SourceLocation
from ttcodegen.frontends import read_module
from ttcodegen.frontends.stablehlo.reading.names import named_location
from ttcodegen.naming.sources import location_name


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ("jit(f)/Block_0/attention/dot_general", "Block_0/attention/"),
        ("jit(f)/Block_0/jit(silu)/mul", "Block_0/silu/"),
        ("jit(f)/Block_0/residual", "Block_0/residual"),
        ("jit(f)/convert_element_type", None),
    ],
)
def test_operations_of_jax_name_no_value(stack: str, expected: str | None) -> None:
    found = named_location(NameLoc(StringAttr(stack), NoneAttr()))
    assert location_name(found) == expected
    assert isinstance(found, UnknownLoc) == (expected is None)


CALLED = """
module {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @inner(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc("f"("model.py":7:11))
    return %0 : tensor<4xf32>
  }
  func.func private @inner(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @mine(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc("mine")
    return %0 : tensor<4xf32>
  }
}
"""


def test_what_a_framework_calls_comes_from_the_line_of_the_call() -> None:
    with pytest.raises(CompileError) as caught:
        read_module(Source("in.mlir", CALLED))
    (diagnostic,) = caught.value.diagnostics
    # Columns of Python count from 0.
    assert [note.place for note in diagnostic.notes] == [SourceLocation("model.py", 7, 12)]
