"""Functions that saturate: which calls end in one, and what errors before it make of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ttcodegen.dialects.ttnn.program_configs import ProgramConfig

_UNRESOLVED = 2.0**-9
"""The part of a function's range, at either end of it, in which bfloat16 says nothing of the
operand any more."""
_USUAL_OPERANDS = 3.0
"""Sums of normal numbers come before what saturates at one: three deviations either way."""


@dataclass(frozen=True)
class Saturation:
    """A function that brings any range into a small one, but errors near zero through as they are.

    Errors of engines are a part of the range of what they compute. From the result of this function
    the range of the operand follows, and so what an error of the operand makes at most.
    """

    name: str
    low: float
    """The limits."""
    high: float
    slope: float
    """Where it is steepest."""
    function: Callable[[float], float]
    inverse: Callable[[float], float]

    def reach(self, low: float, high: float) -> float:
        """What an error as large as the range of the operand makes at most, if results are between
        `low` and `high`; no less than those are apart."""
        margin = _UNRESOLVED * (self.high - self.low)
        ends = [min(max(end, self.low + margin), self.high - margin) for end in (low, high)]
        return max(self.slope * (self.inverse(ends[1]) - self.inverse(ends[0])), high - low)

    @property
    def usual_part(self) -> float:
        """That as a part of the range of results, of operands as they usually are."""
        ends = self.function(-_USUAL_OPERANDS), self.function(_USUAL_OPERANDS)
        return self.reach(*ends) / (ends[1] - ends[0])


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _logit(value: float) -> float:
    return math.log(value / (1 - value))


def _inverse_erf(value: float) -> float:
    # Its import takes milliseconds, and few programs need it.
    from statistics import NormalDist

    return NormalDist().inv_cdf((value + 1) / 2) / math.sqrt(2)


def _limited(value: float) -> float:
    return min(max(value, -1.0), 1.0)


_SATURATIONS = {
    each.name: each
    for each in (
        Saturation("tanh", -1, 1, 1.0, math.tanh, math.atanh),
        Saturation("sigmoid", 0, 1, 0.25, _sigmoid, _logit),
        Saturation("erf", -1, 1, 2 / math.sqrt(math.pi), math.erf, _inverse_erf),
        Saturation("softsign", -1, 1, 1.0, lambda x: x / (1 + abs(x)), lambda y: y / (1 - abs(y))),
        Saturation(
            "hardsigmoid", 0, 1, 1 / 6, lambda x: (_limited(x / 3) + 1) / 2, lambda y: 6 * y - 3
        ),
        Saturation("hardtanh", -1, 1, 1.0, _limited, lambda y: y),
    )
}


def saturation_of(name: str, parameters: Mapping[str, object]) -> Saturation | None:
    """The saturating function that a call ends in, by its name without the dialect and its
    parameters: its own, or the activation that it applies; None if it ends in no such one."""
    configs = [given for given in parameters.values() if isinstance(given, ProgramConfig)]
    fused = [config.activation.op_type for config in configs if config.activation is not None]
    for each in (*fused, parameters.get("activation"), name):
        if isinstance(each, str) and each in _SATURATIONS:
            return _SATURATIONS[each]
    return None
