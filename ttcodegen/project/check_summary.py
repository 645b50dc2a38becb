"""Lines that sum up a check for users."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ttcodegen.numerics.comparison import MOST_UNDECIDED, Agreement, OutputCheck
from ttcodegen.numerics.tolerances import Tolerance
from ttcodegen.project.writer import CHECK_REPORT

_MAX_LINES = 12
"""Limit on the outputs whose figures are shown."""


def output_lines(checks: Sequence[OutputCheck]) -> list[str]:
    """Summary lines of the first outputs: error of the C++ against the flatbuffer run, and its
    bound."""
    measured = [
        (check, check.device, check.bounds)
        for check in checks
        if check.device is not None and check.bounds is not None
    ]
    lines = [
        f"  {check.function}, {check.name}: {_figures(device, bounds)}"
        for check, device, bounds in measured[:_MAX_LINES]
    ]
    rest = len(measured) - len(lines)
    return [*lines, f"  {_counted(rest, 'more output')}"] if rest else lines


def _figures(agreement: Agreement, bounds: Tolerance) -> str:
    if agreement.measure == "correlation":
        return (
            f"correlation {agreement.value:.6f} (at least {bounds.correlation:g}), largest error "
            f"{agreement.max_abs_err:.3g} (at most {bounds.range_error:.1%} of the range)"
        )
    if agreement.measure == "relative error":
        return f"relative error {agreement.value:.3g} (at most {bounds.relative_error:g})"
    if agreement.measure == "agreement":
        return f"{agreement.value:.1%} of the elements equal (at least {bounds.agreement:.0%})"
    return "nothing to compare" if agreement.passed else "not comparable"


def check_summary(checks: Sequence[OutputCheck], out: Path) -> str:
    """One-line summary of a check with the path of the report."""
    functions = len({check.function for check in checks})
    excuses = _excuses(checks) + _narrow_weights(checks)
    checks = [check for check in checks if not check.loses_upper_half or not check.passed]
    failed = sum(not check.passed for check in checks)
    of = f" of {_counted(functions, 'function')}" if functions > 1 else ""
    result = f"{failed} of {_counted(len(checks), 'output')}{of} differ" + ("s" * (failed == 1))
    if not failed:
        result = f"{_counted(len(checks), 'output')}{of} agree" + ("s" * (len(checks) == 1))
    bounds = max(
        (check.bounds for check in checks if check.bounds is not None),
        key=lambda bounds: bounds.range_error,
        default=None,
    )
    within = ""
    if bounds is not None and bounds.range_error > 0:
        within = f" (C++ to {bounds.correlation:g} and {bounds.range_error:.1%} of the range)"
    with_reference = any(check.reference is not None for check in checks)
    parties = "C++, flatbuffer, source and reference"
    parties = parties if with_reference else "C++, flatbuffer and source"
    return f"checked: {result} between {parties}{within}; {excuses}figures in {out / CHECK_REPORT}"


def _excuses(checks: Sequence[OutputCheck]) -> str:
    """Counts of accepted differences, if any."""
    narrowed = sum(check.loses_upper_half for check in checks)
    lost = "integers beyond 32 bits lose their upper half, and "
    lost = f"{lost}{_counted(narrowed, 'output')} differ{'s' * (narrowed == 1)} there; "
    return (lost if narrowed else "") + _undecided(checks)


def _narrow_weights(checks: Sequence[OutputCheck]) -> str:
    """Lowest correlation with the source that four-bit weights leave, if they move an output."""
    moved = [check.narrow_weights for check in checks if check.narrow_weights is not None]
    if not moved:
        return ""
    return (
        f"4-bit weights move {_counted(len(moved), 'output')} (correlation with the source "
        f"{min(moved):.4f}, compared with it as bf16); "
    )


def _undecided(checks: Sequence[OutputCheck]) -> str:
    """Count of excluded elements, if any, and the maximum share per output."""
    excused = [check for check in checks if check.excused]
    if not excused:
        return ""
    elements = _counted(sum(check.excused for check in excused), "element")
    return (
        f"{elements} of {_counted(len(excused), 'output')} left out, for rounding decides them (of "
        f"an output at most {MOST_UNDECIDED:.0%}); "
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
