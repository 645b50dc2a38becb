"""The passes of each pipeline, in order."""

from __future__ import annotations

from xdsl.passes import ModulePass

from ttcodegen.transforms.inline import InlinePass
from ttcodegen.transforms.ttir_canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir_decompose import TTIRDecomposePass
from ttcodegen.transforms.ttir_element_types import TTIRElementTypeNormalizationPass

TTIR_PIPELINE: list[ModulePass] = [
    InlinePass(),
    TTIRElementTypeNormalizationPass(),
    TTIRDecomposePass(),
    TTIRCanonicalizePass(),
]
"""From what the user wrote to few and fused ops of device types."""
