"""Comparison of the three runs of a function: C++, flatbuffer and golden."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ttcodegen.numerics.comparison import (
    MOST_ROUNDED,
    MOST_UNDECIDED,
    Agreement,
    OutputCheck,
    check_output,
    compare,
    compare_decided,
    golden_tolerance,
)
from ttcodegen.numerics.lowered import (
    coarse_outputs,
    holds_truth,
    perturbed_runs,
    read_flatbuffer,
    undecided_places,
    unsteady_places,
)
from ttcodegen.numerics.tolerances import EQUAL, SIXTEEN_BITS
from ttcodegen.project.reference import FunctionRuns


def check_function(
    run: FunctionRuns,
    outputs: Mapping[str, np.ndarray],
    failure: str | None,
    flatbuffer: bytes,
) -> list[OutputCheck]:
    """Compares the outputs of a function.

    Where the C++ differs, the flatbuffer run is repeated with other roundings: what they move as
    well is no error.

    Args:
        run: what the numpy runs gave.
        outputs: those of the C++, by field.
        failure: why the C++ failed, if it did.
        flatbuffer: the lowered program.

    Returns:
        An entry for each output.
    """
    checks = _compare_outputs(run, outputs, failure)
    imprecise = {
        index: run.tolerances[index]
        for index, check in enumerate(checks)
        if check.device is not None
        and not check.device.passed
        and check.device.measure in ("correlation", "relative error")
        and run.tolerances[index].allows_less_than(SIXTEEN_BITS)
    }
    if imprecise:
        perturbed = perturbed_runs(read_flatbuffer(flatbuffer), run.function.name, run.inputs)
        coarse = coarse_outputs(run.flatbuffer, imprecise, perturbed)
        checks = _compare_outputs(run, outputs, failure, coarse)
    written = [outputs.get(output.field) for output in run.function.outputs]
    doubtful = [
        index
        for index, check in enumerate(checks)
        if run.depends_on_floats[index]
        and check.device is not None
        and check.device.measure == "agreement"
        and not check.device.passed
    ]
    if doubtful:
        name = run.function.name
        found = run.chosen.settled(name, run.flatbuffer, {i: written[i] for i in doubtful})
        checks = _decided_checks(run, checks, found, flatbuffer)
    return _steady_checks(run, _golden_decisions(run, checks, flatbuffer), flatbuffer)


def _decided_checks(
    run: FunctionRuns,
    checks: Sequence[OutputCheck],
    found: Mapping[int, np.ndarray | None],
    flatbuffer: bytes,
) -> list[OutputCheck]:
    """The checks of the C++, with what it `found` for some outputs: of integers as they are, of
    booleans without those that hang on rounding."""
    checked = list(checks)
    truths = {i: array for i, array in found.items() if run.golden[i].dtype.kind == "b"}
    places: Mapping[int, np.ndarray] = {}
    if truths:
        perturbed = perturbed_runs(read_flatbuffer(flatbuffer), run.function.name, run.inputs)
        places = undecided_places(run.flatbuffer, truths, perturbed)
    for index, actual in found.items():
        expected = run.flatbuffer[index]
        if actual is None:
            continue
        if index in truths:
            agreement = compare_decided(actual, expected != 0, EQUAL, places[index])
        else:
            agreement = compare(actual, expected, EQUAL)
        checked[index] = replace(checked[index], device=agreement)
    return checked


def _golden_decisions(
    run: FunctionRuns, checks: Sequence[OutputCheck], flatbuffer: bytes
) -> list[OutputCheck]:
    """The checks of integers and booleans that floats decided, and that the flatbuffer run has
    otherwise than the golden run: rounding must have moved them."""
    differing = [
        index
        for index, check in enumerate(checks)
        if run.depends_on_floats[index]
        and check.golden.passed
        and check.golden.measure == "agreement"
        and check.golden.value != 1.0
    ]
    found = list(checks)
    if not differing:
        return found
    binary, name = read_flatbuffer(flatbuffer), run.function.name
    golden = run.chosen.settled(name, run.flatbuffer, {i: run.golden[i] for i in differing})
    places = unsteady_places(binary, name, run.inputs, run.flatbuffer, differing)
    for index in differing:
        expected = golden[index]
        assert expected is not None
        most = MOST_UNDECIDED if expected.dtype.kind == "b" else MOST_ROUNDED
        agreement = compare_decided(run.flatbuffer[index], expected, EQUAL, places[index], most)
        found[index] = replace(found[index], golden=agreement)
    return found


def _steady_checks(
    run: FunctionRuns, checks: Sequence[OutputCheck], flatbuffer: bytes
) -> list[OutputCheck]:
    """The checks, those of floats that the golden fails without the elements that rounding makes
    finite or not, or true or false."""
    found = list(checks)
    failed = [
        index
        for index, check in enumerate(checks)
        if not check.golden.passed
        and run.golden[index].dtype.kind not in "biu"
        and (not np.isfinite(run.golden[index]).all() or holds_truth(run.golden[index]))
    ]
    if failed:
        binary, name = read_flatbuffer(flatbuffer), run.function.name
        unsteady = unsteady_places(binary, name, run.inputs, run.flatbuffer, failed)
        for index, places in unsteady.items():
            tolerance = golden_tolerance(run.function.outputs[index].data_type, False, False)
            lowered, golden = run.flatbuffer[index], run.golden[index]
            agreement = compare_decided(lowered, golden, tolerance, places)
            found[index] = replace(found[index], golden=agreement)
    return found


def _compare_outputs(
    run: FunctionRuns,
    outputs: Mapping[str, np.ndarray],
    failure: str | None,
    coarse: Container[int] = (),
) -> list[OutputCheck]:
    """Compares the outputs; rounding moves those that are `coarse` as far as bf16 may differ."""
    checks: list[OutputCheck] = []
    for index, output in enumerate(run.function.outputs):
        check = check_output(
            run.function.name,
            output.name,
            output.data_type,
            outputs.get(output.field),
            run.flatbuffer[index],
            run.golden[index],
            run.depends_on_floats[index],
            run.drawn[index],
            SIXTEEN_BITS if index in coarse else run.tolerances[index],
        )
        if check.device is None:
            reason = failure or "the program did not write it"
            failed = Agreement(False, "none", None, math.inf, reason)
            check = OutputCheck(run.function.name, output.name, failed, check.golden)
        checks.append(check)
    return checks
