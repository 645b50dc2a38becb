"""What the functions of a project run on, and what their runs in numpy gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ttcodegen.numerics.chosen_indices import ChosenValues
from ttcodegen.numerics.tolerances import Tolerance

if TYPE_CHECKING:
    from ttcodegen.emission.description import FunctionDescription


@dataclass(frozen=True)
class FunctionInputs:
    """What a function runs on, in numpy and in C++."""

    function: FunctionDescription
    inputs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class FunctionRuns(FunctionInputs):
    """What the two numpy runs of a function gave."""

    golden: tuple[np.ndarray, ...]
    flatbuffer: tuple[np.ndarray, ...]
    depends_on_floats: tuple[bool, ...]
    drawn: tuple[bool, ...]
    tolerances: tuple[Tolerance, ...]
    """What the C++ may differ from the flatbuffer run."""
    chosen: ChosenValues
    """The values among which the flatbuffer run chose places."""
