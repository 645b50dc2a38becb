"""Operations that compiled models call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scripts.kernel_check_configuration import read_manifest
from scripts.link_check import ROOT, check, project_objects, read_header_only
from tests.cli.flatbuffers import result_of
from tests.conftest import KernelFaults
from ttcodegen.cli.opt import main as opt
from ttcodegen.cli.ttcodegen import main
from ttcodegen.flatbuffer.reader import read_ttnn_file
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import source_module
from ttcodegen.lang.projects.programs import operations_of
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.ops.tt_lang import calling
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.rt.op_times import expected_calls
from ttcodegen.systems.releases import DEFAULT_RELEASE

PROGRAM = """import ttl

@ttl.operation(grid=(2, 3))
def __scaled(x, s, y):
    column, row = ttl.node(dims=2)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    s_dfb = ttl.make_dataflow_buffer_like(s, shape=(1, 1))
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as x_blk, s_dfb.reserve() as s_blk:
            ttl.copy(x[row, column], x_blk).wait()
            ttl.copy(s[row, 0], s_blk).wait()

    @ttl.compute()
    def compute():
        with x_dfb.wait() as x_blk, s_dfb.wait() as s_blk, y_dfb.reserve() as y_blk:
            y_blk.store(x_blk * ttl.block.broadcast(s_blk, dims=[-1], shape=(1, 1)))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, column]).wait()

if __name__ == "__main__":
    raise SystemExit("a model runs the program as a module")
"""
X, S, Y = "tensor<96x64xf32>", "tensor<96x1xf32>", "tensor<96x64xf32>"


def model(*body: str, kernel: str = "scaled", roles: str = "in,in,out", x: str = X) -> str:
    """A module that calls the operation, once for `CALL`."""
    call = (
        f'"ttir.tt_lang_op"(%x, %s) <{{kernel_id = "{kernel}", version_tag = "1", '
        f'arg_roles = "{roles}"}}> : ({x}, {S}) -> {Y}'
    )
    text = "\n  ".join(body).replace("CALL", call)
    return f"func.func @forward(%x: {x}, %s: {S}, %y: {Y}) -> {Y} {{\n  {text}\n}}\n"


TWICE = model(
    f'%0 = "ttir.neg"(%s) : ({S}) -> {S}',
    f"%out = ttir.empty() : {Y}",
    '%1 = ttir.tt_lang_op(%x, %0, %out) {kernel_id = "made.scaled::v1", version_tag = "1", '
    f'arg_roles = "in,in,out"}} : ({X}, {S}, {Y}) -> ({Y})',
    # The operand for the result is overwritten, whatever it holds.
    '%2 = "ttir.tt_lang_op"(%1, %s, %y) <{kernel_id = "__scaled", version_tag = "1", '
    f'arg_roles = "in,in,out"}}> : ({Y}, {S}, {Y}) -> {Y}',
    f'%3 = "ttir.add"(%2, %y) : ({Y}, {Y}) -> {Y}',
    f"return %3 : {Y}",
)


def test_other_tools_call_operations_too(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "model.mlir", tmp_path / "out"
    path.write_text(TWICE)
    passes = [str(path), "--ttir-to-ttmetal-pipeline"]
    assert opt([*passes, f"--tt-lang={made}"]) == 0
    assert "func.func @scaled_read_kernel" in capsys.readouterr().out
    assert opt(passes) == 1
    assert main([str(path), "-o", str(out), "--target", "ttmetal", "--tt-lang", str(made)]) == 0
    args = {"binary": out / "model.ttm", "--artifact-dir": tmp_path}
    assert result_of("Run", args)[0] == 1
    assert result_of("Run", {**args, "--tt-lang": str(made)})[0] == 0


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The program."""
    path = tmp_path / "made.py"
    path.write_text(PROGRAM)
    return path


def compiled(text: str, folder: Path, *options: str, target: str = "ttmetal") -> int:
    """The exit status of compiling a module."""
    (folder / "model.mlir").write_text(text)
    given = [str(folder / "model.mlir"), "-o", str(folder / "out"), "--target", target]
    return main([*given, "--tt-lang", str(folder / "made.py"), *options])


def test_a_project_holds_the_programs_of_the_model_and_of_the_operation(made: Path) -> None:
    assert compiled(TWICE, made.parent) == 0
    written = (made.parent / "out" / "src" / "model.cpp").read_text()
    written = " ".join(written.split())
    assert "scaled = run_scaled(*constants.programs, inputs.x, last_use(s), device);" in written
    # The other operand is in DRAM.
    assert "scaled = run_scaled_96x64(*constants.programs, scaled, inputs.s, device);" in written
    kernels = {path.name for path in (made.parent / "out" / "kernels").iterdir()}
    assert {f"scaled_{each}.cpp" for each in ("read", "compute", "write")} <= kernels
    reader = (made.parent / "out" / "kernels" / "scaled_read.cpp").read_text()
    assert "// `read` of made.py, line 11." in reader


def test_a_project_of_library_calls_runs_the_operation_among_them(made: Path) -> None:
    twice = TWICE.replace('"__scaled"', '"made.scaled::v1"')
    assert compiled(twice, made.parent, target="ttnn") == 0
    out = made.parent / "out"
    written = (out / "src" / "model.cpp").read_text()
    assert "ttnn::Tensor scaled = run_scaled(inputs.x, last_use(s), device);" in written
    assert "scaled = run_scaled(scaled, inputs.s, device);" in written
    programs = (out / "src" / "programs.cpp").read_text()
    assert programs.count("ttnn::Tensor run_scaled(") == 1
    assert 'reader.kernel_source = kernel_path("scaled_read.cpp");' in programs
    assert "reader.emplace_runtime_args(core," in programs
    assert "return ttnn::generic_op({x, s, y}, program);" in programs
    manifest = json.loads((out / "manifest.json").read_text())
    assert [kernel["name"] for kernel in manifest["kernels"]] == [
        "scaled_read", "scaled_compute", "scaled_write",
    ]  # fmt: skip
    assert [(p["name"], p["launches"]) for p in manifest["programs"]] == [("scaled", 2)]


def test_an_operation_means_what_the_simulator_makes_of_it(made: Path) -> None:
    generator = np.random.default_rng(1)
    shapes = ((96, 64), (96, 1), (96, 64))
    x, s, y = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    with calling(operations_of([str(made)])):
        (found,) = Golden(source_module(Source("model.mlir", TWICE))).run("forward", [x, s, y])
    np.testing.assert_allclose(found, x * -s * s + y, rtol=1e-6)


def test_stablehlo_calls_an_operation(made: Path) -> None:
    call = (
        "%0 = stablehlo.custom_call @tt.tt_lang_op(%x, %s) {mhlo.frontend_attributes = {kernel_id "
        '= "pkg.scaled::v1", version_tag = "1", arg_roles = "in,in,out"}} : '
        f"({X}, {S}) -> {Y}"
    )
    assert compiled(model(call, f"return %0 : {Y}"), made.parent) == 0
    written = (made.parent / "out" / "src" / "model.cpp").read_text()
    assert "run_scaled(*constants.programs, inputs.x, inputs.s, device);" in written


FILLING = """import ttl

@ttl.operation(grid=(2, 3))
def filled(y):
    column, row = ttl.node(dims=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.compute()
    def compute():
        with y_dfb.reserve() as y_blk:
            y_blk.store(ttl.block.fill(1, shape=(1, 1)))

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, column]).wait()
"""
ONCE = ("%0 = CALL", f"return %0 : {Y}")
PARTLY = PROGRAM.replace("ttl.copy(y_blk, y[row, column])", "ttl.copy(y_blk, y[0, 0])")
SWAPPED = PROGRAM.replace("def __scaled(x, s, y)", "def __scaled(x, y, s)")
UNREAD = PROGRAM.replace("s[row, 0]", "x[row, 0]")
IN_PLACE = PROGRAM.replace(
    "            ttl.copy(y_blk, y[row, column]).wait()",
    "            ttl.copy(y_blk, y[row, column]).wait(); ttl.copy(y_blk, x[row, column]).wait()",
)
WIDE = PROGRAM.replace("grid=(2, 3)", "grid=(9, 3)")
BODY_ENDS = PROGRAM.replace("    x_dfb =", "    import sys; sys.exit(0)\n    x_dfb =", 1)
BODY_LEAVES = PROGRAM.replace("    x_dfb =", "    import os; os._exit(0)\n    x_dfb =", 1)
BODY_RAISES = PROGRAM.replace("    x_dfb =", "    raise KeyError('no')\n    x_dfb =", 1)
ENDING = PROGRAM.replace('"__main__"', '"made"')
OWN = "import ttnn\nown = ttnn.zeros((96, 32), ttnn.float32)\n" + PROGRAM.replace(
    "s[row, 0]", "own[row, 0]"
)


@pytest.mark.parametrize(
    ("program", "text", "message"),
    [
        (PROGRAM, model(*ONCE, kernel="other"), "this 'ttir.tt_lang_op' is not supported: no "
         "program has the operation 'other'; there are: made.scaled"),
        (PROGRAM, model(*ONCE, roles="in,out,in"), "arg_roles is a list of 'in', then of one "
         "'out' or more, not \"in,out,in\""),
        (PROGRAM, model(*ONCE, roles="in,in,in,out"), "arg_roles is of 4 tensors, 3 of which are "
         "read; there are 2 operands"),
        (PROGRAM, model(*ONCE, roles="in,out"), "the result has the type of the operand for it"),
        (PROGRAM, model(*ONCE, roles="in,out,out"), "arg_roles says 'out' 2 times, but there are 1 "
         "results"),
        (SWAPPED, model(*ONCE), "the operation 'scaled' writes tensor 1, which arg_roles says is "
         "'in'"),
        (UNREAD, model(*ONCE), "the operation 'scaled' does not read tensor 1, which arg_roles "
         "says is 'in'"),
        (IN_PLACE, model(*ONCE), "the operation 'scaled' writes tensor 0, which arg_roles says is "
         "'in'"),
        (WIDE, model(*ONCE), "the operation 'scaled' has a grid of 9x3 nodes, but there are 8x8 "
         "cores"),
        (OWN, model(*ONCE), "the operation 'scaled' uses a tensor that is none of its arguments"),
        (PARTLY, TWICE, "the operation '__scaled' does not write all elements of tensor 2"),
        (ENDING, model(*ONCE), "made.py ends itself (SystemExit: a model runs the program as a "
         "module) when it is imported"),
        (BODY_ENDS, model(*ONCE), "the program ends in an operation, by sys.exit or exit"),
        (BODY_LEAVES, model(*ONCE), "ends the process in an operation, by os._exit"),
        (BODY_RAISES, model(*ONCE), "made.py:6:5: error: the program raised KeyError: 'no'"),
        ("import os; os._exit(0)\n", model(*ONCE), "the program ends the process, by os._exit"),
        ("x = 1 // 0\n", model(*ONCE), "made.py:1:5: error: the program raised "
         "ZeroDivisionError: integer division or modulo by zero\nx = 1 // 0\n    ^"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(
    program: str, text: str, message: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.write_text(program)
    assert compiled(text, made.parent) == 1
    assert message in capsys.readouterr().err


def test_a_module_calls_operations_of_programs_that_are_given(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = made.parent / "model.mlir"
    text.write_text(model(*ONCE))
    assert main([str(text), "-o", str(made.parent / "out")]) == 1
    assert "no program is given that has the operation 'scaled'" in capsys.readouterr().err


def test_programs_of_one_name_are_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = made.parent / "other" / "made.py"
    other.parent.mkdir()
    other.write_text(PROGRAM)
    assert compiled(model(*ONCE), made.parent, "--tt-lang", str(other)) == 1
    assert "two programs are called 'made'" in capsys.readouterr().err


def test_a_program_that_the_model_does_not_call_is_reported(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = made.parent / "other.py"
    other.write_text("import ttl\n")
    assert compiled(model(*ONCE), made.parent, "--tt-lang", str(other)) == 0
    reported = [line for line in capsys.readouterr().err.splitlines() if "calls no" in line]
    assert reported == [f"warning: the model calls no operation of {other}, which has none"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ttmetal", "ttnn"])
def test_the_emulated_device_runs_a_model_with_an_operation(
    target: str, made: Path, cpu_backend: CPUBackend
) -> None:
    assert compiled(TWICE, made.parent, "--check", target=target) == 0


CALLED = Path(__file__).parent / "programs" / "called"


def called(name: str, out: Path, *options: str) -> int:
    """The exit status of compiling a module that calls operations of `operations.py`."""
    given = [str(CALLED / f"{name}.mlir"), "-o", str(out), *options]
    return main([*given, "--tt-lang", str(CALLED / "operations.py")])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("model", ["--optimize", level]) for level in "02"),
        ("model", ["--target", "ttmetal"]),
        ("model", ["--target", "ttmetal", "--trace"]),
        ("model", ["--arch", "blackhole"]),
        ("model", ["--trace"]),
        ("mesh", []),
    ],
)
def test_operations_among_calls_of_the_library(
    name: str, options: list[str], tmp_path: Path, cpu_backend: CPUBackend
) -> None:
    assert called(name, tmp_path, *options, "--check") == 0


@pytest.mark.slow
def test_a_project_with_an_operation_is_one_for_the_release(
    tmp_path: Path,
    cpu_backend: CPUBackend,
    kernel_faults: KernelFaults,
    ttnn_libraries: Path,
) -> None:
    assert called("model", tmp_path, "--build") == 0
    kernels = read_manifest(tmp_path / "manifest.json")
    assert len(kernels) == 6
    assert kernel_faults(kernels) == []
    objects = project_objects(tmp_path, ROOT / "build" / "link_check", DEFAULT_RELEASE)
    assert any(path.name.startswith("programs-") for path in objects)
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    assert check(objects, [], ttnn_libraries, header_only) == []


def test_the_time_of_a_generic_call_is_that_of_the_operation(tmp_path: Path) -> None:
    assert called("model", tmp_path) == 0
    calls = expected_calls(read_ttnn_file(tmp_path / "model.ttnn"), ["rotations"])
    assert [each.name for each in calls] == ["generic_op", "abs", "generic_op"]


def test_an_operation_needs_two_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, model = tmp_path / "made.py", tmp_path / "model.mlir"
    program.write_text(FILLING)
    model.write_text(
        f'func.func @forward() -> {Y} {{\n  %0 = "ttir.tt_lang_op"() <{{kernel_id = "filled", '
        f'version_tag = "1", arg_roles = "out"}}> : () -> {Y}\n  return %0 : {Y}\n}}\n'
    )
    given = [str(model), "-o", str(tmp_path / "out"), "--tt-lang", str(program)]
    assert main(given) == 1
    message = "the operation 'filled' has no tensor but its result"
    assert message in capsys.readouterr().err
