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
    """The outputs of perturbed runs, each run when it is asked for."""
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
            or come to their end. If it differs nowhere, none is asked for.
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
