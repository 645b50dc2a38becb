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

# How exact the products of the matrix engine are.


class MathFidelity(StrEnum):
    """Math fidelity: the number of passes of the matrix engine per product."""

    LOFI = "lofi"
    HIFI2 = "hifi2"
    HIFI3 = "hifi3"
    HIFI4 = "hifi4"

    @property
    def cpp(self) -> str:
        """The enumerator of `tt::tt_metal::MathFidelity`."""
        return {"lofi": "LoFi", "hifi2": "HiFi2", "hifi3": "HiFi3", "hifi4": "HiFi4"}[self.value]


# How the compute kernels of a call work: `#ttnn.device_compute_kernel_config`.
#
#     #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false,
#      fp32_dest_acc_en = true, packer_l1_acc = false, dst_full_sync_en = false>
#
# Fields that the text leaves out are those of a `ttnn::ComputeKernelConfig` that is not set.


class _Fidelity(WordAttribute[MathFidelity]):
    name = "ttnn.math_fidelity"


@dataclass(frozen=True)
class ComputeConfig:
    """`ttnn::ComputeKernelConfig` with its defaults."""

    math_fidelity: MathFidelity = MathFidelity.LOFI
    """In how many passes the matrix engine multiplies."""
    math_approx_mode: bool = True
    """True if exponentials and the like may be approximations."""
    fp32_dest_acc_en: bool = False
    """True if the destination registers have 32 bits an element, not 16."""
    packer_l1_acc: bool = False
    """True if partial sums are added up in L1."""
    dst_full_sync_en: bool = False
    """True if a kernel has all of the destination registers, not half of them at a time."""

    @staticmethod
    def exact(arch: str) -> ComputeConfig:
        """The most exact f32 configuration of an architecture.

        On Wormhole the fourth pass of a multiplication, summed up in 32 bits, is wrong by powers of
        two now and then (tt-metal issue 38306); the library's own defaults have three there.
        """
        wormhole = arch == "wormhole_b0"
        return ComputeConfig(
            math_fidelity=MathFidelity.HIFI3 if wormhole else MathFidelity.HIFI4,
            math_approx_mode=False,
            fp32_dest_acc_en=True,
        )

    @property
    def is_exact(self) -> bool:
        """True if it is what some architecture computes with f32 best with."""
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


# How exactly the engines of a core compute: what a compute configuration leaves of operands and
# sums, and what calls get that pass none.
#
# Source: SrcASrcB.md and MVMUL.md of tenstorrent/tt-isa-documentation. The CPU backend has the
# same rules in C++ (standalone/src/compute/arithmetic.cpp).

_TF32_BITS = 10
_BFLOAT16_BITS = 7
# Passes of the multiplier take 4 + 5 bits of source A and 6 + 4 of source B; the last bit of TF32
# in source A is part of no pass.
_FIRST_PASS_OF_A = 4
_BOTH_PASSES_OF_A = 9
_FIRST_PASS_OF_B = 6


@dataclass(frozen=True)
class Arithmetic:
    """Precision of the engines: mantissa bits, without the leading one. Bits of a mantissa are
    those after the leading one."""

    source_bits: int
    """Of a float in a source register: TF32, or bfloat16 where sums have 16 bits."""
    first_bits: int
    """Those that are multiplied of source B, the first operand of a matmul."""
    second_bits: int
    """Those that are multiplied of source A, the second one; what is reduced is there too."""
    narrow_sums: bool
    """True if a sum is rounded to bfloat16 whenever a tile was added to it."""
    approximate: bool
    """True if exponentials and reciprocals are approximations."""
    drops_low_product: bool
    """True if what the first pass leaves of either operand is not multiplied with each other."""

    @staticmethod
    def of(config: ComputeConfig) -> Arithmetic:
        """The arithmetic of a configuration."""
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
"""The first operands of an op are those whose types decide on its default configuration."""

Fidelity = Literal["LoFi", "HiFi2", "HiFi3", "HiFi4", "EXACT"]
"""EXACT is HiFi3 on Wormhole and HiFi4 on Blackhole."""


@dataclass(frozen=True)
class ComputeDefault:
    """Default compute configuration of a call that passes none."""

    narrow: Fidelity
    """For operands of 16 bits, and mixed ones."""
    block: Fidelity
    """For block floats."""
    wide: Fidelity
    """For float32."""
    approximate: bool
    wide_sums: Literal["ALWAYS", "NEVER", "OPERANDS", "RESULT"]
    """True if sums have 32 bits: where all operands, or the result, are float32."""

    def config(
        self, operands: Sequence[DataType], result: DataType, architecture: str
    ) -> ComputeConfig:
        """The configuration for operands and a result of these types."""
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
"""By families of ops. Source: the calls of init_device_compute_kernel_config in
ttnn/cpp/ttnn/operations of tt-metal."""


def default_config(
    row: str,
    operands: Sequence[DataType],
    result: DataType,
    architecture: str,
) -> ComputeConfig:
    """Default compute configuration of a call that passes none.

    Args:
        row: of `COMPUTE_DEFAULTS`.
        operands: the data types of all operands; the first ones decide.
        result: the data type of the first result.
        architecture: such as `wormhole_b0`.
    """
    return COMPUTE_DEFAULTS[row].config(operands[:FACTORS], result, architecture)
