"""Programs of a flatbuffer as lists of calls for the library, and the device that they are for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ttcodegen.flatbuffer import program as file
from ttcodegen.judging.library import JUDGE
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ChipDescription

_COLUMN_ORDER = (1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10)
"""Worker columns of blackhole by bit of the driver's harvesting mask.

Source: HARVESTING_NOC_LOCATIONS of the driver's blackhole_implementation.hpp.
"""


def harvesting(chip: ChipDescription) -> dict[str, Any]:
    """Driver's harvesting masks of a chip: worker columns in the driver's order, and DRAM banks."""
    columns = _COLUMN_ORDER if chip.arch == "blackhole" else ()
    workers = sum(1 << bit for bit, x in enumerate(columns) if x in chip.harvested_columns)
    banks = default_system(chip.arch).chip.num_dram_channels
    # On a p100 the fourth bank is harvested.
    dram = sum(1 << (bit + 3) for bit in range(banks - chip.num_dram_channels))
    return {"arch": chip.arch, "workers": workers, "dram": dram}


def mocked_command(python: str, chip: ChipDescription, memory: int) -> list[str]:
    """Command of the judge on a mocked device.

    Args:
        python: the Python with the library.
        chip: the chip of the device.
        memory: memory limit of the process in bytes.
    """
    card = json.dumps(harvesting(chip))
    return [python, str(JUDGE), "--memory", str(memory), "--mocked", card]


def program_groups(binary: file.Binary) -> list[list[file.Program]]:
    """Groups of programs that run together: entries with the const-eval programs that they call."""
    waiting = {each.name: each for each in binary.programs if each.kind == "const_eval"}
    runs: list[list[file.Program]] = []
    for entry in binary.programs:
        if entry.kind == "entry":
            called = (operation.callee for operation in entry.operations)
            taken = (waiting.pop(name, None) for name in dict.fromkeys(called) if name is not None)
            runs.append([*(each for each in taken if each is not None), entry])
    alone = [each for each in binary.programs if each.kind == "private_"]
    return [*([each] for each in (*waiting.values(), *alone)), *runs]


def all_of(joined: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Steps of consecutive programs as one list."""
    return [call for calls in joined for call in calls]
