"""The L1 of a core as the allocator hands it out.

It takes the highest gap that is large enough (free_list_opt.cpp); circular buffers grow from below
up to the lowest tensor (measured, tt-metal 0.70.1).
"""

from __future__ import annotations

from bisect import insort

Block = tuple[int, int]
"""Where memory begins, and where it ends."""


class Bank:
    """The L1 of one core, that of all others as well: they share their addresses."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._taken: list[Block] = []
        """What is allocated, in the order of addresses."""

    @property
    def lowest(self) -> int:
        """The lowest address that is taken."""
        return self._taken[0][0] if self._taken else self.size

    def allocate(self, size: int) -> Block:
        """The highest gap for so many bytes; below zero if there is none."""
        end = self.size
        for start, taken_end in reversed(self._taken):
            if end - taken_end >= size:
                break
            end = start
        found = (end - size, end)
        insort(self._taken, found)
        return found

    def free(self, block: Block) -> None:
        """Gives a block back."""
        self._taken.remove(block)
