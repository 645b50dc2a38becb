"""Sizes that a kernel knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ttcodegen.dialects.ttkernel.builder import KernelBuilder
from ttcodegen.dialects.ttmetal.programs import NamedConstant
from ttcodegen.dialects.ttmetal.tuning import Size


@dataclass
class KernelSizes:
    """The sizes of a kernel under construction: those that are no numbers are compile-time
    arguments."""

    builder: KernelBuilder
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    _arguments: list[NamedConstant] = field(default_factory=list[NamedConstant])

    def know(self, sizes: Mapping[str, Size]) -> None:
        """Makes sizes known by name."""
        for name, size in sizes.items():
            if isinstance(size, int):
                self.values[name] = self.builder.value(size)
            else:
                self.values[name] = self.builder.compile_time_argument(name)
                self._arguments.append(NamedConstant(name, size))

    def finish(self) -> tuple[NamedConstant, ...]:
        """The compile-time arguments that the kernel uses; it declares no others."""
        used: list[NamedConstant] = []
        for argument in self._arguments:
            value = self.values[argument.name]
            if value.first_use is None:
                self.builder.remove(value)
            else:
                used.append(argument)
        return tuple(used)
