"""Each option of `ttcodegen-opt`, its passes and its pipelines has an effect, or is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_options_act import TTIR, outcome
from ttcodegen.cli import opt
from ttcodegen.opt.command_line import OPTIONS, DriverOption
from ttcodegen.transforms.registry import Option, PassEntry, PipelineEntry, entries

CONV = """func.func @forward(%x: tensor<1x16x16x32xbf16>,
    %w: tensor<32x32x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %s: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %y: tensor<64x64xbf16>)
    -> (tensor<1x16x16x32xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<1x64xbf16>) {
  %0 = "ttir.conv2d"(%x, %w) <{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32,
      groups = 1 : i32}> : (tensor<1x16x16x32xbf16>, tensor<32x32x3x3xbf16>)
      -> tensor<1x16x16x32xbf16> loc("conv")
  %1 = "ttir.relu"(%0) : (tensor<1x16x16x32xbf16>) -> tensor<1x16x16x32xbf16> loc("active")
  %2 = "ttir.exp"(%s) : (tensor<64x64xbf16>) -> tensor<64x64xbf16> loc("once")
  %3 = "ttir.matmul"(%y, %2) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      loc("scores")
  %4 = "ttir.sigmoid"(%3) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %5 = "ttir.multiply"(%3, %4) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %6 = "ttir.permute"(%5) <{permutation = array<i64: 1, 0>}>
      : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %7 = "ttir.exp"(%6) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %8 = "ttir.permute"(%7) <{permutation = array<i64: 1, 0>}>
      : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %9 = "ttir.sum"(%y) <{dim_arg = [0 : i32], keep_dim = true}>
      : (tensor<64x64xbf16>) -> tensor<1x64xbf16>
  %10 = "ttir.broadcast"(%9) <{broadcast_dimensions = array<i64: 64, 1>}>
      : (tensor<1x64xbf16>) -> tensor<64x64xbf16>
  %11 = "ttir.add"(%8, %10) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %12 = "ttir.tanh"(%9) : (tensor<1x64xbf16>) -> tensor<1x64xbf16>
  return %1, %11, %7, %12 : tensor<1x16x16x32xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>,
      tensor<1x64xbf16>
}
func.func private @unused(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  return %x : tensor<4xbf16>
}
"""
"""A module that shows what passes do: kinds of arguments, weights that are prepared once,
activations, moves that cancel, broadcasts and a function that nothing calls."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(TTIR)
    (tmp_path / "conv.mlir").write_text(CONV)
    return tmp_path


PIPELINE = "--ttir-to-ttnn-common-pipeline"
VALUES = {
    "o": ["-o", "written.mlir"],
    "pass-pipeline": ["--pass-pipeline=builtin.module(convert-ttnn-to-emitc)"],
    "print-spelling": ["--print-spelling=2024"],
    "mlir-elide-elementsattrs-if-larger": ["--mlir-elide-elementsattrs-if-larger=1"],
    "mlir-print-ir-before": ["--mlir-print-ir-before=ttnn-layout"],
    "mlir-print-ir-after": ["--mlir-print-ir-after=ttnn-layout"],
    "mlir-pass-pipeline-crash-reproducer": ["--mlir-pass-pipeline-crash-reproducer=crash.mlir"],
    "tt-lang": ["--tt-lang=missing.py"],
    "arch": ["--arch=blackhole"],
    "system-desc": ["--system-desc=p150"],
    "machine": ["--machine=p150"],
    "log-level": ["--log-level=ERROR"],
    "verify-each": ["--verify-each=false"],
}
"""Arguments for options of the driver that are no flags, or flags that are set by default."""
FAILING = ("mlir-print-ir-after-failure", "mlir-pass-pipeline-crash-reproducer")
"""Options that show what they do where a pass fails."""
BESIDE = {
    "split-input-file": TTIR + "// -----\n" + TTIR,
    "verify-diagnostics": "// expected-error@+1 {{nothing}}\n" + TTIR,
    "allow-unregistered-dialect": TTIR.replace(
        "  return", '  "other.op"(%0) : (tensor<64x64xbf16>) -> ()\n  return'
    ),
    "mlir-elide-elementsattrs-if-larger": TTIR.replace(
        "  return",
        '  %c = "ttir.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> '
        "tensor<2xf32>\n  return",
    ),
}
"""Modules on which options show what they do."""
UNSEEN = {"verify-each", "log-level", "q", "v", "mlir-disable-threading"}
"""Options that change nothing of a run in which all goes well, and say so in their help."""


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_options_of_the_driver_act_or_are_refused(option: DriverOption, folder: Path) -> None:
    if option.name in UNSEEN:
        pytest.skip("says nothing where all goes well")
    (folder / "m.mlir").write_text(BESIDE.get(option.name, TTIR))
    passes = ["--ttnn-optimize"] if option.name in FAILING else [PIPELINE]
    if option.name == "mlir-elide-elementsattrs-if-larger":
        passes = []
    plain = outcome(opt.main, [*passes, "m.mlir"])
    given = outcome(opt.main, [*passes, *VALUES.get(option.name, [f"--{option.name}"]), "m.mlir"])
    assert given != plain


def test_levels_of_messages_are_kept(folder: Path) -> None:
    (folder / "m.mlir").write_text(TTIR.replace("{\n", "{ // \x00\n", 1))
    for level in ("-q", "-v", "--log-level=ERROR"):
        assert outcome(opt.main, [level, "m.mlir"])[0] == outcome(opt.main, ["m.mlir"])[0]


VALUES_OF_PASSES: dict[str, str] = {
    "path": "blackhole",
    "mesh-shape": "1,2",
    "system-desc-path": "blackhole",
    "mock-system-desc-arch": "blackhole",
    "argument-types": "forward=input,input,input,input",
    "parallel": "data=0",
    "overrides": '\'{"version": 1, "functions": {"forward": {"scores": {"memory": "l1"}}}}\'',
    "override-output-layout": "scores=l1",
    "override-conv2d-config": "conv=act_block_h_override#32",
    "insert-memreconfig": "scores=0",
    "module-name": "other",
    "input-hash": "0123",
    "release": "0.70.1",
    "experimental-weight-dtype": "bfp_bf8",
    "weight-dtype": "bfp_bf8",
    "experimental-activation-dtype": "bfp_bf8",
    "target": "bfp_bf8",
    "target-dtype": "bfp_bf8",
    "weights": "bfp_bf4",
    "level": "2",
    "optimization-level": "2",
    "columns": "1",
    "rows": "1",
}
"""Values of options that are no flags."""
APART = '\'{"version": 1, "functions": {"%s": {"%s": {"fuse": false}}}}\''
LIT = Path(__file__).parents[1] / "lit" / "passes"
SHARDED = """module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  func.func @layer(%x: tensor<32x2048xbf16>, %up: tensor<2048x2048xbf16>
      {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x2048xbf16> {
    %0 = "ttir.matmul"(%x, %up) : (tensor<32x2048xbf16>, tensor<2048x2048xbf16>)
        -> tensor<32x2048xbf16>
    return %0 : tensor<32x2048xbf16>
  }
}
"""
SCALAR = """func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c = "ttir.constant"() <{value = dense<2.5> : tensor<32x32xf32>}> : () -> tensor<32x32xf32>
  %0 = "ttir.add"(%x, %c) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""
CHAIN = """func.func @forward(%x: tensor<512x1024xbf16>, %up: tensor<1024x4096xbf16>,
    %down: tensor<4096x1024xbf16>) -> tensor<512x1024xbf16> {
  %0 = "ttir.matmul"(%x, %up)
      : (tensor<512x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<512x4096xbf16>
  %1 = "ttir.exp"(%0) : (tensor<512x4096xbf16>) -> tensor<512x4096xbf16>
  %2 = "ttir.matmul"(%1, %down)
      : (tensor<512x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<512x1024xbf16>
  %3 = "ttir.softmax"(%2) <{dimension = 1 : si32}>
      : (tensor<512x1024xbf16>) -> tensor<512x1024xbf16>
  return %3 : tensor<512x1024xbf16>
}
"""
PLACED = ("--convert-ttir-to-ttnn", "--ttnn-layout")
TT_LANG = ["--tt-lang", str(LIT.parents[1] / "lang/programs/called/operations.py")]
LOWERED = "--ttir-to-ttnn-common-pipeline"


@dataclass(frozen=True)
class Case:
    """A module on which an option shows what it does."""

    module: str
    """Its text, or the pass in whose test it is."""
    before: tuple[str, ...] = ()
    """The passes before it."""
    beside: str = ""
    """Options that it needs."""
    value: str = ""
    refusal: str = ""
    """Message, if the value is refused."""

    @property
    def text(self) -> str:
        return self.module if "\n" in self.module else (LIT / f"{self.module}.mlir").read_text()


CASES = {
    ("ttir-choose-shardings", "overrides"): Case(
        SHARDED,
        value='\'{"version": 1, "level": 0, "functions": {}, "shardings": '
        '{"layer": {"up": [[], [1]]}}}\'',
    ),
    ("ttir-choose-shardings", "weights"): Case(SHARDED, beside="parallel=auto"),
    ("ttir-choose-shardings", "parallel"): Case(SHARDED, value="tensor=1"),
    ("", "parallel"): Case(SHARDED, value="tensor=1"),
    ("ttnn-replace-calls", "overrides"): Case(
        "ttnn-fuse-activations",
        ("--convert-ttir-to-ttnn",),
        value='\'{"version": 1, "functions": {"shared": {"silu": {"calls": '
        '[{"name": "opened", "op": "sigmoid", "operands": ["silu:0"]}, '
        '{"op": "multiply", "operands": ["silu:0", "opened"]}]}}}}\'',
    ),
    ("ttnn-fuse-projections", "overrides"): Case(
        "ttnn-fuse-projections", ("--convert-ttir-to-ttnn",), value=APART % ("attention", "matmul")
    ),
    ("ttnn-fuse-activations", "overrides"): Case(
        "ttnn-fuse-activations", ("--convert-ttir-to-ttnn",), value=APART % ("product", "matmul")
    ),
    ("ttnn-fuse-residuals", "overrides"): Case(
        "ttnn-fuse-residuals", ("--convert-ttir-to-ttnn",), value=APART % ("after", "add")
    ),
    ("ttnn-optimize", "overrides"): Case(TTIR, PLACED),
    ("ttnn-optimize", "level"): Case(CHAIN, PLACED),
    ("ttnn-optimize", "refused"): Case(TTIR, PLACED, value="[]"),
    ("ttnn-weight-dtype-conversion", "target"): Case(TTIR, PLACED),
    ("ttnn-activation-dtype-conversion", ""): Case(
        "ttnn-activation-dtype-conversion", PLACED, "target=none"
    ),
    ("ttnn-activation-dtype-conversion", "overrides"): Case(
        "ttnn-activation-dtype-conversion",
        PLACED,
        "target=bfp_bf8",
        '\'{"version": 1, "functions": {"layer": {"add": {"data_type": "bf16"}}}}\'',
    ),
    ("", "experimental-activation-dtype"): Case("ttnn-activation-dtype-conversion"),
    ("ttnn-to-ttnn-pipeline", "override-conv2d-config"): Case(
        CONV, value="no_such=act_block_h_override#32", refusal="nothing is called 'no_such'"
    ),
    ("ttnn-fit-release", "release"): Case("ttnn-fit-release", ("--convert-ttir-to-ttnn",)),
    ("ttir-to-ttnn-common-pipeline", "release"): Case("ttnn-fit-release"),
    ("ttnn-to-ttnn-pipeline", "release"): Case("ttnn-fit-release"),
    ("convert-tt-lang-to-emitc", ""): Case(
        "convert-tt-lang-to-emitc", (*TT_LANG, LOWERED), "module-name=calls"
    ),
    ("inline", "generics"): Case("ttir-outline-generics", ("--ttir-outline-generics",)),
    ("inline", "cpu-functions"): Case(CONV, ("--ttir-to-ttmetal-fe-pipeline=enable-cpu-hoist",)),
    ("", "enable-remove-dead-values"): Case(SCALAR, beside="enable-const-eval=false"),
    ("", "record-decisions"): Case(TTIR, beside="optimization-level=1"),
    ("", "refused-choices"): Case(TTIR, beside="optimization-level=1", value="[]"),
    # Attributes of calls do not reach the C++.
    ("ttir-to-emitc-pipeline", "refused-choices"): Case(
        TTIR,
        beside="optimization-level=1",
        value="[[]]",
        refusal="[] is no refused choice",
    ),
    ("", "memory-layout-analysis-enabled"): Case(CHAIN, beside="enable-optimizer=true"),
    ("", "enable-implicit-broadcast-folding-pass"): Case(CONV, beside="enable-fusing-pass=false"),
    ("", "override-conv2d-config"): Case(CONV, beside="optimization-level=1"),
}
"""By pass and option; for all passes, or for all options, where one of them is empty."""
LOWERINGS = {"ttnn": (LOWERED,), "ttmetal": ("--ttir-to-ttmetal-pipeline",)}


def case_of(entry: PassEntry | PipelineEntry, option: Option) -> Case:
    """The case of an option; without one of its own, a module that its entry takes."""
    for key in ((entry.name, option.name), (entry.name, ""), ("", option.name)):
        if key in CASES:
            return CASES[key]
    if "target-dylib" == option.name or entry.name.startswith(("convert-ttnn", "ttnn-common")):
        before = LOWERINGS["ttnn"] if entry.name != "ttir-to-emitc-pipeline" else ()
        return Case(CONV, before)
    if entry.name in ("ttnn-optimize", "ttnn-weight-dtype-conversion"):
        return Case(CONV, LOWERINGS["ttnn"])
    if entry.name.startswith(("convert-ttmetal", "convert-ttkernel")):
        return Case(CONV, LOWERINGS["ttmetal"])
    return Case(TTIR if entry.name == "ttir-to-ttir-generic" else CONV)


def given_options() -> list[tuple[PassEntry | PipelineEntry, Option]]:
    return [(e, o) for e in entries() for o in e.options if o.refusal is None]


def refused_options() -> list[tuple[PassEntry | PipelineEntry, Option]]:
    return [(e, o) for e in entries() for o in e.options if o.refusal is not None]


def _id(value: Any) -> str:
    return str(value.name)


@pytest.mark.parametrize(("entry", "option"), given_options(), ids=_id)
def test_options_of_passes_act_or_are_refused(
    entry: PassEntry | PipelineEntry, option: Option, folder: Path
) -> None:
    case = case_of(entry, option)
    (folder / "m.mlir").write_text(case.text)
    flag = str(not option.default).lower()
    value = case.value or VALUES_OF_PASSES.get(option.name, flag)
    before = [*case.before, "--mlir-pass-pipeline-crash-reproducer="]
    plain = outcome(opt.main, [*before, f"--{entry.name}={case.beside}", "m.mlir"])
    assert plain[0] == 0, plain[2]
    given = f"--{entry.name}={case.beside} {option.name}={value}"
    status, files, printed = outcome(opt.main, [*before, given, "m.mlir"])
    assert case.refusal in printed
    assert (status == 0) == (not case.refusal), printed
    assert (files, printed) != plain[1:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("enable-implicit-broadcast-folding-pass=false", "enable-fusing-pass=false"),
        ("memory-layout-analysis-enabled", "needs the optimizer"),
        ("record-decisions", "needs level 1 or 2"),
        ("refused-choices=[]", "needs level 1 or 2"),
        ("experimental-bfp8-weights experimental-weight-dtype=bfp_bf4", "cannot be both"),
        ("mesh-shape=1,2 parallel=", ""),
    ],
)
def test_contradictions_are_refused(options: str, message: str, folder: Path) -> None:
    status, files, printed = outcome(opt.main, [f"{PIPELINE}={options}", "m.mlir"])
    assert message in printed
    assert (status, files) == (2, {}) or not message


def test_pipelines_of_calls_have_no_options_of_ttir(folder: Path) -> None:
    for name in ("enable-fusing-pass", "enable-remove-dead-values", "parallel"):
        status, _, printed = outcome(opt.main, [f"--ttnn-to-ttnn-pipeline={name}=false", "m.mlir"])
        assert status == 2
        assert f"has no option '{name}'" in printed


def test_refused_options_are_refused(folder: Path) -> None:
    for entry, option in refused_options():
        other = not option.default if isinstance(option.default, bool) else "7"
        value = str(other).lower()
        status, files, printed = outcome(opt.main, [f"--{entry.name}={option.name}={value}"])
        assert (status, files) == (2, {}), (entry.name, option.name)
        assert option.refusal is not None
        assert option.refusal in printed
