"""The table of the single passes; pipelines.py puts them together."""

from __future__ import annotations

from ttcodegen.systems.description import ARCHITECTURES
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES
from ttcodegen.transforms.registry import Group, Option, PassEntry

_CANONICAL = "ttcodegen.frontends.canonicalization"

SYSTEM_OPTIONS = (
    Option("system-desc-path", "The system: a .ttsys file, or the name of an architecture."),
    Option(
        "mock-system-desc-arch",
        "Without a file: the architecture whose default system is meant.",
        choices=("", *ARCHITECTURES),
    ),
    Option("mesh-shape", "Rows and columns of the mesh of chips, for modules that do not say."),
)

PARALLEL = Option(
    "parallel",
    "Shardings for modules that say none: auto, or kinds with axes, as data=0,tensor=1.",
)

RELEASE = Option("release", "The release of tt-metal.", DEFAULT_RELEASE, choices=RELEASES)

EMITC_OPTIONS = (
    Option("module-name", "The namespace and the stem of the files; the module's name."),
    Option("input-hash", "What the files say about their origin; a hash of the module."),
    RELEASE,
)

PASSES = (
    PassEntry(
        name="convert-tosa-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertTosaToTTIR",
        description="TOSA to TTIR, which is done when a file is read.",
        aliases=("tosa-to-ttir-pipeline",),
    ),
    PassEntry(
        name="convert-linalg-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertLinalgToTTIR",
        description="linalg to TTIR, which is done when a file is read.",
        aliases=("linalg-to-ttir-pipeline",),
    ),
    PassEntry(
        name="convert-stablehlo-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertStableHLOToTTIR",
        description="StableHLO to TTIR, which is done when a file is read.",
        aliases=("stablehlo-to-ttir-pipeline", "legalize-stablehlo-composite-to-ttir"),
    ),
    PassEntry(
        name="ttnn-canonicalize-calls",
        group=Group.TTNN,
        implementation=f"{_CANONICAL}:CanonicalCalls",
        description="Spells calls of TTNN as the catalogue does, whichever tool printed them.",
    ),
    PassEntry(
        name="ttcore-imply-mesh",
        group=Group.TTCORE,
        implementation=f"{_CANONICAL}:ImplyMesh",
        description="Makes a module that names no mesh say the one that its collectives need.",
    ),
    PassEntry(
        name="ttmetal-complete-programs",
        group=Group.TTMETAL,
        implementation=f"{_CANONICAL}:CompletePrograms",
        description="Completes hand-written device programs: placements and meanings.",
    ),
    PassEntry(
        name="ttir-lift-generic-regions",
        group=Group.TTIR,
        implementation=f"{_CANONICAL}:LiftGenericRegions",
        description="Turns regions of ttir.generic on elements or buffers into regions of ops on "
        "whole tensors.",
    ),
    PassEntry(
        name="ttir-load-system-desc",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:LoadSystemDescription",
        description="Says what system the module is compiled for.",
        aliases=("tt-load-system-desc",),
        options=(Option("path", "A .ttsys file or the name of an architecture."),),
    ),
    PassEntry(
        name="ttir-implicit-device",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:ImplicitDevice",
        description="Describes the device: all cores and banks of the first chip.",
        aliases=("tt-implicit-device",),
        options=(SYSTEM_OPTIONS[2],),
    ),
    PassEntry(
        name="ttcore-register-device",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:RegisterDevice",
        description="Says what system and device the module is compiled for.",
        aliases=("tt-register-device",),
        options=SYSTEM_OPTIONS,
    ),
    PassEntry(
        name="ttcore-check-memory",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:CheckMemory",
        description="Refuses programs that the device cannot hold.",
    ),
    PassEntry(
        name="ttcore-check-sizes",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:CheckSizes",
        description="Refuses tensors that the device cannot hold, before anything is computed.",
    ),
    PassEntry(
        name="populate-argument-types",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.const_eval:PopulateArgumentTypes",
        description="Says which arguments are inputs, and which are weights.",
        aliases=("tt-populate-argument-types", "ttcore-populate-argument-types"),
        options=(
            Option(
                "argument-types",
                "function=kind,kind,...; the kinds are input, parameter and constant.",
            ),
        ),
    ),
    PassEntry(
        name="ttir-choose-shardings",
        group=Group.TTIR,
        implementation="ttcodegen.optimizer.parallelism:ChooseShardings",
        description="Chooses how the arguments of functions are divided among the chips of the "
        "mesh, where the module does not say it.",
        options=(
            PARALLEL,
            Option("overrides", "Decisions that are given, as JSON."),
            Option(
                "weights",
                "Types of the weights of products, for estimates.",
                "none",
                choices=("none", "bfp_bf8", "bfp_bf4"),
            ),
        ),
    ),
    PassEntry(
        name="ttir-partition",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.mesh.partition:TTIRPartition",
        description="Divides what a module computes among the chips of its mesh, where it only "
        "says how tensors are divided.",
    ),
    PassEntry(
        name="ttcore-record-chip-shares",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.mesh.partition:RecordChipShares",
        description="Says of arguments and results how they are divided among the chips of the "
        "mesh.",
    ),
    PassEntry(
        name="ttir-element-type-normalization",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.element_types:TTIRElementTypeNormalizationPass",
        description="Gives every tensor an element type that the device has: i64 becomes si32, "
        "f64 f32, i1 bf16. Constants are rewritten.",
    ),
    PassEntry(
        name="ttir-decompose",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRDecomposePass",
        description="Replaces the ops that other TTIR ops can express.",
        aliases=("ttir-to-ttir-decomposition", "ttir-decompose-composites"),
    ),
    PassEntry(
        name="ttir-empty-attention-rows",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.fusing.rules:TTIREmptyAttentionRowsPass",
        description="Makes the rows of attention zero in which a mask hides every key.",
    ),
    PassEntry(
        name="ttir-own-buffers",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.own_buffers:TTIROwnBuffers",
        description="Clones what shares the buffer of a tensor that is overwritten.",
    ),
    PassEntry(
        name="ttir-canonicalize",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRCanonicalizePass",
        description="Simplifies constants, moves of elements and arithmetic; merges equal ops and "
        "drops unused ones.",
        aliases=("canonicalize",),
    ),
    PassEntry(
        name="ttir-implicit-broadcast-fold",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.movement_passes:TTIRImplicitBroadcastFoldPass",
        description="Drops broadcasts whose users broadcast by themselves.",
        aliases=("ttir-implicit-broadcast-folding",),
    ),
    PassEntry(
        name="ttir-erase-inverse",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.movement_passes:TTIREraseInversePass",
        description="Moves permutations and reshapes through other ops until they cancel.",
        aliases=("ttir-erase-inverse-ops",),
    ),
    PassEntry(
        name="ttir-fusing",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.fusing.rules:TTIRFusingPass",
        description="Puts ops together that the library has one op for: biases, activations, "
        "norms, attention.",
    ),
    PassEntry(
        name="convert-ttir-to-ttnn",
        group=Group.TTNN,
        implementation="ttcodegen.conversions.ttir_to_ttnn:ConvertTTIRToTTNN",
        description="Turns TTIR ops into calls of the ttnn library.",
    ),
    PassEntry(
        name="ttnn-fit-release",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.call_settings:FitRelease",
        description="Rewrites calls that the release of tt-metal takes in another form only.",
        options=(RELEASE,),
    ),
    PassEntry(
        name="ttnn-set-compute-kernel-config",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.call_settings:SetComputeKernelConfig",
        description="Makes calls compute exactly where the library's own choice loses digits.",
    ),
    PassEntry(
        name="ttnn-layout",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:TTNNLayout",
        description="Gives every TTNN tensor its data type, page layout and memory; before the "
        "conversion to TTNN, lets it do so.",
        aliases=("ttir-layout",),
    ),
    PassEntry(
        name="ttnn-decode-caches",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DecodeCaches",
        description="Caches are updated from shards, at positions that stay on the device; what "
        "moves dimensions of one element only is a reshape.",
    ),
    PassEntry(
        name="ttnn-decode-heads",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DecodeHeads",
        description="Heads of one token of each user are put side by side in their shards.",
    ),
    PassEntry(
        name="ttnn-dense-rows",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DenseRows",
        description="Computes on rows in a layout without padding; reshapes cancel.",
    ),
    PassEntry(
        name="ttnn-fuse-projections",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.fusing:FuseProjections",
        description="Queries, keys and values of one input become one product.",
        options=(Option("overrides", "Decisions that are given: what stays apart."),),
    ),
    PassEntry(
        name="ttnn-fuse-activations",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.fusing:FuseActivations",
        description="Activations become part of the products and convolutions before them.",
        options=(Option("overrides", "Decisions that are given: what stays apart."),),
    ),
    PassEntry(
        name="ttnn-weight-dtype-conversion",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:WeightTypes",
        description="Weights of products become block floats.",
        options=(
            Option("target", "What they become.", "none", choices=("none", "bfp_bf8", "bfp_bf4")),
        ),
    ),
    PassEntry(
        name="ttnn-optimize",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.optimize:Optimize",
        description="Chooses math fidelities, program configurations and memory configurations.",
        options=(
            Option("level", "1: what never hurts; 2: with a search.", 1, choices=(1, 2)),
            Option("overrides", "Decisions that are given, as JSON."),
            Option("record", "Leave what was decided in attributes of the module.", False),
        ),
    ),
    PassEntry(
        name="ttnn-prepare-conv2d-weights-and-bias",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.call_settings:PrepareConvolutionWeights",
        description="Prepares the weights of convolutions by calls that const-eval hoists.",
    ),
    PassEntry(
        name="ttnn-hoist-loop-invariants",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.loops:HoistLoopInvariants",
        description="Moves what is the same in each iteration of a loop before the loop.",
    ),
    PassEntry(
        name="const-eval-hoist-transform",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.const_eval:ConstEvalHoist",
        description="Moves what depends on weights and constants only into functions that run "
        "once.",
    ),
    PassEntry(
        name="ttnn-decompose-layouts",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:DecomposeLayouts",
        description="Turns each change of layout into the calls of the library that make it.",
    ),
    PassEntry(
        name="ttnn-deallocate",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:Deallocate",
        description="Gives tensors back to the device after their last use.",
    ),
    PassEntry(
        name="ttnn-modify-signatures-for-dylib",
        group=Group.EMITC,
        implementation="ttcodegen.conversions.host_functions.interface:ModifySignaturesForDylib",
        description="Gives each function f a second one in C++, call_f, of vectors of tensors.",
        aliases=("ttnn-tuplify-tensors",),
    ),
    PassEntry(
        name="convert-tt-lang-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTLangToEmitC",
        description="Turns operations of TT-Lang that TTNN functions call into C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="convert-ttnn-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.conversions.ttnn_to_emitc:ConvertTTNNToEmitC",
        description="Turns TTNN functions into C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="ttir-unroll-loops",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.loops:UnrollLoops",
        description="Puts copies of their bodies in place of loops whose trip count is known.",
    ),
    PassEntry(
        name="inline",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:InlinePass",
        description="Puts the bodies of called functions in place of the calls.",
        options=(
            Option("cpu-functions", "Also those of functions for the CPU.", False),
            Option("generics", "Also the regions of ttir.generic.", False),
        ),
    ),
    PassEntry(
        name="remove-dead-values",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.ttnn.layout:RemoveDeadValues",
        description="Drops ops whose results are unused.",
    ),
    PassEntry(
        name="symbol-dce",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:SymbolDCE",
        description="Drops private functions that are never called.",
    ),
    PassEntry(
        name="cse",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:CommonSubexpressionElimination",
        description="Merges ops that compute the same from the same.",
    ),
)
"""Rows in the order of --help within each group."""
