"""TTIR ops that no target supports, and why."""

from __future__ import annotations

from ttcodegen.ops.definition import TTIRDefinition, register, variadic

_FUSED = (
    "the call of tt-metal 0.70.1 needs the axis of the mesh, the cores whose L1 holds the tokens, "
    "and the cores that send; the op names none of them, and leaves the shapes of its operands "
    "open; ttir.all_to_all_combine takes tensors"
)
_EXPERTS = (
    "its weights are stored as the cores beside the DRAM banks of one card read them, and its "
    "results are the L1 of all cores, of which the call of tt-metal 0.70.1 fills a part; "
    "ttir.moe_compute takes and gives tensors"
)
_LATER = "it describes memory that a later stage of compilation has placed"

REASONS = {
    "moe_gpt": _EXPERTS,
    "selective_reduce_combine": _FUSED,
    "ttnn_metal_layout_cast": _LATER,
}
"""By the name of the op; completes "'ttir.x' is not supported: ..."."""

for _name, _reason in REASONS.items():
    register(TTIRDefinition(f"ttir.{_name}", (variadic("operands"),), results=-1, refusal=_reason))
