"""The passes of each pipeline, in order."""

from __future__ import annotations

from xdsl.passes import ModulePass

from ttcodegen.conversions.ttir_to_ttnn import ConvertTTIRToTTNN
from ttcodegen.transforms.const_eval_hoist import ConstEvalHoist
from ttcodegen.transforms.deallocate import Deallocate
from ttcodegen.transforms.decompose_layouts import DecomposeLayouts
from ttcodegen.transforms.inline import InlinePass
from ttcodegen.transforms.remove_dead_values import RemoveDeadValues
from ttcodegen.transforms.ttir_broadcast_fold import TTIRImplicitBroadcastFoldPass
from ttcodegen.transforms.ttir_canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir_decompose import TTIRDecomposePass
from ttcodegen.transforms.ttir_element_types import TTIRElementTypeNormalizationPass
from ttcodegen.transforms.ttir_erase_inverse import TTIREraseInversePass
from ttcodegen.transforms.ttir_fusing import TTIRFusingPass
from ttcodegen.transforms.ttnn_layout import TTNNLayout

TTIR_PIPELINE: list[ModulePass] = [
    InlinePass(),
    TTIRElementTypeNormalizationPass(),
    TTIRDecomposePass(),
    TTIRCanonicalizePass(),
    TTIRImplicitBroadcastFoldPass(),
    TTIREraseInversePass(),
    TTIRFusingPass(),
    TTIRDecomposePass(),
]
"""From what the user wrote to few and fused ops of device types."""

TTNN_PIPELINE: list[ModulePass] = [
    ConvertTTIRToTTNN(),
    RemoveDeadValues(),
    TTNNLayout(),
    ConstEvalHoist(),
    DecomposeLayouts(),
    Deallocate(),
]
"""From TTIR of device types to the calls of the library, in order."""
