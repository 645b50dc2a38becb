"""Random chains of convolutions, such as the optimizer keeps in shards: with strides, residuals and
what is computed element by element between them."""

from __future__ import annotations

from tests.random_programs.choices import Choices, SeededChoices, chance, pick

CHANNELS = (32, 64, 96, 33)
EXTENTS = (14, 16, 9, 28)
STEPS = ("relu", "sigmoid", "neg", "silu")
"""None that makes errors of its operand larger, as `exp` does."""


class _Chain:
    """Writes one function."""

    def __init__(self, choices: Choices, name: str) -> None:
        self.choices = choices
        self.name = name
        self.batch = choices.integer(1, 2)
        self.height, self.width = pick(choices, EXTENTS), pick(choices, EXTENTS)
        self.channels = pick(choices, CHANNELS)
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.image = self.argument(self.type, "input", 1.0)

    @property
    def type(self) -> str:
        """Of the image."""
        return f"tensor<{self.batch}x{self.height}x{self.width}x{self.channels}xbf16>"

    def argument(self, type_: str, kind: str, most: float) -> str:
        """A new argument."""
        number = len(self.arguments)
        drawn = f"drawn.low = {-most:e} : f64, drawn.high = {most:e} : f64"
        self.arguments.append(
            f"%a{number}: {type_} {{{drawn}, drawn.seed = {number} : i64, "
            f"ttcore.argument_type = #ttcore.argument_type<{kind}>}}"
        )
        return f"%a{number}"

    def emit(self, op: str, operands: list[str], attributes: str, types: list[str]) -> str:
        """A new value, of the type of the image."""
        made = f"%{len(self.lines)}"
        self.lines.append(
            f"  {made} = {op}({', '.join(operands)}){attributes} : ({', '.join(types)}) -> "
            f"{self.type}"
        )
        return made

    def convolve(self) -> None:
        """A convolution of the image, and perhaps what it was added to it."""
        before, type_ = self.image, self.type
        kernel = pick(self.choices, (1, 3))
        stride = 2 if chance(self.choices, 25) else 1
        out = pick(self.choices, CHANNELS)
        weights = f"tensor<{out}x{self.channels}x{kernel}x{kernel}xbf16>"
        most = 1.5 / (self.channels * kernel * kernel) ** 0.5
        weight = self.argument(weights, "parameter", most)
        self.channels = out
        self.height, self.width = -(-self.height // stride), -(-self.width // stride)
        numbers = {"stride": stride, "padding": kernel // 2, "dilation": 1, "groups": 1}
        attributes = ", ".join(f"{key} = {number} : i32" for key, number in numbers.items())
        self.image = self.emit(
            '"ttir.conv2d"', [before, weight], f" <{{{attributes}}}>", [type_, weights]
        )
        if self.type == type_ and chance(self.choices, 50):
            self.image = self.emit('"ttir.add"', [self.image, before], "", [type_, type_])

    def compute(self) -> None:
        """Something element by element."""
        op = pick(self.choices, STEPS)
        self.image = self.emit(f'"ttir.{op}"', [self.image], "", [self.type])

    def text(self) -> str:
        """The function."""
        body = "\n".join([*self.lines, f"  return {self.image} : {self.type}"])
        arguments = ", ".join(self.arguments)
        return f"func.func @{self.name}({arguments}) -> {self.type} {{\n{body}\n}}\n"


def chain(seed: int) -> str:
    """A function of two to four convolutions, the same for the same seed in each run."""
    choices = SeededChoices(seed)
    made = _Chain(choices, f"chain{seed}")
    for _ in range(choices.integer(2, 4)):
        made.convolve()
        if chance(choices, 60):
            made.compute()
    return made.text()
