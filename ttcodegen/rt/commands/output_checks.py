"""How the outputs of a run are judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.numerics.comparison import Agreement, Tolerance, compare
from ttcodegen.numerics.op_events import golden_agreement
from ttcodegen.runtime.executable import TensorInfo


@dataclass(frozen=True)
class Check:
    """A check of an output: with what it was compared, and how that went."""

    name: str
    """golden, flatbuffer, identity or non-zero."""
    agreement: Agreement

    def to_json(self) -> dict[str, Any]:
        """The entry of a result file."""
        agreement = self.agreement
        return {
            "check": self.name,
            "passed": agreement.passed,
            "measure": agreement.measure,
            "value": _number(agreement.value),
            "max_abs_err": _number(agreement.max_abs_err),
            "reason": agreement.reason or None,
        }


def _number(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None


def device_data_type(tensor: TensorInfo) -> DataType:
    """The data type of a tensor."""
    return DataType[tensor.data_type.upper()]


def check_golden(
    arguments: Mapping[str, Any], tensor: TensorInfo, actual: np.ndarray, golden: np.ndarray
) -> Check:
    """Compares an output with its golden value: as the check of the compiler does, or as --pcc,
    --rtol and --atol say."""
    if tensor.source_dtype == "bool" and golden.dtype.kind != "b":
        golden = golden != 0
    if has_element_bounds(arguments):
        return Check("golden", within(arguments, actual, golden))
    return Check("golden", golden_agreement(actual, golden, arguments["pcc"]))


def has_element_bounds(arguments: Mapping[str, Any]) -> bool:
    """True if errors of elements were bounded on the command line."""
    return arguments["rtol"] is not None or arguments["atol"] is not None


def within(
    arguments: Mapping[str, Any], actual: np.ndarray, expected: np.ndarray, default: float = 0.0
) -> Agreement:
    """Compares element by element: |actual - expected| <= atol + rtol * |expected|."""
    if actual.shape != expected.shape:
        reason = f"the shape is {actual.shape} instead of {expected.shape}"
        return Agreement(False, "none", None, math.inf, reason)
    rtol = default if arguments["rtol"] is None else arguments["rtol"]
    atol = default if arguments["atol"] is None else arguments["atol"]
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        errors = np.abs(a - e)
        close = (errors <= atol + rtol * np.abs(e)) | (a == e) | (np.isnan(a) & np.isnan(e))
    largest = float(np.nanmax(errors, initial=0.0))
    part = float(close.mean()) if close.size else 1.0
    reason = "" if close.all() else f"{int((~close).sum())} elements are further away than allowed"
    return Agreement(bool(close.all()), "agreement", part, largest, reason)


def check_identity(arguments: Mapping[str, Any], actual: np.ndarray, given: np.ndarray) -> Check:
    """Compares an output with the input of its index."""
    return Check("identity", within(arguments, actual, given, default=1e-5))


def check_non_zero(actual: np.ndarray) -> Check:
    """Checks that an output is not zero throughout."""
    passed = actual.size == 0 or bool(np.any(actual != 0))
    reason = "" if passed else "all elements are zero"
    return Check("non-zero", Agreement(passed, "none", None, 0.0, reason))


def check_against_flatbuffer(
    arguments: Mapping[str, Any],
    actual: np.ndarray,
    expected: np.ndarray,
    tolerance: Tolerance,
) -> Check:
    """Compares an output of a shared object with that of the flatbuffer."""
    if has_element_bounds(arguments):
        return Check("flatbuffer", within(arguments, actual, expected))
    return Check("flatbuffer", compare(actual, expected, tolerance))
