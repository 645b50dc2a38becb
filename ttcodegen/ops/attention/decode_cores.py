"""The cores of the attention of one token of each user, as far as the library can name them.

The rules are those of sdpa_decode_program_factory.cpp, and of kernel.cpp for the arguments of a
kernel, of tt-metal 0.70.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttcodegen.dialects.ttnn.program_configs import SDPA, CoreGrid

CONFIGURED_CORES = 16
"""The cores of a head of keys where a program configuration does not say how many."""
LARGEST_CHUNK = 512
"""Keys of a chunk where nothing else is said."""
MOST_ROUNDS = 6
"""Upper bound on the rounds of the tree reduction over the cores of a KV head."""
MOST_ARGUMENTS = 341
"""Words that a kernel is given on each core."""
_WRITER = 16 + MOST_ROUNDS
"""Arguments of the kernel that writes, besides the coordinates of cores."""


def default_chunk(keys: int) -> int:
    """The keys that are taken at a time by default: the largest power of two that divides them."""
    return min(LARGEST_CHUNK, keys & -keys)


@dataclass(frozen=True)
class DecodeCores:
    """Assignment of users and their KV heads to cores, at most `most` cores per head."""

    users: int
    key_heads: int
    cores: int
    most: int

    @property
    def _of_user(self) -> int:
        return max(1, min(self.cores, self.most * self.users * self.key_heads) // self.users)

    @property
    def heads_per_core(self) -> int:
        each = max(1, -(-self.key_heads // self._of_user))
        while self.key_heads % each:
            each += 1
        return each

    @property
    def per_head(self) -> int:
        """The cores of each head of keys."""
        return max(1, self._of_user // self.key_heads)

    @property
    def misfit(self) -> str | None:
        """Returns why the library rejects this assignment of cores, or None."""
        if self.cores < self.users:
            return f"{self.users} users need a core each, there are {self.cores}"
        if self.per_head > 1 << MOST_ROUNDS:
            return f"a head has {1 << MOST_ROUNDS} cores at most, here {self.per_head}"
        reducing = self.users * self.key_heads // self.heads_per_core
        arguments = _WRITER + 2 * (self.per_head + reducing + self.users)
        if arguments > MOST_ARGUMENTS:
            return f"a kernel is given {MOST_ARGUMENTS} words at most, here {arguments}"
        return None


def fitting_grid(users: int, key_heads: int, grid: CoreGrid) -> CoreGrid | None:
    """The most rows of a grid on which the library can deal them out, with a configuration; None if
    there are none."""
    for rows in range(grid.rows, 0, -1):
        found = CoreGrid(grid.columns, rows)
        if DecodeCores(users, key_heads, found.cores, CONFIGURED_CORES).misfit is None:
            return found
    return None


def needed_program(users: int, key_heads: int, chunk: int, grid: CoreGrid) -> SDPA | None:
    """The configuration without which the library refuses a call on all cores of a device: it has
    fewer of them, and takes `chunk` keys at a time. None if the library's own is right."""
    if DecodeCores(users, key_heads, grid.cores, grid.cores).misfit is None:
        return None
    found = fitting_grid(users, key_heads, grid)
    return None if found is None else SDPA(found, 0, chunk)
