"""Words that say how kernels are compiled and where they run."""

from __future__ import annotations

from xdsl.utils.str_enum import StrEnum


class MathFidelity(StrEnum):
    """How many passes the matrix engine multiplies in: how exact products are."""

    LOFI = "lofi"
    HIFI2 = "hifi2"
    HIFI3 = "hifi3"
    HIFI4 = "hifi4"


class UnpackToDestination(StrEnum):
    """Whether f32 goes to the destination registers as it is."""

    FP32 = "fp32"
    DEFAULT = "default"


class EthernetType(StrEnum):
    """Which end of a link a kernel of an ethernet core is."""

    SENDER = "sender"
    RECEIVER = "receiver"
