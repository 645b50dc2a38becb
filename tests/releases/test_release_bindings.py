"""The comparison of parameters as the Python packages of two releases state them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.release_bindings import changes, parameters, stated
from ttcodegen.systems.releases import RELEASES, release_named

OLD = (
    "def __call__(self, input_tensor_a: ttnn._ttnn.tensor.Tensor, input_tensor_b: float, *, "
    "dtype: ttnn._ttnn.tensor.DataType | None = \\0, "
    "activations: collections.abc.Sequence[tuple[int, int]] = \\1, use_legacy: bool | None = \\2) "
    "-> ttnn._ttnn.tensor.Tensor"
)
NEW = OLD.replace("use_legacy: bool | None", "sub_device_id: int").replace("float", "int | float")


def test_parameters_are_those_of_all_overloads() -> None:
    found = parameters([[OLD, "None", "[]", "None"], [NEW, "None", "[]", "7"]])
    assert found == {
        "input_tensor_a": "",
        "input_tensor_b": "",
        "dtype": "None",
        "activations": "[]",
        "use_legacy": "None",
        "sub_device_id": "7",
    }


def test_functions_with_the_same_changes_share_a_row() -> None:
    old = parameters([[OLD, "None", "[]", "None"]])
    new = parameters([[NEW, "ttnn._ttnn.tensor.DataType.BFLOAT16", "[]", "7"]])
    rows = list(
        changes({"add": old, "sub": old, "same": old}, {"add": new, "sub": new, "same": old})
    )
    dtype = "`dtype`: `None`, now `BFLOAT16`"
    assert rows == [["`add`, `sub`", "`sub_device_id=7`", "`use_legacy`", dtype]]


@pytest.mark.slow
def test_what_is_passed_where_nothing_is_assumed_is_what_the_bindings_assume(
    ttnn_pythons: Callable[[str], str],
) -> None:
    """Calls that always pass what 0.81.1 added pass what its bindings assume."""
    later = ttnn_pythons(RELEASES[-1]).rpartition(":")[2]
    names = ("fill_cache", "experimental.paged_update_cache", "experimental.paged_fill_cache")
    found = stated(later, names)
    spelled = {"None": "std::nullopt"}
    for name in names:
        change = release_named(RELEASES[-1]).calls[f"ttnn::{name.replace('.', '::')}"]
        added = [each for each in change.after if each.is_written]
        assert added
        for parameter in added:
            assumed = found[name][parameter.name]
            assert parameter.value == spelled.get(assumed, assumed)
