"""What name stacks of jax become."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr, UnknownLoc

from ttcodegen.frontends.stablehlo.names import named_location
from ttcodegen.naming.layers import location_name


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
