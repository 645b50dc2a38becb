"""Which outputs depend on rounding: found by runs of the program with perturbed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ttcodegen.numerics.comparison import compare
from ttcodegen.numerics.lowered import LoweredBinary, interpreter_of
from ttcodegen.numerics.tolerances import Tolerance

PERTURBED_RUNS = 8
"""How often a program is run."""


def perturbed_runs(
    binary: LoweredBinary, program: str, inputs: Sequence[np.ndarray]
) -> Iterator[list[np.ndarray]]:
    """The outputs of perturbed runs, each run on demand."""
    for seed in range(PERTURBED_RUNS):
        interpreter = interpreter_of(binary, perturbation=np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            yield interpreter.run(program, inputs)


def undecided_places(
    expected: Sequence[np.ndarray],
    found: Mapping[int, np.ndarray | None],
    runs: Iterable[Sequence[np.ndarray]],
) -> dict[int, np.ndarray]:
    """Where integers and booleans of a run depend on rounding, by output.

    Args:
        expected: the outputs of the run.
        found: what another run gave for the outputs in question.
        runs: perturbed runs; they are looked at until all places are known where `found` differs,
            or come to their end. If it differs nowhere, none is run.
    """
    undecided = {i: np.zeros(expected[i].shape, dtype=bool) for i in found}
    differing = {
        i: actual != expected[i]
        for i, actual in found.items()
        if actual is not None and actual.shape == expected[i].shape
    }
    remaining = iter(runs)
    while any((places & ~undecided[i]).any() for i, places in differing.items()):
        results = next(remaining, None)
        if results is None:
            break
        for i, places in undecided.items():
            places |= results[i] != expected[i]
    return undecided


def coarse_outputs(
    expected: Sequence[np.ndarray],
    outputs: Mapping[int, Tolerance],
    runs: Iterable[Sequence[np.ndarray]],
) -> set[int]:
    """Those of the outputs that other roundings move further than their tolerances allow: decisions
    that hang on rounding (an argmax, a comparison) took part in computing them."""
    found: set[int] = set()
    for results in runs:
        found |= {
            i
            for i, tolerance in outputs.items()
            if not compare(results[i], expected[i], tolerance).passed
        }
        if len(found) == len(outputs):
            break
    return found


def unsteady_places(
    binary: LoweredBinary,
    program: str,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    outputs: Iterable[int],
) -> dict[int, np.ndarray]:
    """Where outputs of floats are finite, infinite or no number by rounding, by output: a logarithm
    of what is nearly zero is one or the other. Outputs of zeros and ones alone are truth values,
    which rounding decides as well, and integers are compared as they are.

    They are found by a run of the program without rounding, beside `expected`, the outputs of the
    run with it.
    """
    with np.errstate(all="ignore"):
        unrounded = interpreter_of(binary, rounds=False).run(program, inputs)
    return {
        i: unrounded[i] != expected[i]
        if expected[i].dtype.kind in "iu" or holds_truth(expected[i])
        else _kinds_of_number(unrounded[i]) != _kinds_of_number(expected[i])
        for i in outputs
    }


def holds_truth(array: np.ndarray) -> bool:
    """True if all elements are 0 or 1."""
    return bool(((array == 0) | (array == 1)).all())


def _kinds_of_number(array: np.ndarray) -> np.ndarray:
    """0 for finite numbers, 1 and -1 for infinite ones, 2 for NaN."""
    signs = np.where(np.isposinf(array), 1, np.where(np.isneginf(array), -1, 0))
    return np.where(np.isnan(array), 2, signs)
