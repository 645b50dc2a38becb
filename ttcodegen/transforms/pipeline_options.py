"""The options of the pipelines of the library.

Names are those of tt-mlir (2024 to 2026). An option with a `refusal` is one that cannot be had
here: it is accepted with the value that says what is done anyway.
"""

from __future__ import annotations

from ttcodegen.compat.refusals import REFUSED_EMITC_OPTIONS, REFUSED_TTNN_OPTIONS
from ttcodegen.transforms.pass_options import fixed
from ttcodegen.transforms.passes import EMITC_OPTIONS as CONVERSION_OPTIONS
from ttcodegen.transforms.passes import SYSTEM_OPTIONS
from ttcodegen.transforms.registry import Option

TTIR_OPTIONS = (
    Option("enable-fusing-pass", "Recognise what the library has one op for.", True),
    Option("enable-implicit-broadcast-folding-pass", "Drop broadcasts that are implied.", True),
    Option("enable-erase-inverse-ops-pass", "Cancel permutations and reshapes.", True),
)
TTNN_OPTIONS = (
    *SYSTEM_OPTIONS,
    Option("argument-types", "Kinds of arguments: function=input,parameter,constant,..."),
    *TTIR_OPTIONS,
    Option("enable-const-eval", "Compute once what depends on weights only.", True),
    Option("enable-remove-dead-values", "Drop what lowering left over.", True),
    Option(
        "optimization-level",
        "0: as written, but for decisions that are given; 1: what never hurts; 2: a search.",
        0,
        choices=(0, 1, 2),
    ),
    Option("enable-optimizer", "Level 1, whatever the level says.", False),
    Option("memory-layout-analysis-enabled", "Level 2 if there is an optimizer.", False),
    Option(
        "experimental-weight-dtype",
        "What weights of products become.",
        "none",
        choices=("none", "bfp_bf8", "bfp_bf4"),
    ),
    Option("experimental-bfp8-weights", "Weights of products as bfp_bf8.", False),
    Option("overrides", "Decisions that are given, as JSON."),
    Option("override-output-layout", "Layouts of results: name=8x8:l1:block_sharded:tile:bf16,..."),
    Option("override-conv2d-config", "Convolutions: name=core_grid#8x4:weights_dtype#bf16,..."),
    Option("insert-memreconfig", "Operands that are moved first: name=0:1,..."),
    Option("record-decisions", "Leave what was decided in attributes of the module.", False),
    *fixed(REFUSED_TTNN_OPTIONS),
)
EMITC_OPTIONS = (
    *CONVERSION_OPTIONS,
    Option("target-dylib", "Add functions of vectors, for callers that know no model.", False),
    *fixed(REFUSED_EMITC_OPTIONS),
)
