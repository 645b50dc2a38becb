"""How the compute kernels of a call work: `#ttnn.device_compute_kernel_config`.

    #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false,
     fp32_dest_acc_en = true, packer_l1_acc = false, dst_full_sync_en = false>

Fields that the text leaves out are those of a `ttnn::ComputeKernelConfig` that is not set.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ttcodegen.dialects.core.enumerations import WordAttribute
from ttcodegen.dialects.operations.attribute_kinds import AttributeKind
from ttcodegen.dialects.ttcore.math_fidelity import MathFidelity


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
        """What computes with f32 as exactly as an architecture can.

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
