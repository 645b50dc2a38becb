"""Sources of a generator's decisions: hypothesis, which shrinks them, or a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies
from hypothesis.strategies import DrawFn

T = TypeVar("T")


class Choices(Protocol):
    """A source of decisions; the lowest integer is the simplest."""

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        ...


class DrawnChoices:
    """Decisions of hypothesis."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(strategies.integers(low, high))


class SeededChoices:
    """Decisions that follow from a seed, in every run and on every machine the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def pick(choices: Choices, options: Sequence[T]) -> T:
    """One of the options, the first being the simplest."""
    return options[choices.integer(0, len(options) - 1)]


def chance(choices: Choices, percent: int) -> bool:
    """True in so many of 100 cases; false is simpler."""
    return choices.integer(1, 100) > 100 - percent


def shuffled(choices: Choices, options: Sequence[T]) -> list[T]:
    """The options in any order, their own being the simplest."""
    rest = list(options)
    return [rest.pop(choices.integer(0, len(rest) - 1)) for _ in options]
