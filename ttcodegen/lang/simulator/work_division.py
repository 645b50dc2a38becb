"""Division of work among cores, as TT-NN does it."""

from __future__ import annotations

from collections.abc import Sequence

from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.shapes import is_integer
from ttcodegen.lang.simulator.tensors import CoreCoord, CoreRange, CoreRangeSet

_Core = tuple[int, int]

WorkDivision = tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]
"""The number of cores, the cores, those with more units and those with fewer, and the units of
each."""


def num_cores_to_corerangeset(
    target_num_cores: int, grid_size: CoreCoord, row_wise: bool = False
) -> CoreRangeSet:
    """The first cores of a grid, column by column, or row by row.

    Raises:
        ProgramError: if the grid has fewer.
    """
    cores = _cores_of(grid_size, row_wise)
    if not is_integer(target_num_cores) or not 0 < int(target_num_cores) <= len(cores):
        raise error(
            f"ttnn.num_cores_to_corerangeset takes 1 to {len(cores)} cores of a grid of "
            f"{grid_size.x}x{grid_size.y}, not {target_num_cores!r}"
        )
    return _ranges(cores[: int(target_num_cores)], row_wise)


def split_work_to_cores(
    core_grid: CoreCoord | CoreRangeSet, units_to_divide: int, row_wise: bool = False
) -> WorkDivision:
    """The division of units of work among cores, as evenly as possible.

    Args:
        core_grid: the size of a grid from the first core on, or cores.
        units_to_divide: how many units there are.
        row_wise: whether cores are counted row by row.
    """
    if not is_integer(units_to_divide) or int(units_to_divide) < 0:
        raise error(f"ttnn.split_work_to_cores divides 0 units or more, not {units_to_divide!r}")
    units, available = int(units_to_divide), _cores_of(core_grid, row_wise)
    cores = available[: min(units, len(available))]
    nothing = CoreRangeSet([])
    if not cores:
        return 0, nothing, nothing, nothing, 0, 0
    fewer, left = divmod(units, len(cores))
    everywhere = _ranges(cores, row_wise)
    if not left:
        return len(cores), everywhere, everywhere, nothing, fewer, 0
    first, second = _ranges(cores[:left], row_wise), _ranges(cores[left:], row_wise)
    return len(cores), everywhere, first, second, fewer + 1, fewer


def _cores_of(grid: CoreCoord | CoreRangeSet, row_wise: bool) -> list[_Core]:
    """Columns and rows of cores, in the order in which work is given to them."""
    if isinstance(grid, CoreCoord):
        last = CoreCoord(grid.x - 1, grid.y - 1)
        grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), last)])
    if not isinstance(grid, CoreRangeSet):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error(
            f"cores are a ttnn.CoreCoord or a ttnn.CoreRangeSet, not a {type(grid).__name__}"
        )
    rectangles = (each.rectangle() for each in grid.ranges())
    return [core for each in rectangles for core in each.coordinates(by_column=not row_wise)]


def _ranges(cores: Sequence[_Core], row_wise: bool) -> CoreRangeSet:
    """Rectangles of cores that follow each other: lines first, then equal lines side by side."""
    along, across = (0, 1) if row_wise else (1, 0)
    lines: list[list[int]] = []
    for core in cores:
        if lines and lines[-1][0] == core[across] and lines[-1][2] + 1 == core[along]:
            lines[-1][2] = core[along]
        else:
            lines.append([core[across], core[along], core[along]])
    areas: list[list[int]] = []
    for line, first, last in lines:
        if areas and areas[-1][1] + 1 == line and areas[-1][2:] == [first, last]:
            areas[-1][1] = line
        else:
            areas.append([line, line, first, last])
    found: list[CoreRange] = []
    for low, high, first, last in areas:
        ends = ((first, low), (last, high)) if row_wise else ((low, first), (high, last))
        found.append(CoreRange(CoreCoord(*ends[0]), CoreCoord(*ends[1])))
    return CoreRangeSet(found)
