"""The promises of tt-mlir's book that hold under another name, differ or were missing once: each
works, as a test or a command here shows, or has a row in docs/from-tt-mlir.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ttcodegen.cli.opt import main as opt_main
from ttcodegen.cli.rt import main as rt_main
from ttcodegen.cli.ttcodegen import main

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "from-tt-mlir.md"

ROWS = """
env setup: `cmake -B env/build env; source env/activate`
build of the compiler: `cmake --build build`
switches of the runtime: `-DTTMLIR_ENABLE_RUNTIME=ON`
ccache: ccache as compiler launcher
ARCH_NAME: `ARCH_NAME`
check target: `check-ttmlir`
clang-tidy target: `clang-tidy` target
docs target: `mdbook`
doxygen target: doxygen
Docker images: Docker images for CI
macOS notes: macOS
build errors chapter: the chapter on build errors
lit --show-tests: `llvm-lit -sv DIR`, `--show-tests`
lit of a single test: `ttcodegen-lit -sv DIR`
lit of a sub-suite: it needs no LLVM
lit -s -v: `llvm-lit -sv DIR`
lit outside of a checkout: `ttcodegen-lit
RUN listing of 2025: `--print-spelling=2025`
RUN listing of TOSA: `--print-spelling=2024` or `2025` prints it
REQUIRES of architectures: `REQUIRES: n150, perf, push`
REQUIRES of families: features follow from the system
artifacts of tests: files stay below `build`
CI flow: `.ci/run`
CI tags: CI tags, runners with cards
FileCheck on PATH: `FileCheck`
ttmlir-opt: `ttmlir-opt`, `ttmlir-translate`, `ttrt`
ttmlir-translate: `ttcodegen-translate`
query of the machine to compile for: `ttcodegen-rt query --machine n300 --output n300.ttsys`
perf --loops: times of one run, the mean of N
profile_log_device.csv: `profile_log_device.csv` of every file
tracy_ops_times.csv: `tracy_ops_times.csv`
tracy_ops_data.csv: `ops_perf_results.csv`
tracy_profile_log_host.tracy: `tracy_profile_log_host.tracy`
ttrt-artifacts: `ttrt-artifacts` below
wheel of ttrt: the wheel `ttrt`
import of the API: `from ttrt.common.api import API`
Logger: `ttcodegen.rt.Logger`
Artifacts: `ttcodegen.rt.Artifacts`
DebugHooks: `DebugHooks.get(callback)`
get_op_debug_str: `get_op_debug_str`
get_op_output_tensor: `get_op_output_tensor`
get_debug_info_golden: `binary.get_debug_info_golden(loc)`
goldenMap: `goldenMap`
hooks on shared objects: hooks on shared objects
log_file: `log_file` and `perf_trace` as texts
perf_trace: `perf_trace` as texts
ttir_to_ttnn_options: `system-desc-path` in `ttir_to_ttnn_options`
impossible overrides: an override that no op can have
Opt. Policy: Opt. Policy
buttons in the graph: Upload, Play and Comment in the graph
legal options of nodes: legal options attached to nodes
notebooks: the page in a notebook
extension of Model Explorer: `--extensions=ttcodegen.explorer`
-x: `-x`, `--no-model-execution`
pipe to ttnn-standalone: ttnn-standalone.cpp; ./run
one emitted file: of one emitted `.cpp`
.ttb: `.ttb`
nine places: adding an op in nine places
schema of each op: a flatbuffer schema for each op
ttnn-precompiled.hpp: `ttnn-precompiled.hpp`
code of conduct: code of conduct
template of specifications: template of specifications
dialect reference: the dialect reference with a description
terms of TTNN layouts: `stride`, `shard_shape`, `physical_shard_shape`
Python module of the dialect: `from ttmlir.dialects import tt`
!tt.tile: `!tt.tile<32 x 32, ...>`
ttir.pipeline: `ttir.pipeline`
tgg: system `tgg`
grayskull: Grayskull
listing of ttir.generic: `ttir.kernel` in regions of `ttir.generic`
hooks of Python models: `ttnn.model_preprocessing`, `register_pre_operation_hook`
custom operators: custom operators
remainder: `ttir.remainder` of negative numbers
min of all: reductions over all dimensions
prod of all: `tensor<1xT>` in examples
reduce_and of all: `tensor<1x1xT>` with `keep_dim`
ttnn.scatter: `ttnn.scatter` and other calls
ttnn.repeat: without attributes
ttnn.prod: what is missing is named
ttnn.conv2d: calls of today have a source
ttnn.max_pool2d: window attributes
ttnn.mesh_shard: `ttnn.mesh_shard` in hand-written TTNN
ttkernel.mul_tiles_init_f: `mul_tiles_init_f`
ttkernel.max_tile_init: `max_tile_init`
ttkernel.max_tile: `max_tile`
ttkernel.add: `ttkernel.add`
ttkernel.sub: `sub`
ttkernel.mul: `mul`
ttkernel.matmul: `matmul`
ttkernel.max: `max`
ttkernel.pack: `pack`
ttkernel.pack_set_data_type: `pack_set_data_type`
ttkernel.unpack_set_data_type: `unpack_set_data_type`
ttkernel.unpack_ab: `unpack_ab`
ttkernel.unpack_a: `unpack_a`
ttkernel.noc_semaphore_inc: `ttkernel.noc_semaphore_inc` with the NoC as an `i32`
ttkernel.noc_semaphore_set_multicast: `multicast_path_reserve` of semaphore multicasts
ttkernel.noc_semaphore_set_multicast_loopback_src: the path is always reserved
ttkernel.noc_transactions_table: `noc_transactions_table`
ttkernel.builtin: `builtin`
ttmetal.create_buffer: `ttmetal.create_buffer`
ttmetal.deallocate_buffer: `deallocate_buffer`
ttmetal.enqueue_write_buffer: `enqueue_write_buffer`
ttmetal.enqueue_read_buffer: `enqueue_read_buffer`
ttmetal.enqueue_program: `enqueue_program` on ranked tensors
"""
"""Promises and what the row about them says."""

FILES = """
TT_METAL_HOME: ttcodegen/templates/README.md.jinja: `TT_METAL_HOME`
pre-commit: CONTRIBUTING.md: pre-commit install
version check: docs/rt.md: ## Versions
names of passes: tests/compat/test_refusals.py: def test_
reasons of refusals: tests/compat/test_refusals.py: def test_
TTNN to flatbuffers: tests/compat/test_ttnn_modules.py: def test_
TTNN to C++: tests/compat/test_ttnn_modules.py: def test_
API without state: docs/rt.md: API.
perf on the graph: docs/explorer.md: `node_data`
.ttnn and .ttm in the explorer: docs/explorer.md: a `.ttnn` or `.ttm` file
build with tt-metal: ttcodegen/templates/README.md.jinja: cmake --preset tt-metal
edits by hand: docs/generated-project.md: --keep-edits=fail
the folder of the build: ttcodegen/templates/README.md.jinja: build/{{ name }}_main
deallocation and const-eval: docs/generated-project.md: ttnn::deallocate
unit tests of an op: docs/adding-an-op.md: tests/
tests on silicon: docs/rt.md: ## validate
tests of EmitC: tests/random_programs/__init__.py:
outputs left in L1: docs/stitching.md: without knowing of each other
tests of stitching: tests/stitching/__init__.py:
sweeps of layouts: tests/layout/__init__.py:
maps of memories: docs/layouts.md: .l1_map
ttkernel.get_semaphore: ttcodegen/dialects/ttkernel/dataflow_table.py: "get_semaphore"
ttkernel.store_to_l1: ttcodegen/dialects/ttkernel/dataflow_table.py: "store_to_l1"
"""
"""Promises that hold, with a file that shows it and what it has."""

MATMUL = """func.func @f(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}"""
INDEX = """func.func @f(%a: tensor<32x32xf32>) -> tensor<SIZEx32xTYPE> {
  %0 = "ttir.index"(%a) <{dim = 0 : i32, begin = 0 : i32, end = END : i32, step = 2 : i32}>
    : (tensor<32x32xf32>) -> tensor<SIZEx32xTYPE>
  return %0 : tensor<SIZEx32xTYPE>
}"""
GATHER = """func.func @f(%a: tensor<1x1x32x32xbf16>) -> tensor<1x1x32x128xbf16> {
  %0 = ttir.empty() : tensor<1x1x32x128xbf16>
  %1 = "ttir.all_gather"(%a, %0) <{all_gather_dim = 3 : si32, cluster_axis = 1 : ui32}>
    : (tensor<1x1x32x32xbf16>, tensor<1x1x32x128xbf16>) -> tensor<1x1x32x128xbf16>
  return %1 : tensor<1x1x32x128xbf16>
}"""
SHARD = """func.func @f(%a: tensor<8192x784xf32>) -> tensor<4096x196xf32> {
  %0 = ttir.empty() : tensor<4096x196xf32>
  %1 = "ttir.mesh_shard"(%a, %0) <{shard_dims = array<i64: 0, 1>,
      shard_direction = #ttcore.shard_direction<full_to_shard>, shard_shape = array<i64: 2, 4>,
      shard_type = #ttcore.shard_type<devices>}>
    : (tensor<8192x784xf32>, tensor<4096x196xf32>) -> tensor<4096x196xf32>
  return %1 : tensor<4096x196xf32>
}"""
BACKEND = "--ttir-to-ttnn-backend-pipeline"

PASSED: dict[str, tuple[str, list[str], str]] = {
    "all_gather": (GATHER, [BACKEND], "meshShape = 1x4"),
    "mesh_shard": (SHARD, [BACKEND], "meshShape = 2x4"),
    "pipeline of StableHLO": (MATMUL, ["--stablehlo-to-ttir-pipeline"], "ttir.matmul"),
}
"""Promises of the optimizer driver, and what it prints."""
REFUSED: dict[str, tuple[str, list[str], str]] = {
    "overrides": (MATMUL, [f"{BACKEND}=override-output-layout=nosuch=8x8:zork"], "'zork'"),
    "levels": (MATMUL, [f"{BACKEND}=optimization-level=7"], "one of 0, 1, 2, found '7'"),
}
WRONG = {
    "end of an index": (INDEX.replace("END", "40"), ("20", "f32"), "0:40:2 is out of range"),
    "type of an index": (INDEX.replace("END", "32"), ("16", "bf16"), "expected a result of f32"),
}
"""Modules that the compiler refuses, as the book says."""


def _table(text: str) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in text.strip().splitlines())
    return {name: rest for name, rest in pairs}


ALL = [*_table(ROWS), *_table(FILES), *PASSED, *REFUSED, *WRONG, "-q of ttrt"]


def test_each_promise_is_in_one_place() -> None:
    assert len(ALL) == len(set(ALL)) == 136


@pytest.mark.parametrize("promise", _table(ROWS))
def test_what_differs_has_a_row(promise: str) -> None:
    rows = [line for line in TABLE.read_text("utf-8").splitlines() if line.startswith("| ")]
    found = [row for row in rows if _table(ROWS)[promise] in row]
    assert found, promise
    # Who comes from there finds what to do, or that nothing is to be done.
    assert all(cell.strip() for row in found for cell in re.split(r" \| ", row.strip("| "))[:2])


@pytest.mark.parametrize("promise", _table(FILES))
def test_what_holds_is_shown_by_a_file(promise: str) -> None:
    path, _, text = _table(FILES)[promise].partition(":")
    assert text.strip() in (ROOT / path).read_text("utf-8")


@pytest.mark.parametrize("promise", [*PASSED, *REFUSED])
def test_promises_of_the_driver(
    promise: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, arguments, expected = (PASSED | REFUSED)[promise]
    path = tmp_path / "m.mlir"
    path.write_text(text)
    status = opt_main([*arguments, str(path)])
    printed = capsys.readouterr()
    assert (status == 0) == (promise in PASSED)
    assert expected in (printed.out if promise in PASSED else printed.err)


@pytest.mark.parametrize("promise", WRONG)
def test_promises_of_the_verifier(
    promise: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, (size, element), expected = WRONG[promise]
    path = tmp_path / "m.mlir"
    path.write_text(text.replace("SIZE", size).replace("TYPE", element))
    assert main([str(path), "-o", str(tmp_path / "out")]) == 1
    assert expected in capsys.readouterr().err


def test_tools_are_quiet_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_main(["query", "-q"]) == 0
    assert capsys.readouterr().err == ""
