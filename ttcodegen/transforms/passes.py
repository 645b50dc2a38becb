"""The table of the passes that stand alone; pipelines.py puts them together."""

from __future__ import annotations

from ttcodegen.transforms.registry import Group, PassEntry

_TRANSFORMS = "ttcodegen.transforms"
_CONVERSIONS = "ttcodegen.conversions"

PASSES = (
    PassEntry(
        name="ttir-element-type-normalization",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_element_types:TTIRElementTypeNormalizationPass",
        description="Gives every tensor an element type that the device has: i64 becomes si32, "
        "f64 f32, i1 bf16. Constants are rewritten.",
        aliases=("ttir-quant-data-type-conversion",),
    ),
    PassEntry(
        name="ttir-decompose",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_decompose:TTIRDecomposePass",
        description="Replaces the ops that other TTIR ops can express.",
        aliases=("ttir-to-ttir-decomposition", "ttir-decompose-composites"),
    ),
    PassEntry(
        name="ttir-canonicalize",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_canonicalize:TTIRCanonicalizePass",
        description="Simplifies constants, moves of elements and arithmetic; merges equal ops and "
        "drops unused ones.",
        aliases=("canonicalize",),
    ),
    PassEntry(
        name="ttir-implicit-broadcast-fold",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_broadcast_fold:TTIRImplicitBroadcastFoldPass",
        description="Drops broadcasts whose users broadcast by themselves.",
        aliases=("ttir-implicit-broadcast-folding",),
    ),
    PassEntry(
        name="ttir-erase-inverse",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_erase_inverse:TTIREraseInversePass",
        description="Moves permutations and reshapes through other ops until they cancel.",
        aliases=("ttir-erase-inverse-ops",),
    ),
    PassEntry(
        name="ttir-fusing",
        group=Group.TTIR,
        implementation=f"{_TRANSFORMS}.ttir_fusing:TTIRFusingPass",
        description="Puts ops together that the library has one op for: biases, activations, "
        "norms, attention.",
    ),
    PassEntry(
        name="convert-ttir-to-ttnn",
        group=Group.TTNN,
        implementation=f"{_CONVERSIONS}.ttir_to_ttnn:ConvertTTIRToTTNN",
        description="Turns TTIR ops into calls of the ttnn library.",
    ),
    PassEntry(
        name="ttnn-layout",
        group=Group.TTNN,
        implementation=f"{_TRANSFORMS}.ttnn_layout:TTNNLayout",
        description="Gives every TTNN tensor its data type, page layout and memory.",
    ),
    PassEntry(
        name="const-eval-hoist-transform",
        group=Group.TTNN,
        implementation=f"{_TRANSFORMS}.const_eval_hoist:ConstEvalHoist",
        description="Moves what depends on weights and constants only into functions that run "
        "once.",
    ),
    PassEntry(
        name="ttnn-decompose-layouts",
        group=Group.TTNN,
        implementation=f"{_TRANSFORMS}.decompose_layouts:DecomposeLayouts",
        description="Turns each change of layout into the calls of the library that make it.",
    ),
    PassEntry(
        name="ttnn-deallocate",
        group=Group.TTNN,
        implementation=f"{_TRANSFORMS}.deallocate:Deallocate",
        description="Gives tensors back to the device after their last use.",
    ),
    PassEntry(
        name="inline",
        group=Group.GENERAL,
        implementation=f"{_TRANSFORMS}.inline:InlinePass",
        description="Puts the bodies of called functions in place of the calls.",
    ),
    PassEntry(
        name="remove-dead-values",
        group=Group.GENERAL,
        implementation=f"{_TRANSFORMS}.remove_dead_values:RemoveDeadValues",
        description="Drops ops whose results nobody uses.",
    ),
    PassEntry(
        name="cse",
        group=Group.GENERAL,
        implementation=f"{_TRANSFORMS}.common_subexpressions:CommonSubexpressionElimination",
        description="Merges ops that compute the same from the same.",
    ),
)
"""Rows in the order of --help within each group."""
