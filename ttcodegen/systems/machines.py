"""The machines that are sold, by name: chips, their arrangement, and the links between neighbours.

Shapes and links are those of the mesh graph descriptors of tt-metal 0.70.1
(tt_metal/fabric/mesh_graph_descriptors).
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.systems.description import SystemDescription, default_system, mesh_system


@dataclass(frozen=True)
class Machine:
    """Chips of one architecture in rows and columns."""

    name: str
    arch: str
    rows: int
    columns: int
    links: int
    """Ethernet links between two neighbours; 0 for a single chip."""

    @property
    def chips(self) -> int:
        """How many chips it has."""
        return self.rows * self.columns

    def system(self) -> SystemDescription:
        """Its description."""
        if self.chips == 1:
            return default_system(self.arch)
        return mesh_system(self.arch, self.rows, self.columns)


MACHINES = (
    Machine("n150", "wormhole_b0", 1, 1, 0),
    Machine("n300", "wormhole_b0", 1, 2, 2),
    Machine("t3000", "wormhole_b0", 2, 4, 2),
    Machine("galaxy", "wormhole_b0", 8, 4, 4),
    Machine("p150", "blackhole", 1, 1, 0),
    Machine("p300", "blackhole", 1, 2, 2),
    Machine("p150_x4", "blackhole", 2, 2, 4),
    Machine("p150_x8", "blackhole", 2, 4, 2),
    Machine("bh_galaxy", "blackhole", 8, 4, 2),
)
"""By architecture, the smallest first."""

MOST_CHIPS = 128
"""Chips of the largest mesh that the mesh graph descriptors of tt-metal 0.70.1 have: four Galaxies
as 32x4, 16x8 or 8x16."""

_ALIASES = {"t3k": "t3000", "tg": "galaxy"}

NAMES = tuple(machine.name for machine in MACHINES)


def machine(name: str) -> Machine | None:
    """The machine of that name, None if there is none."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    return next((each for each in MACHINES if each.name == wanted), None)


def links_between(arch: str, chips: int) -> int:
    """How many links join two neighbours of a mesh: those of the smallest machine of that
    architecture that has as many chips; of the largest one if none has."""
    several = [each for each in MACHINES if each.arch == arch and each.chips > 1]
    fitting = [each for each in several if each.chips >= chips]
    return (fitting or several[-1:])[0].links
