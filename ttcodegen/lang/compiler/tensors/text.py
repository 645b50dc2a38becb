"""The text of a function of TTIR on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

from ttcodegen.lang.simulator.shapes import Shape


@dataclass(frozen=True)
class Value:
    """A tensor of the function."""

    name: str
    shape: Shape


@dataclass
class TensorText:
    """Writes ops of TTIR, one a line; equal ones are written once."""

    element: str
    """The type of elements, as MLIR spells it."""
    lines: list[str] = field(default_factory=list[str])
    _known: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_float(self) -> bool:
        """True if elements are floats, not integers."""
        return "i" not in self.element

    def type(self, shape: Sequence[int], element: str | None = None) -> str:
        """The type of a tensor."""
        return f"tensor<{'x'.join([*map(str, shape), element or self.element])}>"

    def op(
        self, name: str, operands: Sequence[Value], shape: Sequence[int], attributes: str = ""
    ) -> Value:
        """Adds `ttir.<name>`."""
        given = ", ".join(each.name for each in operands)
        types = ", ".join(self.type(each.shape) for each in operands)
        properties = f" <{{{attributes}}}>" if attributes else ""
        text = f'"ttir.{name}"({given}){properties} : ({types}) -> {self.type(shape)}'
        return Value(self._added(text), tuple(shape))

    def _added(self, text: str) -> str:
        """The name of the result of an op."""
        if text not in self._known:
            self._known[text] = f"%{len(self._known)}"
            self.lines.append(f"{self._known[text]} = {text}")
        return self._known[text]

    def cast(self, value: Value, before: str, after: str) -> Value:
        """The same elements in another type."""
        if before == after:
            return value
        types = f"({self.type(value.shape, before)}) -> {self.type(value.shape, after)}"
        return Value(self._added(f'"ttir.typecast"({value.name}) : {types}'), value.shape)

    def elementwise(self, name: str, *operands: Value, attributes: str = "") -> Value:
        """An op of each element; what has size 1 where others have more is repeated."""
        shape = tuple(max(sizes) for sizes in zip(*(o.shape for o in operands), strict=True))
        return self.op(name, operands, shape, attributes)

    def full(self, number: float, shape: Sequence[int]) -> Value:
        """A tensor of one number."""
        sizes = ", ".join(map(str, shape))
        value = number_text(number) if self.is_float else f"{int(number)} : i32"
        attributes = f"shape = array<i32: {sizes}>, fill_value = {value}"
        return self.op("full", [], shape, attributes)

    def like(self, number: float, other: Value) -> Value:
        """A tensor of one number with the shape of another one."""
        return self.full(number, other.shape)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements in another shape."""
        if value.shape == tuple(shape):
            return value
        sizes = ", ".join(f"{size} : i32" for size in shape)
        return self.op("reshape", [value], shape, f"shape = [{sizes}]")

    def broadcast(self, value: Value, shape: Sequence[int]) -> Value:
        """Repeated where it has size 1."""
        if value.shape == tuple(shape):
            return value
        pairs = zip(value.shape, shape, strict=True)
        repeats = ", ".join(str(size // own) for own, size in pairs)
        attributes = f"broadcast_dimensions = array<i64: {repeats}>"
        return self.op("broadcast", [value], shape, attributes)


def number_text(number: float) -> str:
    """A float32 as MLIR writes it: by its bits where it is no number."""
    if not isfinite(number):
        return f"{'0x7F800000' if number > 0 else '0xFF800000'} : f32"
    text = repr(float(number))
    return f"{text if 'e' not in text else f'{number:.9e}'} : f32"
