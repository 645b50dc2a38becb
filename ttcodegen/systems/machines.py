"""The machines that are sold, by name: chips, their arrangement, and the links between neighbours.

Shapes and links are those of the mesh graph descriptors of tt-metal
(tt_metal/fabric/mesh_graph_descriptors).
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.systems import cards
from ttcodegen.systems.description import ChipDescription, SystemDescription


@dataclass(frozen=True)
class Machine:
    """Equal chips in rows and columns."""

    name: str
    chip: ChipDescription
    rows: int
    columns: int
    links: int
    """Ethernet links between two neighbours; 0 for a single chip."""

    @property
    def arch(self) -> str:
        """The name of their architecture."""
        return self.chip.arch

    @property
    def chips(self) -> int:
        """Number of devices."""
        return self.rows * self.columns

    def system(self) -> SystemDescription:
        """Its description."""
        return cards.system_of_chips(self.chip, self.rows, self.columns)


MACHINES = (
    Machine("n150", cards.N150, 1, 1, 0),
    Machine("n300", cards.N150, 1, 2, 2),
    Machine("t3000", cards.N150, 2, 4, 2),
    Machine("galaxy", cards.N150, 8, 4, 4),
    Machine("p150", cards.P150, 1, 1, 0),
    Machine("p100", cards.P100, 1, 1, 0),
    Machine("p150_140", cards.P150_140, 1, 1, 0),
    Machine("p300", cards.P150, 1, 2, 2),
    Machine("p150_x4", cards.P150, 2, 2, 4),
    Machine("p150_x8", cards.P150, 2, 4, 2),
    Machine("bh_galaxy", cards.BH_GALAXY, 8, 4, 2),
)
"""By architecture, the smallest first."""

MOST_CHIPS = 128
"""Chips of the largest mesh that the mesh graph descriptors of tt-metal have: four Galaxies
as 32x4, 16x8 or 8x16. The CPU backend has as many
(`kMostChips` of standalone/src/core/device.hpp)."""

_ALIASES = {"t3k": "t3000", "tg": "galaxy"}

NAMES = tuple(machine.name for machine in MACHINES)


def machine(name: str) -> Machine | None:
    """The machine of that name, None if there is none."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    return next((each for each in MACHINES if each.name == wanted), None)


def links_between(arch: str, chips: int) -> int:
    """Number of links between neighbours of a mesh.

    They are those of the smallest machine of that architecture with as many devices, or of the
    largest one if none has.
    """
    several = [each for each in MACHINES if each.arch == arch and each.chips > 1]
    fitting = [each for each in several if each.chips >= chips]
    return (fitting or several[-1:])[0].links
