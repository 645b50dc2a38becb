"""Integers and booleans that floats decide: rounding is distinguished from what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.optimizer.modules import compiled
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.numerics.comparison import (
    Agreement,
    OutputCheck,
    compare_decided,
    compare_drawn,
)
from ttcodegen.numerics.interpreter import PerturbedTensor
from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer, unsteady_places
from ttcodegen.numerics.tolerances import EQUAL, tolerance_of_type
from ttcodegen.project.check_summary import check_summary


def perturbed(data_type, seed=0):
    placement = TensorPlacement((1000,), data_type)
    return PerturbedTensor(placement, np.random.default_rng(seed))


def truths(wrong: int, size: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Found and expected booleans, of which the first `wrong` differ, and their mask."""
    expected = np.arange(size) % 2 == 0
    places = np.arange(size) < wrong
    return expected ^ places, expected, places


def test_undecided_elements_are_excused_up_to_one_percent() -> None:
    found = compare_decided(*truths(10)[:2], EQUAL, truths(10)[2])
    assert found.passed
    assert found.excused == 10
    actual, expected, places = truths(11)
    found = compare_decided(actual, expected, EQUAL, places)
    assert not found.passed
    assert "11 depend on rounding, more than 1% of 1000" in found.reason


def test_a_decided_element_is_never_excused() -> None:
    actual, expected, places = truths(2)
    places[0] = False
    assert not compare_decided(actual, expected, EQUAL, places).passed


def test_of_integers_none_is_excused() -> None:
    expected = np.arange(1000)
    actual = np.where(expected == 7, 8, expected)
    assert not compare_decided(actual, expected, EQUAL, expected == 7, 0.0).passed


def test_the_only_true_elements_are_not_excused() -> None:
    """A comparison with the maximum of 1,000 elements that is false everywhere says nothing."""
    expected = np.arange(1000) == 3
    found = compare_decided(np.zeros(1000, bool), expected, EQUAL, expected)
    assert not found.passed
    assert "all elements that are true" in found.reason


def test_the_only_infinite_elements_are_not_excused() -> None:
    expected = np.where(np.arange(1000) == 3, np.inf, np.arange(1000.0)).astype(np.float32)
    actual = np.where(np.arange(1000) == 3, 0, expected)
    tolerance = tolerance_of_type(DataType.FLOAT32)
    assert not compare_decided(actual, expected, tolerance, expected == np.inf).passed


def checked(golden: Agreement) -> OutputCheck:
    return OutputCheck("main", "out", None, golden)


def test_what_was_left_out_is_said() -> None:
    excused = compare_decided(*truths(10)[:2], EQUAL, truths(10)[2])
    line = check_summary([checked(excused)], Path("out"))
    assert "10 elements of 1 output left out, for rounding decides them" in line
    assert "at most 1%" in line
    entry = checked(excused).to_json()
    assert entry["excused"] == {"elements": 10, "at_most": 0.01}
    plain = checked(compare_decided(*truths(0)[:2], EQUAL, truths(0)[2]))
    assert "left out" not in check_summary([plain], Path("out"))
    assert "excused" not in plain.to_json()


def test_what_a_data_type_holds_as_it_is_stays():
    tensor = perturbed(DataType.BFLOAT16)
    exact = np.arange(-500, 500, dtype=np.float32) / 4
    held = exact.astype("bfloat16").astype(np.float32)
    assert np.array_equal(tensor.rounded(held), held)


def test_roundings_come_out_otherwise_by_one_digit_at_most():
    values = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    tensor = perturbed(DataType.BFLOAT16)
    usual = values.astype("bfloat16").astype(np.float32)
    found = tensor.rounded(values)
    changed = found != usual
    assert 0.05 < changed.mean() < 0.9
    assert np.abs(found - usual).max() <= (2.0**-7 * np.abs(usual)).max()


def test_integers_are_not_perturbed():
    values = np.arange(1000, dtype=np.int32)
    assert np.array_equal(perturbed(DataType.INT32).rounded(values), values)


def test_two_samples_of_one_distribution_agree():
    first, second = (np.random.default_rng(seed).uniform(0, 1, 4096) for seed in (0, 1))
    assert compare_drawn(first, second).passed


def test_samples_of_other_distributions_do_not():
    expected = np.random.default_rng(0).uniform(0, 1, 4096)
    for wrong in (expected + 0.5, expected * 0.5, expected * 3, np.full(4096, 0.5)):
        assert not compare_drawn(wrong, expected).passed
    assert not compare_drawn(expected[:-1], expected).passed


def test_one_element_may_be_dropped_or_not() -> None:
    kept, dropped = np.full((), 0.365, np.float32), np.zeros((), np.float32)
    assert compare_drawn(kept, dropped).passed
    assert not compare_drawn(np.full(1000, 0.365), np.zeros(1000)).passed


NEARLY_ZERO = """
func.func @main(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.subtract"(%y, %0) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %2 = "ttir.OP"(%1) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %2 : tensor<32x64xbf16>
}
"""


@pytest.mark.parametrize("op", ["log", "logical_not"])
def test_what_is_nearly_zero_hangs_on_rounding(op: str) -> None:
    x = np.random.default_rng(0).normal(size=(32, 64)).astype("bfloat16")
    far = np.random.default_rng(1).random((32, 64)) < 0.5
    exact = np.exp(x.astype(np.float32))
    y = np.where(far, 2 * exact, exact).astype("bfloat16")
    binary = read_flatbuffer(compiled(NEARLY_ZERO.replace("OP", op), 0).flatbuffer)
    with np.errstate(all="ignore"):
        run = interpreter_of(binary).run("main", [x, y])
    places = unsteady_places(binary, "main", [x, y], run, [0])[0]
    assert 0.2 < places[~far].mean()
    assert not places[far].any()
