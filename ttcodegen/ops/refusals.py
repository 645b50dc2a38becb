"""TTIR ops that no target supports, and why."""

from __future__ import annotations

from ttcodegen.ops.core.definition import TTIRDefinition, register, variadic

_LATER = "it describes memory that a later stage of compilation has placed"

REASONS = {
    "ttnn_metal_layout_cast": _LATER,
}
"""By the name of the op; completes "'ttir.x' is not supported: ..."."""

for _name, _reason in REASONS.items():
    register(TTIRDefinition(f"ttir.{_name}", (variadic("operands"),), results=-1, refusal=_reason))
