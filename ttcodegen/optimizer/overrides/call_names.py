"""Call names in the table of decisions and in overrides."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.naming.sources import location_name, name_in_text
from ttcodegen.transforms.rewriting import body_of


class CallNames:
    """The calls of a function by the names of what they make.

    It is the name of the value in the source, or of its location if no later call has that, or of
    the op; one that occurs again is numbered.
    """

    def __init__(self, function: FuncOp) -> None:
        self.function = function.sym_name.data
        self._names: dict[Operation, str] = {}
        self._calls: dict[str, CatalogueOp] = {}
        self._at: dict[str, CatalogueOp] = {}
        seen: dict[str, int] = {}
        calls = [op for op in body_of(function).ops if isinstance(op, CatalogueOp) and op.results]
        for op in calls:
            if (location := location_name(op.location)) is not None:
                self._at[location] = op
        for op in calls:
            location = location_name(op.location)
            made = op.definition.short_name
            # What only prepares operands for a call is not what its location names.
            is_last = location is not None and self._at[location] is op
            name = name_in_text(op.results[0], location if location and is_last else made)
            seen[name] = seen.get(name, 0) + 1
            name = name if seen[name] == 1 else f"{name}#{seen[name]}"
            self._names[op] = name
            self._calls.setdefault(name, op)

    def __getitem__(self, op: Operation) -> str:
        return self._names[op]

    def __contains__(self, op: Operation) -> bool:
        return op in self._names

    def __iter__(self) -> Iterator[str]:
        """All names, in the order of the calls."""
        return iter(self._calls)

    def named(self, name: str) -> CatalogueOp | None:
        """The call of that name; of a location the last call with it, which makes what
        the op there makes."""
        return self._calls.get(name) or self._at.get(name)

    def located(self, name: str) -> CatalogueOp | None:
        """The same, where names are first those of locations, as in the reference's options."""
        return self._at.get(name) or self._calls.get(name)

    @property
    def known(self) -> list[str]:
        """Everything that names a call."""
        return [*self._calls, *(name for name in self._at if name not in self._calls)]
