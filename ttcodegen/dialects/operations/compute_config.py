"""Compute kernel configuration: math fidelity, accumulation, and arithmetic of the engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from ttcodegen.dialects.core.attribute_syntax import WordAttribute
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.attribute_kinds import AttributeKind

# Math fidelity of the matrix engine.


class MathFidelity(StrEnum):
    """Math fidelity: the number of passes of the matrix engine per product."""

    LOFI = "lofi"
    HIFI2 = "hifi2"
    HIFI3 = "hifi3"
    HIFI4 = "hifi4"

    @property
    def cpp(self) -> str:
        """Enumerator of `tt::tt_metal::MathFidelity`."""
        return {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}[self.value]


# `#ttnn.device_compute_kernel_config`, the compute config of a call:
#
#     #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false,
#      fp32_dest_acc_en = true, packer_l1_acc = false, dst_full_sync_en = false>
#
# Omitted fields have the defaults of `ttnn::ComputeKernelConfig`.


class _Fidelity(WordAttribute[MathFidelity]):
    name = "ttnn.math_fidelity"


@dataclass(frozen=True)
class ComputeConfig:
    """`ttnn::ComputeKernelConfig` with its defaults."""

    math_fidelity: MathFidelity = MathFidelity.LOFI
    """Number of passes of a multiplication in the matrix engine."""
    math_approx_mode: bool = True
    """True if exponentials and similar functions may be approximated."""
    fp32_dest_acc_en: bool = False
    """True if destination registers have 32 bits per element instead of 16."""
    packer_l1_acc: bool = False
    """True if partial sums are accumulated in L1."""
    dst_full_sync_en: bool = False
    """True if a kernel uses all destination registers at once, without double buffering."""

    @staticmethod
    def exact(arch: str) -> ComputeConfig:
        """Returns the most exact f32 configuration of an architecture.

        On Wormhole the fourth pass of a multiplication with 32-bit sums is occasionally wrong by
        powers of two (tt-metal issue 38306); the library's own defaults use three passes there.
        """
        wormhole = arch == "wormhole_b0"
        return ComputeConfig(
            math_fidelity=MathFidelity.HIFI3 if wormhole else MathFidelity.HIFI4,
            math_approx_mode=False,
            fp32_dest_acc_en=True,
        )

    @property
    def is_exact(self) -> bool:
        """Returns whether it is the most exact f32 configuration of some architecture."""
        return self in (ComputeConfig.exact("wormhole_b0"), ComputeConfig.exact("blackhole"))

    def __str__(self) -> str:
        words = [f"{field.name} = {_text(getattr(self, field.name))}" for field in fields(self)]
        return f"<{', '.join(words)}>"


def _text(value: bool | MathFidelity) -> str:
    return value.value if isinstance(value, MathFidelity) else str(value).lower()


@irdl_attr_definition
class ComputeConfigAttr(Data[ComputeConfig]):
    """`#ttnn.device_compute_kernel_config<math_fidelity = hifi4, ...>`."""

    name = "ttnn.device_compute_kernel_config"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ComputeConfig:
        known = [field.name for field in fields(ComputeConfig)]
        found: dict[str, bool | MathFidelity] = {}
        with parser.in_angle_brackets():
            while True:
                position = parser.pos
                name = parser.parse_optional_identifier()
                if name is None:
                    break
                if name not in known or name in found:
                    what = "has no" if name not in known else "has more than one"
                    parser.raise_error(f"#{cls.name} {what} '{name}'", position)
                parser.parse_punctuation("=")
                if name == "math_fidelity":
                    found[name] = _Fidelity.parse_word(parser)
                else:
                    found[name] = parser.parse_boolean()
                if parser.parse_optional_punctuation(",") is None:
                    break
        return ComputeConfig(**found)  # pyright: ignore[reportArgumentType]

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


def _decode(attribute: Attribute) -> ComputeConfig:
    if isinstance(attribute, ComputeConfigAttr):
        return attribute.data
    raise TypeError


COMPUTE_CONFIG = AttributeKind[ComputeConfig](
    "a #ttnn.device_compute_kernel_config", _decode, ComputeConfigAttr
)


# Precision of the engines for a compute config, and default configs of calls without one.
#
# Source: SrcASrcB.md and MVMUL.md of tenstorrent/tt-isa-documentation. The CPU backend has the
# same rules in C++ (standalone/src/compute/arithmetic.cpp).

_TF32_BITS = 10
_BFLOAT16_BITS = 7
# Passes of the multiplier use 4 + 5 bits of source A and 6 + 4 of source B; the last bit of TF32
# in source A is unused.
_FIRST_PASS_OF_A = 4
_BOTH_PASSES_OF_A = 9
_FIRST_PASS_OF_B = 6


@dataclass(frozen=True)
class Arithmetic:
    """Precision of the engines, in mantissa bits without the leading one."""

    source_bits: int
    """Bits of a float in a source register: TF32, or bfloat16 with 16-bit sums."""
    first_bits: int
    """Multiplied bits of source B, the first operand of a matmul."""
    second_bits: int
    """Multiplied bits of source A, the second operand of a matmul, or the operand of a
    reduction."""
    narrow_sums: bool
    """True if a sum is rounded to bfloat16 after each tile."""
    approximate: bool
    """True if exponentials and reciprocals are approximations."""
    drops_low_product: bool
    """True if the product of the low parts of both operands is dropped."""

    @staticmethod
    def of(config: ComputeConfig) -> Arithmetic:
        """Returns the arithmetic of a configuration."""
        source = _TF32_BITS if config.fp32_dest_acc_en else _BFLOAT16_BITS
        cuts_a = config.math_fidelity is MathFidelity.LOFI
        cuts_b = cuts_a or config.math_fidelity is MathFidelity.HIFI2
        return Arithmetic(
            source_bits=source,
            first_bits=_FIRST_PASS_OF_B if cuts_b else source,
            second_bits=_FIRST_PASS_OF_A if cuts_a else min(source, _BOTH_PASSES_OF_A),
            narrow_sums=not config.fp32_dest_acc_en,
            approximate=config.math_approx_mode,
            drops_low_product=config.math_fidelity is MathFidelity.HIFI3,
        )


FIRST_PASS_BITS = (_FIRST_PASS_OF_A, _FIRST_PASS_OF_B)
"""Bits of source A and source B that the first pass multiplies."""

FACTORS = 2
"""Number of leading operands whose types determine the default configuration."""

Fidelity = Literal["LoFi", "HiFi2", "HiFi3", "HiFi4", "EXACT"]
"""Fidelity of a default; EXACT is HiFi3 on Wormhole and HiFi4 on Blackhole."""


@dataclass(frozen=True)
class ComputeDefault:
    """Default compute configuration of a call that passes none."""

    narrow: Fidelity
    """Fidelity for 16-bit and mixed operands."""
    block: Fidelity
    """Fidelity for block floats."""
    wide: Fidelity
    """Fidelity for float32."""
    approximate: bool
    wide_sums: Literal["ALWAYS", "NEVER", "OPERANDS", "RESULT"]
    """Condition for 32-bit sums: all operands, or the result, are float32."""

    def config(
        self, operands: Sequence[DataType], result: DataType, architecture: str
    ) -> ComputeConfig:
        """Returns the configuration for operands and a result of these types."""
        all_wide = all(each is DataType.FLOAT32 for each in operands)
        all_block = all(each.is_block_float for each in operands)
        fidelity = self.wide if all_wide else self.block if all_block else self.narrow
        if fidelity == "EXACT":
            fidelity = ComputeConfig.exact(architecture).math_fidelity.cpp
        wide_sums = {
            "ALWAYS": True,
            "NEVER": False,
            "OPERANDS": all_wide,
            "RESULT": result is DataType.FLOAT32,
        }[self.wide_sums]
        return ComputeConfig(
            math_fidelity=MathFidelity(fidelity.lower()),
            math_approx_mode=self.approximate,
            fp32_dest_acc_en=wide_sums,
        )


COMPUTE_DEFAULTS = {
    "matmul": ComputeDefault("HiFi2", "LoFi", "EXACT", False, "RESULT"),
    "matmul_with_program": ComputeDefault("LoFi", "LoFi", "EXACT", False, "RESULT"),
    "convolution": ComputeDefault("HiFi4", "HiFi4", "HiFi4", True, "OPERANDS"),
    "convolution3d": ComputeDefault("HiFi2", "HiFi2", "HiFi2", True, "NEVER"),
    "attention": ComputeDefault("HiFi2", "HiFi2", "HiFi2", True, "NEVER"),
    "reduction": ComputeDefault("EXACT", "EXACT", "EXACT", False, "ALWAYS"),
    "softmax": ComputeDefault("HiFi4", "HiFi4", "EXACT", True, "OPERANDS"),
    "layer_norm": ComputeDefault("HiFi4", "HiFi4", "HiFi4", False, "ALWAYS"),
    "rms_norm": ComputeDefault("HiFi4", "HiFi4", "HiFi4", True, "NEVER"),
    "batch_norm": ComputeDefault("EXACT", "EXACT", "EXACT", False, "ALWAYS"),
    "group_norm": ComputeDefault("HiFi4", "HiFi4", "HiFi4", True, "NEVER"),
    "pool": ComputeDefault("HiFi4", "HiFi4", "HiFi4", False, "NEVER"),
    "large_pool": ComputeDefault("HiFi4", "HiFi4", "HiFi4", False, "ALWAYS"),
    "upsample": ComputeDefault("HiFi4", "HiFi4", "HiFi4", True, "NEVER"),
    "rotary": ComputeDefault("HiFi4", "HiFi4", "HiFi4", True, "NEVER"),
    "cache": ComputeDefault("LoFi", "LoFi", "LoFi", True, "NEVER"),
}
"""Default configurations by op family.

Source: the calls of init_device_compute_kernel_config in ttnn/cpp/ttnn/operations of tt-metal.
"""


def default_config(
    row: str,
    operands: Sequence[DataType],
    result: DataType,
    architecture: str,
) -> ComputeConfig:
    """Returns the default compute configuration of a call that passes none.

    Args:
        row: key of `COMPUTE_DEFAULTS`.
        operands: the data types of all operands; the first ones decide.
        result: the data type of the first result.
        architecture: such as `wormhole_b0`.
    """
    return COMPUTE_DEFAULTS[row].config(operands[:FACTORS], result, architecture)
