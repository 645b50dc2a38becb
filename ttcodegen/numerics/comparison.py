"""Comparison of runs: C++ against flatbuffer tightly, flatbuffer against golden by correlation.

The measure depends on the elements:

* not finite: NaN, +inf and -inf have to be at the same positions; the other elements are compared
  as below;
* integers and booleans: element by element;
* floats that vary: Pearson correlation in float64, and the largest error relative to the expected
  range;
* values that depend on random numbers: range, mean and deviation, since generators differ;
* floats that do not vary (or a single one): relative error of every element, since correlation is
  meaningless.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.tolerances import EQUAL, Tolerance, tolerance_of_type

Measure = Literal["correlation", "relative error", "agreement", "statistics", "none"]


_GOLDEN_BF16 = Tolerance(0.99, math.inf, 0.05, deviation=2.0**-6, rounding=0.0)
_GOLDEN_F32 = Tolerance(0.99, math.inf, 0.05, deviation=2.0**-12, rounding=0.0)
# The packer keeps three mantissa bits: numbers between two powers of two correlate 0.985 with
# the exact ones.
_GOLDEN_BFP4 = Tolerance(0.97, math.inf, 0.25, deviation=2.0**-2, rounding=0.0)
# Frameworks round differently, but not less.
_REFERENCE_BF16 = Tolerance(0.99, math.inf, 0.05, deviation=2.0**-6, rounding=0.0)
_REFERENCE_F32 = Tolerance(0.9999, math.inf, 0.01, deviation=2.0**-12, rounding=0.0)
_GOLDEN_FLOATS = {DataType.FLOAT32: _GOLDEN_F32, DataType.BFLOAT4_B: _GOLDEN_BFP4}
# Decisions between close floats (argmax, comparisons) may flip by rounding, which is no error of
# the program; most have to be right.
_GOLDEN_DECISIONS = Tolerance(0.99, 0.0, 0.0, deviation=0.0, rounding=0.0, agreement=0.75)

MOST_UNDECIDED = 0.01
"""Upper bound on the fraction of float or boolean elements excused as decided by rounding.

No integers are excused.
"""
MOST_ROUNDED = 1 - _GOLDEN_DECISIONS.agreement
"""Upper bound on the fraction of integers that 16-bit rounding may change against the golden
run."""
NEGLIGIBLE = 1e-6
"""Absolute error up to which an element counts as equal."""


def golden_tolerance(data_type: DataType, exact: bool, depends_on_floats: bool) -> Tolerance:
    """Returns the tolerance of the flatbuffer run against the golden; `exact` for integers and
    booleans."""
    if not exact:
        return _GOLDEN_FLOATS.get(data_type, _GOLDEN_BF16)
    return _GOLDEN_DECISIONS if depends_on_floats else EQUAL


def reference_tolerance(
    dtype: np.dtype[Any], depends_on_floats: bool, block_floats: bool = False
) -> Tolerance:
    """Returns the tolerance of the C++ run against a framework, in results of that dtype;
    `block_floats` for programs whose activations are."""
    if dtype.kind in "biu":
        return _GOLDEN_DECISIONS if depends_on_floats else EQUAL
    wide = dtype.name in ("float32", "float64") and not block_floats
    return _REFERENCE_F32 if wide else _REFERENCE_BF16


@dataclass(frozen=True)
class Agreement:
    """Agreement of an array with the expected one."""

    passed: bool
    measure: Measure
    value: float | None
    """Correlation, fraction of equal elements, or error relative to the magnitude."""
    max_abs_err: float
    """Largest absolute error; infinite if non-finite elements differ."""
    reason: str = ""
    """Reason for the failure."""
    excused: int = 0
    """Number of elements excluded because rounding decides them."""

    @property
    def correlation(self) -> float | None:
        """Returns the correlation, or None if another measure was used."""
        return self.value if self.measure == "correlation" else None

    def to_json(self, name: str) -> dict[str, Any]:
        """Returns the report entry of an output that was only compared with a reference."""
        return {
            "name": name,
            "reference_pcc": self.correlation,
            "reference_max_abs_err": _json_number(self.max_abs_err),
            "reference_measure": self.measure,
            "passed": self.passed,
            **({} if self.passed else {"reasons": [self.reason]}),
        }


def compare(actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> Agreement:
    """Compares two arrays of any numeric dtypes; booleans may be compared with floats 0 and 1."""
    if actual.shape != expected.shape:
        return _failed(f"the shape is {actual.shape} instead of {expected.shape}")
    if actual.size == 0:
        return Agreement(True, "none", None, 0.0)
    # Flattened once for all passes below, since flattening copies a transposed array.
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if _is_exact(expected):
        return _compare_exactly(actual, expected, tolerance)
    kinds = (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf))
    counts = [0] * len(kinds)
    for a, e in _blocks(actual, expected):
        if not (np.isfinite(a).all() and np.isfinite(e).all()):
            for index, (_, found) in enumerate(kinds):
                counts[index] += int(np.count_nonzero(found(a) != found(e)))
    for (kind, _), different in zip(kinds, counts, strict=True):
        if different:
            return _failed(f"{kind} is at other positions ({different} elements)")
    pair = Moments.of(actual, expected)
    return Agreement(True, "none", None, 0.0) if pair is None else _compare_floats(pair, tolerance)


def compare_decided(
    actual: np.ndarray,
    expected: np.ndarray,
    tolerance: Tolerance,
    undecided: np.ndarray,
    most: float = MOST_UNDECIDED,
) -> Agreement:
    """Compares without the elements that differ and are decided by rounding.

    Args:
        actual: the computed array.
        expected: the expected array.
        tolerance: for the elements that are compared.
        undecided: mask of the elements that rounding decides.
        most: the largest fraction that may be excused. If more are needed, or if this would excuse
            all true (false, not finite) elements of `expected`, none are, and the comparison fails.
    """
    plain = compare(actual, expected, tolerance)
    if plain.passed or actual.shape != expected.shape:
        return plain
    excused = undecided & _differs(actual, expected)
    count = int(excused.sum())
    if count == 0:
        return plain
    if count > most * excused.size:
        limit = f"more than {most:.0%} of {excused.size}" if most else "of integers none may"
        return replace(plain, reason=f"{plain.reason}; {count} depend on rounding, {limit}")
    for kind, members in _kinds(expected):
        if members.any() and not (members & ~excused).any():
            reason = f"{plain.reason}; all elements that are {kind} depend on rounding"
            return replace(plain, reason=reason)
    found = compare(np.where(excused, expected, actual), expected, tolerance)
    return replace(found, excused=count)


def _differs(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Returns the mask of elements at which two arrays differ; NaN equals NaN."""
    both_nan = (actual != actual) & (expected != expected)
    return (actual != expected) & ~both_nan


def _kinds(expected: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Returns masks of the kinds of elements that rounding decides between."""
    if ((expected == 0) | (expected == 1)).all():
        return [("true", expected == 1), ("false", expected == 0)]
    if _is_exact(expected):
        return []
    finite = np.isfinite(expected)
    return [("finite", finite), ("not finite", ~finite)]


def compare_drawn(actual: np.ndarray, expected: np.ndarray) -> Agreement:
    """Compares arrays that depend on random numbers.

    Range, mean and deviation have to match a sample of the same distribution: means within six
    standard errors, deviations within the same relative margin.
    """
    if actual.shape != expected.shape:
        return _failed(f"the shape is {actual.shape} instead of {expected.shape}")
    if actual.size == 0:
        return Agreement(True, "none", None, 0.0)
    a, e = _float64(actual), _float64(expected)
    if not np.isfinite(a).all() and np.isfinite(e).all():
        return _failed("some elements are not finite")
    deviation = float(e.std())
    room = 6.0 / math.sqrt(a.size)
    scale = max(float(np.abs(a).max()), float(np.abs(e).max()))
    # The deviation of few elements is unreliable, for example after dropout of one of them.
    margin = deviation + scale / a.size + 1e-9 * max(1.0, scale)
    distance = abs(float(a.mean()) - float(e.mean())) / margin
    if a.min() < e.min() - 2 * margin or a.max() > e.max() + 2 * margin:
        reason = f"the range is {a.min():.4g} to {a.max():.4g}, "
        reason += f"expected {e.min():.4g} to {e.max():.4g}"
        return Agreement(False, "statistics", distance, math.inf, reason)
    if distance > 2 * room:
        reason = f"the mean is {a.mean():.4g}, expected about {e.mean():.4g}"
        return Agreement(False, "statistics", distance, math.inf, reason)
    if a.size >= 64 and abs(float(a.std()) - deviation) > 2 * room * margin:
        reason = f"the deviation is {a.std():.4g}, expected about {deviation:.4g}"
        return Agreement(False, "statistics", distance, math.inf, reason)
    return Agreement(True, "statistics", distance, 0.0)


def _failed(reason: str) -> Agreement:
    return Agreement(False, "none", None, math.inf, reason)


def _is_exact(array: np.ndarray) -> bool:
    """Returns whether the array holds integers or booleans."""
    return array.dtype.kind in "biu"


def _float64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64).reshape(-1)


def _compare_exactly(actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> Agreement:
    if expected.dtype.kind == "b":
        # The device has no booleans: they are 0.0 and 1.0 there, and anything else is wrong.
        allowed = (actual == 0) | (actual == 1)
        if not allowed.all():
            count = int(allowed.size - np.count_nonzero(allowed))
            return _failed(f"{count} elements are neither 0 nor 1")
    # 64-bit integers would lose bits in float64.
    same_kind = _is_exact(actual)
    equal, error = 0, 0.0
    for a, e in _blocks(actual, expected):
        wide = a.astype(np.float64), e.astype(np.float64)
        same = _is_narrowed(a, e) | (a == e if same_kind else wide[0] == wide[1])
        equal += int(np.count_nonzero(same))
        with np.errstate(invalid="ignore"):
            errors = np.where(same, 0.0, np.abs(wide[0] - wide[1]))
        error = max(error, float(errors.max()) if np.isfinite(errors).all() else math.inf)
    part = equal / expected.size
    if part >= tolerance.agreement:
        return Agreement(True, "agreement", part, error)
    return Agreement(False, "agreement", part, error, f"only {part:.2%} of the elements are equal")


def _is_narrowed(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Returns the mask of 64-bit integers that are right as far as 32 bits can be.

    Either the lowest 32 bits are equal, or both are limits of their types, which mean 'no limit'
    (see `transforms.ttir.element_types`).
    """
    if expected.dtype.itemsize < 8 or expected.dtype.kind == "b":
        return np.zeros(expected.shape, bool)
    own = np.iinfo(expected.dtype)
    device = np.iinfo(np.int32 if own.min < 0 else np.uint32)
    found = (expected == own.max) & (actual == device.max)
    if _is_exact(actual):
        found |= expected.astype(np.uint32) == actual.astype(np.uint32)
    if own.min < 0:
        lowest = (expected == own.min) | (expected == -own.max)
        found |= lowest & (actual == device.min)
    return found


def _compare_floats(pair: Moments, tolerance: Tolerance) -> Agreement:
    """Compares finite elements."""
    magnitude, error = max(abs(pair.low), abs(pair.high)), pair.error
    if pair.relative_deviation <= tolerance.deviation:
        relative = error / magnitude if magnitude else (0.0 if error == 0 else math.inf)
        if error <= max(tolerance.relative_error * magnitude, NEGLIGIBLE):
            return Agreement(True, "relative error", relative, error)
        reason = (
            f"the relative error is {relative:.3g}, expected at most {tolerance.relative_error}"
        )
        return Agreement(False, "relative error", relative, error, reason)
    tolerance = tolerance.between(pair.low, pair.high)
    value, extent = pair.correlation, pair.high - pair.low
    # The correlation of equal arrays may be below 1 by rounding in float64.
    if value < tolerance.correlation and error > 0:
        reason = f"the correlation is {value:.6f}, expected at least {tolerance.correlation}"
        return Agreement(False, "correlation", value, error, reason)
    if error > max(tolerance.range_error * extent, tolerance.rounding * magnitude):
        part = tolerance.range_error
        reason = f"the largest error is {error:.3g}, more than {part:.1%} of the range {extent:.3g}"
        return Agreement(False, "correlation", value, error, reason)
    return Agreement(True, "correlation", value, error)


_BLOCK = 1 << 16
"""Elements per block, whose float64 copies fit into the cache."""


def _blocks(actual: np.ndarray, expected: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the elements of two arrays of one shape block by block.

    Copying large outputs to float64 at once takes longer than comparing them.
    """
    a, e = actual.reshape(-1), expected.reshape(-1)
    for start in range(0, e.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        yield _computable(a[part]), _computable(e[part])


def _computable(array: np.ndarray) -> np.ndarray:
    """Returns the array, as float32 if numpy does not support its dtype."""
    return array if array.dtype.kind in "fbiu" else array.astype(np.float32)


def _finite_blocks(
    actual: np.ndarray, expected: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields blocks in float64 of the elements that are finite in `expected`."""
    for a, e in _blocks(actual, expected):
        finite = np.isfinite(e)
        if not finite.all():
            a, e = a[finite], e[finite]
        if e.size:
            yield a.astype(np.float64), e.astype(np.float64)


@dataclass(frozen=True)
class Moments:
    """Moments of the finite elements of two arrays."""

    low: float
    """Smallest expected element."""
    high: float
    error: float
    """Largest absolute difference."""
    relative_deviation: float
    """Standard deviation of the expected elements relative to their root mean square; 0 for
    zeros."""
    correlation: float
    """Pearson correlation; 0 if one side is constant."""

    @staticmethod
    def of(actual: np.ndarray, expected: np.ndarray) -> Moments | None:
        """Returns the moments of two arrays of one shape, or None if `expected` has no finite
        elements."""
        count, low, high, largest, error = 0, math.inf, -math.inf, 0.0, 0.0
        for a, e in _finite_blocks(actual, expected):
            count += e.size
            low, high = min(low, float(e.min())), max(high, float(e.max()))
            largest = max(largest, float(np.abs(a).max()))
            with np.errstate(over="ignore"):
                error = max(error, float(np.abs(a - e).max()))
        if count == 0:
            return None
        scales = largest or 1.0, max(abs(low), abs(high)) or 1.0
        variances, covariance, squares = _variations(actual, expected, scales, count)
        norm = math.sqrt(variances[0]) * math.sqrt(variances[1])
        return Moments(
            low,
            high,
            error,
            math.sqrt(variances[1] / squares) if squares else 0.0,
            min(max(covariance / norm, -1.0), 1.0) if norm > 0 else 0.0,
        )


def _variations(
    actual: np.ndarray, expected: np.ndarray, scales: tuple[float, float], count: int
) -> tuple[tuple[float, float], float, float]:
    """Returns central sums of squares of both sides and of their product, and the squares of
    `expected`.

    Elements are scaled by the largest magnitude first: sums of squares of bf16's largest numbers
    exceed float64 otherwise. Rounding residues of constant arrays do not count as variation.
    """
    sums = np.zeros(2)
    for a, e in _finite_blocks(actual, expected):
        sums += float((a / scales[0]).sum()), float((e / scales[1]).sum())
    means = sums / count
    squares, magnitudes, total = 0.0, np.zeros(2), np.zeros(3)
    for a, e in _finite_blocks(actual, expected):
        a, e = a / scales[0], e / scales[1]
        # Without @: on blocks of this size, BLAS threads mostly wait for each other.
        squares += float((e * e).sum())
        a, e = a - means[0], e - means[1]
        magnitudes = np.maximum(magnitudes, (np.abs(a).max(), np.abs(e).max()))
        total += float((a * a).sum()), float((e * e).sum()), float((a * e).sum())
    varies = magnitudes > _NO_VARIATION
    variances = (float(total[0] * varies[0]), float(total[1] * varies[1]))
    return variances, float(total[2]), squares


_NO_VARIATION = 1e-14


@dataclass(frozen=True)
class OutputCheck:
    """Check of one output."""

    function: str
    name: str
    device: Agreement | None
    """C++ against flatbuffer; None if the C++ was not run."""
    golden: Agreement
    """Flatbuffer against golden."""
    reference: Agreement | None = None
    """C++ against framework outputs, if given."""
    bounds: Tolerance | None = None
    """Bounds of the C++ run; None if it was compared by distribution, or not run."""
    loses_upper_half: bool = False
    """True if it differs from the golden only by the lost high half of integers beyond 32 bits.

    A note reports such integers.
    """
    narrow_weights: float | None = None
    """Correlation with the golden of the run with its four-bit weights; None without such weights,
    or within the bounds of other runs. `golden` is of the run with bf16 weights then."""

    @property
    def passed(self) -> bool:
        """Returns whether all comparisons passed."""
        others = [each for each in (self.device, self.reference) if each is not None]
        return (self.golden.passed or self.loses_upper_half) and all(each.passed for each in others)

    @property
    def excused(self) -> int:
        """Number of elements excluded because rounding decides them."""
        compared = (self.device, self.golden, self.reference)
        return max(0 if each is None else each.excused for each in compared)

    @property
    def reasons(self) -> list[str]:
        """Returns the reasons for the failure of an output, for users."""
        compared = [
            ("C++ against flatbuffer", self.device),
            ("flatbuffer against golden", None if self.loses_upper_half else self.golden),
            ("C++ against reference", self.reference),
        ]
        return [
            f"{self.function}, output '{self.name}', {what}: {agreement.reason}"
            for what, agreement in compared
            if agreement is not None and not agreement.passed
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns the entry of check.json.

        `pcc` is always a number: if another measure was used, 1 for outputs within their bounds and
        else 0; `measure` names the measure. `golden_pcc` is null in that case.
        """
        entry: dict[str, Any] = {"function": self.function, "name": self.name}
        if self.device is not None:
            device = self.device
            value = device.correlation
            entry["pcc"] = float(device.passed) if value is None else value
            entry["max_abs_err"] = _json_number(device.max_abs_err)
            entry["measure"] = device.measure
            if self.bounds is not None:
                entry["bounds"] = {
                    "correlation": self.bounds.correlation,
                    "range_error": self.bounds.range_error,
                }
        entry["golden_pcc"] = self.golden.correlation
        entry["golden_max_abs_err"] = _json_number(self.golden.max_abs_err)
        entry["golden_measure"] = self.golden.measure
        if self.golden.measure in ("agreement", "relative error"):
            value = self.golden.value
            entry["golden_value"] = _json_number(value if value is not None else math.inf)
        if self.reference is not None:
            entry["reference_pcc"] = self.reference.correlation
            entry["reference_max_abs_err"] = _json_number(self.reference.max_abs_err)
            entry["reference_measure"] = self.reference.measure
        if self.excused:
            entry["excused"] = {"elements": self.excused, "at_most": MOST_UNDECIDED}
        if self.loses_upper_half:
            entry["loses_upper_half"] = True
        if self.narrow_weights is not None:
            entry["four_bit_weights_pcc"] = self.narrow_weights
        entry["passed"] = self.passed
        if self.reasons:
            entry["reasons"] = self.reasons
        return entry


def _json_number(value: float) -> float | None:
    """Returns the number, or None for infinities, which JSON lacks."""
    return value if math.isfinite(value) else None


def check_output(
    function: str,
    name: str,
    data_type: DataType,
    cpp: np.ndarray | None,
    flatbuffer: np.ndarray,
    golden: np.ndarray,
    depends_on_floats: bool,
    drawn: bool = False,
    tolerance: Tolerance | None = None,
) -> OutputCheck:
    """Checks one output.

    Args:
        function: name of the function.
        name: name of the output.
        data_type: data type of the output on the device.
        cpp: the output of the C++ run, None if there was none.
        flatbuffer: the output of the interpreter.
        golden: the output of the golden; its dtype distinguishes integers and booleans from floats.
        depends_on_floats: whether integers or booleans were computed from floats.
        drawn: whether the output depends on random numbers.
        tolerance: of the C++ run against the interpreter; by default that of the data type.
    """
    if drawn:
        measured = None if cpp is None else compare_drawn(cpp, flatbuffer)
        return OutputCheck(function, name, measured, compare_drawn(flatbuffer, golden))
    device, bounds = None, None
    if cpp is not None:
        bounds = tolerance or tolerance_of_type(data_type)
        # Booleans are exact although the device holds them as floats.
        expected = flatbuffer
        if golden.dtype.kind == "b" and not np.isnan(flatbuffer).any():
            expected, bounds = flatbuffer != 0, EQUAL
        device = compare(cpp, expected, bounds)
        bounds = _resolved(bounds, expected)
    exact = _is_exact(golden)
    against_golden = compare(
        flatbuffer, golden, golden_tolerance(data_type, exact, depends_on_floats)
    )
    return OutputCheck(function, name, device, against_golden, bounds=bounds)


def _resolved(bounds: Tolerance, expected: np.ndarray) -> Tolerance:
    """Returns the tolerance with the range error that applies to an expected output."""
    if bounds.saturation is None:
        return bounds
    finite = [block for _, block in _finite_blocks(expected, expected)]
    if not finite:
        return bounds
    low, high = min(float(b.min()) for b in finite), max(float(b.max()) for b in finite)
    return bounds.between(low, high)


def report(checks: Sequence[OutputCheck]) -> dict[str, Any]:
    """The contents of check.json."""
    return {
        "passed": all(check.passed for check in checks),
        "outputs": [check.to_json() for check in checks],
    }
