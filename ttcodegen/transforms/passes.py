"""The table of the single passes; pipelines.py puts them together."""

from __future__ import annotations

from ttcodegen.systems.description import ARCHITECTURES
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES
from ttcodegen.transforms.registry import Group, Option, PassEntry

_CANONICAL = "ttcodegen.frontends.canonicalization"

SYSTEM_OPTIONS = (
    Option(
        "system-desc-path", "System description: a .ttsys file, or the name of an architecture."
    ),
    Option(
        "mock-system-desc-arch",
        "Architecture whose default system is used without a file.",
        choices=("", *ARCHITECTURES),
    ),
    Option("mesh-shape", "Rows and columns of the mesh, for modules that do not name one."),
)

PARALLEL = Option(
    "parallel",
    "Shardings for modules without any: auto, or kinds with axes, as data=0,tensor=1.",
)

RELEASE = Option("release", "Release of tt-metal.", DEFAULT_RELEASE, choices=RELEASES)

EMITC_OPTIONS = (
    Option("module-name", "Namespace and file stem; by default the module's name."),
    Option("input-hash", "Origin noted in the files; by default a hash of the module."),
    RELEASE,
)

PASSES = (
    PassEntry(
        name="convert-tosa-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertTosaToTTIR",
        description="Converts TOSA to TTIR; done when a file is read.",
        aliases=("tosa-to-ttir-pipeline",),
    ),
    PassEntry(
        name="convert-linalg-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertLinalgToTTIR",
        description="Converts linalg to TTIR; done when a file is read.",
        aliases=("linalg-to-ttir-pipeline",),
    ),
    PassEntry(
        name="convert-stablehlo-to-ttir",
        group=Group.TTIR,
        implementation="ttcodegen.frontends.canonicalization:ConvertStableHLOToTTIR",
        description="Converts StableHLO to TTIR; done when a file is read.",
        aliases=("stablehlo-to-ttir-pipeline", "legalize-stablehlo-composite-to-ttir"),
    ),
    PassEntry(
        name="ttnn-canonicalize-calls",
        group=Group.TTNN,
        implementation=f"{_CANONICAL}:CanonicalCalls",
        description="Rewrites TTNN ops of any tool to the form of the catalogue.",
    ),
    PassEntry(
        name="ttcore-imply-mesh",
        group=Group.TTCORE,
        implementation=f"{_CANONICAL}:ImplyMesh",
        description="Sets the mesh that collectives imply, for modules that name none.",
    ),
    PassEntry(
        name="ttmetal-complete-programs",
        group=Group.TTMETAL,
        implementation=f"{_CANONICAL}:CompletePrograms",
        description="Completes hand-written device programs: placements and semantics.",
    ),
    PassEntry(
        name="ttir-lift-generic-regions",
        group=Group.TTIR,
        implementation=f"{_CANONICAL}:LiftGenericRegions",
        description="Rewrites regions of ttir.generic on elements or buffers to ops on whole "
        "tensors.",
    ),
    PassEntry(
        name="ttir-load-system-desc",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:LoadSystemDescription",
        description="Sets the system that the module is compiled for.",
        aliases=("tt-load-system-desc",),
        options=(Option("path", "A .ttsys file or the name of an architecture."),),
    ),
    PassEntry(
        name="ttir-implicit-device",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:ImplicitDevice",
        description="Adds the device: all cores and banks of the first chip.",
        aliases=("tt-implicit-device",),
        options=(SYSTEM_OPTIONS[2],),
    ),
    PassEntry(
        name="ttcore-register-device",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.device:RegisterDevice",
        description="Sets the system and the device that the module is compiled for.",
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
        description="Refuses tensors that exceed the device's DRAM, before constants are "
        "evaluated.",
    ),
    PassEntry(
        name="populate-argument-types",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.const_eval:PopulateArgumentTypes",
        description="Sets which arguments are inputs, parameters or constants.",
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
        description="Chooses shardings of arguments over the mesh for modules without any.",
        options=(
            PARALLEL,
            Option("overrides", "Overrides of decisions, as JSON."),
            Option(
                "weights",
                "Data type of the weights of matmuls, for estimates.",
                "none",
                choices=("none", "bfp_bf8", "bfp_bf4"),
            ),
        ),
    ),
    PassEntry(
        name="ttir-partition",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.mesh.partition:TTIRPartition",
        description="Partitions a module with shardings over the devices of its mesh (SPMD).",
    ),
    PassEntry(
        name="ttcore-record-chip-shares",
        group=Group.TTCORE,
        implementation="ttcodegen.transforms.mesh.partition:RecordChipShares",
        description="Records the shardings of arguments and results as attributes.",
    ),
    PassEntry(
        name="ttir-element-type-normalization",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.element_types:TTIRElementTypeNormalizationPass",
        description="Legalizes element types: i64 becomes si32, f64 f32, i1 bf16. Constants are "
        "converted.",
    ),
    PassEntry(
        name="ttir-decompose",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRDecomposePass",
        description="Decomposes composite ops into other TTIR ops.",
        aliases=("ttir-to-ttir-decomposition", "ttir-decompose-composites"),
    ),
    PassEntry(
        name="ttir-empty-attention-rows",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.fusing.rules:TTIREmptyAttentionRowsPass",
        description="Zeroes rows of attention in which a mask hides every key.",
    ),
    PassEntry(
        name="ttir-own-buffers",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.own_buffers:TTIROwnBuffers",
        description="Clones views of tensors that are overwritten.",
    ),
    PassEntry(
        name="ttir-canonicalize",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.canonicalize:TTIRCanonicalizePass",
        description="Simplifies constants, data movement and arithmetic; merges equal ops and "
        "erases dead ones.",
        aliases=("canonicalize",),
    ),
    PassEntry(
        name="ttir-implicit-broadcast-fold",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.movement_passes:TTIRImplicitBroadcastFoldPass",
        description="Folds broadcasts into ops that broadcast implicitly.",
        aliases=("ttir-implicit-broadcast-folding",),
    ),
    PassEntry(
        name="ttir-erase-inverse",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.movement_passes:TTIREraseInversePass",
        description="Moves permutes and reshapes past other ops until they cancel.",
        aliases=("ttir-erase-inverse-ops",),
    ),
    PassEntry(
        name="ttir-fusing",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.ttir.fusing.rules:TTIRFusingPass",
        description="Fuses ops to those of the library: biases, activations, norms, attention.",
    ),
    PassEntry(
        name="convert-ttir-to-ttnn",
        group=Group.TTNN,
        implementation="ttcodegen.conversions.ttir_to_ttnn:ConvertTTIRToTTNN",
        description="Lowers TTIR to calls of the ttnn library.",
    ),
    PassEntry(
        name="ttnn-fit-release",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.call_settings:FitRelease",
        description="Rewrites calls that the release of tt-metal takes only in another form.",
        options=(RELEASE,),
    ),
    PassEntry(
        name="ttnn-set-compute-kernel-config",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.call_settings:SetComputeKernelConfig",
        description="Sets exact compute configs where the library's default loses digits.",
    ),
    PassEntry(
        name="ttnn-layout",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:TTNNLayout",
        description="Assigns data type, page layout and memory of every tensor; before the "
        "conversion to TTNN, marks the module for it.",
        aliases=("ttir-layout",),
    ),
    PassEntry(
        name="ttnn-decode-caches",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DecodeCaches",
        description="Updates KV caches from shards, at positions kept on the device; rewrites "
        "permutes of unit dimensions to reshapes.",
    ),
    PassEntry(
        name="ttnn-decode-heads",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DecodeHeads",
        description="Shards the heads of one token per user side by side.",
    ),
    PassEntry(
        name="ttnn-dense-rows",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:DenseRows",
        description="Computes on rows in a layout without padding; reshapes cancel.",
    ),
    PassEntry(
        name="ttnn-batched-rows",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.batched_rows:BatchedRows",
        description="Computes on batches of matrices where reshapes to their rows and back cost "
        "more than their padding.",
    ),
    PassEntry(
        name="ttnn-divide-wide-products",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.wide_products:DivideWideProducts",
        description="Products of one row of tiles with wide weights are made in pieces, whose "
        "weights can be sharded over the DRAM banks.",
    ),
    PassEntry(
        name="ttnn-replace-calls",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.overrides.replaced_calls:ReplaceCalls",
        description="Replaces calls by those of the same meaning that overrides give.",
        options=(Option("overrides", "Overrides of decisions, as JSON."),),
    ),
    PassEntry(
        name="ttnn-fuse-projections",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.fusing:FuseProjections",
        description="Merges query, key and value projections of one input into one matmul.",
        options=(Option("overrides", "Overrides of decisions, as JSON."),),
    ),
    PassEntry(
        name="ttnn-pooled-means",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.pooled_means:PooledMeans",
        description="Computes means over whole images by average pooling.",
    ),
    PassEntry(
        name="ttnn-row-major-moves",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.row_major_moves:RowMajorMoves",
        description="Concatenates and reshapes rows that do not fill tiles row-major.",
    ),
    PassEntry(
        name="ttnn-fuse-activations",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.fusing:FuseActivations",
        description="Fuses activations into the matmuls and convolutions before them.",
        options=(Option("overrides", "Overrides of decisions, as JSON."),),
    ),
    PassEntry(
        name="ttnn-fuse-residuals",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.fusing:FuseResiduals",
        description="Fuses sums into the row norms that are their only users.",
        options=(Option("overrides", "Overrides of decisions, as JSON."),),
    ),
    PassEntry(
        name="ttnn-weight-dtype-conversion",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.rewrites:WeightTypes",
        description="Converts weights of matmuls to block floats.",
        options=(
            Option(
                "target",
                "Data type of the weights.",
                "none",
                choices=("none", "bfp_bf8", "bfp_bf4"),
            ),
        ),
    ),
    PassEntry(
        name="ttnn-activation-dtype-conversion",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.activation_types:ActivationTypes",
        description="Makes block floats of activations between calls that take them.",
        options=(
            Option("target", "Data type of the activations.", "none", choices=("none", "bfp_bf8")),
            Option("overrides", "Overrides of decisions, as JSON."),
        ),
    ),
    PassEntry(
        name="ttnn-optimize",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.optimize:Optimize",
        description="Chooses math fidelities, program configs and memory configs.",
        options=(
            Option("level", "1: local choices; 2: a search over layouts.", 1, choices=(1, 2)),
            Option("overrides", "Overrides of decisions, as JSON."),
            Option("record", "Record the decisions in attributes of the module.", False),
            Option("refused", "Choices that the library refused, as JSON; [] marks all choices."),
        ),
    ),
    PassEntry(
        name="ttnn-fit-attention",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.optimize:FitAttention",
        description="Configures decode attention whose default buffers do not fit into L1.",
    ),
    PassEntry(
        name="ttnn-sliced-pools",
        group=Group.TTNN,
        implementation="ttcodegen.optimizer.sliced_pools:SlicedPools",
        description="Flattens the results of pools that do not fit into L1, which are images.",
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
        description="Moves loop invariants before their loops.",
    ),
    PassEntry(
        name="const-eval-hoist-transform",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.const_eval:ConstEvalHoist",
        description="Hoists ops that depend only on weights and constants into functions that run "
        "once.",
    ),
    PassEntry(
        name="ttnn-decompose-layouts",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:DecomposeLayouts",
        description="Decomposes layout changes into library calls.",
    ),
    PassEntry(
        name="ttnn-deallocate",
        group=Group.TTNN,
        implementation="ttcodegen.transforms.ttnn.layout:Deallocate",
        description="Deallocates tensors after their last use.",
    ),
    PassEntry(
        name="ttnn-modify-signatures-for-dylib",
        group=Group.EMITC,
        implementation="ttcodegen.conversions.host_functions.interface:ModifySignaturesForDylib",
        description="Adds to each function f a C++ function call_f on vectors of tensors.",
        aliases=("ttnn-tuplify-tensors",),
    ),
    PassEntry(
        name="convert-tt-lang-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.emission.convert_to_emitc:ConvertTTLangToEmitC",
        description="Converts TT-Lang operations called by TTNN functions to C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="convert-ttnn-to-emitc",
        group=Group.EMITC,
        implementation="ttcodegen.conversions.ttnn_to_emitc:ConvertTTNNToEmitC",
        description="Converts TTNN functions to C++ files.",
        options=EMITC_OPTIONS,
    ),
    PassEntry(
        name="ttir-unroll-loops",
        group=Group.TTIR,
        implementation="ttcodegen.transforms.loops:UnrollLoops",
        description="Unrolls loops with a known trip count.",
    ),
    PassEntry(
        name="inline",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:InlinePass",
        description="Inlines called functions.",
        options=(
            Option("cpu-functions", "Inline CPU functions as well.", False),
            Option("generics", "Inline regions of ttir.generic as well.", False),
        ),
    ),
    PassEntry(
        name="remove-dead-values",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.ttnn.layout:RemoveDeadValues",
        description="Erases ops whose results are unused.",
    ),
    PassEntry(
        name="symbol-dce",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:SymbolDCE",
        description="Erases private functions that are never called.",
    ),
    PassEntry(
        name="cse",
        group=Group.GENERAL,
        implementation="ttcodegen.transforms.functions:CommonSubexpressionElimination",
        description="Merges common subexpressions.",
    ),
)
"""Rows in the order of --help within each group."""
