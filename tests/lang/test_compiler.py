"""Operations as projects: what their kernels say, and what they compute on the emulated device."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.kernel_check_configuration import read_manifest
from tests.cli.flatbuffers import result_of
from tests.conftest import KernelFaults
from tests.lang.compiling import PROGRAMS, checked, kernels
from tests.lang.running import operation
from tests.lang.test_functions import KERNELS, MEANINGS
from ttcodegen.cli.lang import main
from ttcodegen.cli.opt import main as opt
from ttcodegen.cli.translate import main as translate
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.projects import projects as lang_projects
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.building import BUILD_FOLDER, library_path
from ttcodegen.project.checking import run_executable
from ttcodegen.project.cpu_backend import CPUBackend


def test_kernels_have_the_names_of_the_program(tmp_path: Path) -> None:
    found = kernels(tmp_path, "columns", 4, 5, 2, 2, 2)
    assert found.keys() == {"dm", "negate", "write"}
    assert "// `dm` of columns.py, line 27.\n" in found["dm"]
    for line in (
        "const uint32_t start_ct = node_column * 4 + node_row * 2;",
        "for (uint32_t ct = start_ct; ct < end_ct; ++ct) {",
        "cb_reserve_back(cb_a_dfb, 2);",
        "noc_async_read_page((first_row + row) * 5 + ct, A_tensor,",
        "cb_push_back(cb_a_dfb, 2);",
    ):
        assert line in found["dm"], line
    for line in ("negative_tile(dst0);", "pack_tile<true>(dst0, cb_b_dfb, tile);"):
        assert line in found["negate"], line


def test_sums_over_blocks_are_kept_in_a_buffer_with_the_name_of_the_variable(
    tmp_path: Path,
) -> None:
    found = kernels(tmp_path, "matmul", "2,1,2,3", "1,2,1,2")
    compute = found["matmul_compute"]
    # A block of two tiles, to which the packer adds: no pass fills zeros.
    assert "pack_reconfig_l1_acc(1);" in compute
    assert "pack_tile<true>(dst1, cb_y_final, 1);" in compute
    assert "fill_tile" not in compute
    assert compute.count("cb_pop_front(cb_y_final, 2);") == 1
    assert "// Circular buffer: pages of 4096 bytes, f32.\n    constexpr uint32_t cb_y_final" in (
        compute
    )
    (programs,) = tmp_path.glob("*/src/programs.cpp")
    assert "cb_y_final, DataFormat::Float32, 2, 4096);" in programs.read_text()


def test_blocks_are_multicast_into_the_blocks_of_the_receivers(tmp_path: Path) -> None:
    written = kernels(tmp_path, "multicast_2d", 0, 2)["read"]
    assert "_slots" not in written
    assert "_loopback_src" not in written
    assert "constexpr uint32_t a_dfb_block_bytes = 8192;" in written
    data = written.index("noc_async_write_multicast(")
    flag = written.index("noc_semaphore_set_multicast(")
    assert "barrier" not in written[data:flag]
    assert written.count("noc_async_read(") == 0
    # The sender waits for the others, which take what it has already.
    assert "noc_semaphore_wait(a_net_ready, 2);" in written
    assert "if (node_column >= 1) {" in written


def test_senders_amid_their_receivers_multicast_into_slots(tmp_path: Path) -> None:
    written = kernels(tmp_path, "multicast_2d", 1, 2)["read"]
    assert "cb_a_net_slots" in written
    assert "_loopback_src" in written


def test_pipes_that_follow_no_rule_are_in_tables(tmp_path: Path) -> None:
    written = kernels(tmp_path, "pipes", "permutation", 8, 8)["dm"]
    assert written.count("noc_async_write(") == 1
    assert "constexpr uint32_t net_first_column[] = {" in written
    assert "= net_first_column[node_column * 8 + node_row];" in written


def test_the_same_operation_is_one_project_for_tensors_of_the_same_kinds(tmp_path: Path) -> None:
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", "-x_blk"))
    text += "op(x, y)\nop(ttnn.rand((96, 32)), ttnn.zeros((32, 32)))\n"
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    assert [path.name for path in projects.written] == ["op", "op_2"]


RECEIVED = """
net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
pair_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))
more_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 2))

@ttl.datamovement()
def read():
    def send(pipe):
        with pair_dfb.reserve() as pair_blk, x_dfb.reserve() as x_blk:
            pair_xf = ttl.copy(x[0, :], pair_blk)
            x_xf = ttl.copy(x[1, 0], x_blk)
            pair_xf.wait()
            x_xf.wait()
            ttl.copy(pair_blk, pipe).wait()
            ttl.copy(x_blk, y[0, 0]).wait()

    def receive(pipe):
        with more_dfb.reserve() as more_blk:
            ttl.copy(pipe, more_blk).wait()

    net.if_src(send)
    net.if_dst(receive)
"""


def test_a_kernel_waits_once_and_computes_no_size_that_it_does_not_need(tmp_path: Path) -> None:
    source = Source("program.py", operation(RECEIVED, grid="(2, 1)"))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "read.cpp").read_text()
    assert written.count("get_tile_size(") == 1
    # For the copies from the tensor, and for the one out of the slot of the pipe.
    assert written.count("noc_async_read_barrier();") == 2


@pytest.mark.parametrize(
    ("expression", "call"),
    [
        ("ttl.math.exp(x_blk)", "e * e + e"),
        ("x_blk @ x_blk", "e * ttl.math.sigmoid(e)"),
        ("x_blk @ x_blk", "e @ x_blk + e"),
        ("ttl.math.exp(x_blk)", "e @ e + ttl.block.transpose(e)"),
        ("ttl.math.reduce_sum(x_blk, dims=[0], shape=(1, 1))", "e * e"),
    ],
)
def test_what_an_expression_has_twice_is_computed_once(
    expression: str, call: str, tmp_path: Path
) -> None:
    shared = f"(lambda e: {call})({expression})"
    text = operation(KERNELS.replace("\n    ", "\n").replace("EXPRESSION", shared))
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "compute.cpp").read_text()
    products = 1 + ("@" in call) if "@" in expression else "@" in call
    assert written.count("matmul_tiles(") == products
    assert written.count("exp_tile(dst") == expression.count("exp")
    assert written.count("reduce_tile<") == expression.count("reduce")


def test_an_expression_that_doubles_is_no_larger_in_a_kernel(tmp_path: Path) -> None:
    body = KERNELS.replace("\n    ", "\n").replace("EXPRESSION", "doubled(x_blk)")
    text = operation(body).replace(
        "import ttl, ttnn",
        "import ttl, ttnn\ndef doubled(e):\n    for _ in tuple(range(40)):\n        e = e + e\n"
        "    return e",
        1,
    )
    source = Source("program.py", text)
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "compute.cpp").read_text()
    # The first one adds up what is in a circular buffer.
    assert written.count("add_tiles(cb_x_dfb, cb_x_dfb, 0, 0, dst0);") == 1
    assert written.count("add_binary_tile(dst0, dst0, dst0);") == 39


_TOLD = """
@ttl.datamovement()
def write():
    print("started")
    for i in range(2):
        with ttl.signpost("write y"), y_dfb.wait() as y_blk:
            print(y_dfb)
            print(y_blk)
            ttl.copy(y_blk, y[0, i]).wait()
@ttl.compute()
def compute():
    for i in range(2):
        with y_dfb.reserve() as y_blk:
            print(f"i={i}", "of", 2)
            print("x", x)
            y_blk.store(ttl.block.fill(1, shape=(1, 1)))
"""


def test_what_kernels_leave_out_is_reported_once_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "reported.py"
    text = operation(_TOLD, call="op(x, y)\nop(x, ttnn.zeros((32, 64)))")
    program.write_text(text)
    assert main([str(program), "-o", str(tmp_path / "out")]) == 0
    lines = text.splitlines()
    reported = capsys.readouterr().err.splitlines()
    expected = {
        ('print("x", x)', "the kernel 'compute' of the project leaves out elements that it "
         "prints: the simulator prints them"),
    }  # fmt: skip
    found: set[tuple[str, str]] = set()
    warnings = [line for line in reported if " warning: " in line]
    for line in warnings:
        place, _, message = line.partition(" warning: ")
        number, column = map(int, place.split(":")[1:3])
        (source,) = (each for each, about in expected if about == message and each in
                     lines[number - 1][column - 1:])  # fmt: skip
        found.add((source, message))
    assert found == expected
    assert len(warnings) == 1
    folder = tmp_path / "out" / "op" / "kernels"
    assert 'DPRINT("started\\n");' in (folder / "write.cpp").read_text()
    printed = "DataflowBuffer y_dfb: shape=(1, 1), block_count=2, size=4096, "
    assert printed in (folder / "write.cpp").read_text()
    assert 'DeviceZoneScopedN("write y");' in (folder / "write.cpp").read_text()
    assert '#include "api/debug/dprint.h"' in (folder / "compute.cpp").read_text()
    assert 'MATH(DPRINT("i={} of 2\\n", i));' in (folder / "compute.cpp").read_text()


_SIGNPOSTS = """
@ttl.datamovement()
def write():
    count = 0
    for i in range(2):
        with ttl.signpost("whole"):
            with ttl.signpost("wait"):
                y_blk = y_dfb.wait()
                first = i * 2 - i
                count += 1
            with ttl.signpost("copy"):
                ttl.copy(y_blk, y[0, first]).wait()
            y_blk.pop()
            print("copied", count)
@ttl.compute()
def compute():
    for i in range(2):
        with ttl.signpost("fill"), y_dfb.reserve() as y_blk:
            y_blk.store(ttl.block.fill(1, shape=(1, 1)))
"""


def test_signposts_are_scopes_after_which_what_they_declare_is_still_known(tmp_path: Path) -> None:
    source = Source("program.py", operation(_SIGNPOSTS))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [], projects.watch)
    written = (projects.written[0] / "kernels" / "write.cpp").read_text()
    body = written[written.index("    uint32_t count = 0;") :]
    assert [line.strip() for line in body.splitlines() if line.strip()] == [
        "uint32_t count = 0;",
        "for (uint32_t i = 0; i < 2; ++i) {",
        "{",
        'DeviceZoneScopedN("whole");',
        "const uint32_t first = i * 2 - i;",
        "{",
        'DeviceZoneScopedN("wait");',
        "cb_wait_front(cb_y_dfb, 1);",
        "count = count + 1;",
        "}",
        "{",
        'DeviceZoneScopedN("copy");',
        "const uint32_t y_dfb_block = get_read_ptr(cb_y_dfb);",
        "noc_async_write_page(first, y_tensor, y_dfb_block);",
        "noc_async_write_barrier();",
        "}",
        "cb_pop_front(cb_y_dfb, 1);",
        'DPRINT("copied {}\\n", count);',
        *["}"] * 3,
    ]
    compute = (projects.written[0] / "kernels" / "compute.cpp").read_text()
    assert 'DeviceZoneScopedN("fill");' in compute
    assert '#include "tools/profiler/kernel_profiler.hpp"' in compute


@pytest.mark.slow
def test_debug_prints_and_signposts_reach_the_output_of_the_emulated_device(
    tmp_path: Path, cpu_backend: CPUBackend
) -> None:
    program = tmp_path / "reported.py"
    program.write_text(operation(_TOLD, call="op(x, ttnn.zeros((32, 64)))"))
    out = tmp_path / "out"
    assert main([str(program), "-o", str(out), "--check", "--build"]) == 0
    command = [str(out / "op" / BUILD_FOLDER / "op_main")]
    environment = os.environ | {"TT_METAL_DPRINT_CORES": "all"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    reported = [line.partition(": ")[2] for line in (done.stdout + done.stderr).splitlines()]
    assert [line for line in reported if line.startswith("i=")] == ["i=0 of 2", "i=1 of 2"]
    assert "started" in reported
    rows = [f"{row}: {' '.join(['1'] * 32)}" for row in range(32)]
    assert [line for line in reported if line.partition(":")[0].isdigit()] == rows * 2
    library = library_path(out / "op", "op")
    code, result = result_of("Perf", {"binary": library, "--artifact-dir": tmp_path, "--loops": 1})
    assert code == 0
    (zone,) = result["zones"]
    assert (zone["zone"], Path(zone["file"]).name, zone["times"]) == ("write y", "write.cpp", 2)
    # Two tiles of 2048 bytes, 32 bytes in each cycle.
    assert zone["cycles"] == 128
    events = json.loads(Path(result["trace"]).read_text())["traceEvents"]
    assert [e["dur"] for e in events if e["name"] == "write y"] == [0.064, 0.064]


CHECKED = [
    ("columns", (4, 5, 2, 2, 2)),
    ("matmul", ("2,4,2,3", "1,2,1,2", 2, 3)),
    ("elementwise", (128, 64, 2, 1, 1)),
    ("attention", (3, 2, 3, 2, 2, 1)),
    ("ordered", (2, 3, 0)),
    ("ordered", (3, 5, 4)),
    ("neighbors", (3, 2)),
    ("upsample", (2, 2, 3, 33, 3, 2, 2, 2)),
    ("multicast_2d", (0, 1)),
    ("multicast_2d", (1, 2)),
    ("multicast_2d", (2, 2)),
    ("pipes", ("gather", 3, 2)),
    ("pipes", ("scatter", 3, 5)),
    ("pipes", ("scatter-gather", 2, 3)),
    ("pipes", ("forward", 8, 8)),
    ("pipes", ("permutation", 8, 8)),
    ("accumulated", (3,)),
    ("counters", ()),
    ("planes", (3, 2, 2)),
    ("meshes", ("sums",)),
    ("branches", ()),
    ("choices", ()),
    ("indices", (2, 3)),
    ("indices", (8, 8)),
    ("split_k", ()),
    ("ring", (4,)),
    ("replaced", ()),
    ("running_sums", ()),
    ("halo", (4,)),
    ("formulas", (2, 2, 5, 2)),
    ("integers", ()),
    ("integer_sums", ()),
    ("integer_functions", ("int32", "TILE")),
    ("integer_functions", ("int32", "ROW_MAJOR")),
    ("integer_functions", ("uint32", "TILE")),
    ("integer_functions", ("uint32", "ROW_MAJOR")),
    ("printed", ()),
    ("row_major", (5, 96, 5, 16, 5, "i32")),
    ("row_major", (6, 40, 3, 40, 1, "bf16")),
    ("row_major", (4, 64, 1, 8, 3, "f32")),
    *(("sharded", (kind,)) for kind in ("l1", "height", "width", "block", "ranges")),
    *(("rows", (kind, 3, 2, 2, 2)) for kind in (
        "rms-norm-matmul", "layer-norm", "softmax", "masked-softmax", "gelu-matmul", "gated",
        "masked",
    )),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), CHECKED)
def test_the_emulated_device_computes_what_the_simulator_does(
    name: str, arguments: tuple[object, ...], cpu_backend: CPUBackend
) -> None:
    found = checked(Source.read(str(PROGRAMS / f"{name}.py")), *arguments)
    assert found
    for each in found:
        assert each.agreement.passed, each


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["p100", "p150_140"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("columns", (4, 5, 2, 2, 2)),
        ("upsample", (2, 2, 3, 33, 3, 2, 2, 2)),
        ("row_major", (5, 96, 5, 32, 3, "i32")),
        ("row_major", (6, 40, 3, 40, 1, "bf16")),
        ("integer_functions", ("int32", "ROW_MAJOR")),
    ],
)
def test_the_emulated_blackhole_computes_what_the_simulator_does(
    name: str, arguments: tuple[object, ...], machine: str, cpu_backend: CPUBackend
) -> None:
    source = Source.read(str(PROGRAMS / f"{name}.py"))
    found = checked(source, *arguments, system=load_system(machine))
    assert found
    for each in found:
        assert each.agreement.passed, each


def test_rows_begin_where_the_card_reads_from(tmp_path: Path) -> None:
    """Reads from DRAM are at multiples of 32 bytes of a wormhole, and of 64 of a blackhole."""
    source = Source.read(str(PROGRAMS / "row_major.py"))
    arguments = ["4", "64", "1", "8", "3", "f32"]
    run_program_text(source, arguments, Projects(source.digest, tmp_path).watch)
    with pytest.raises(CompileError, match="begins within 64 bytes of a row"):
        run_program_text(
            source,
            arguments,
            Projects(source.digest, checks=False).watch,
            system=load_system("p150"),
        )


@pytest.mark.slow
def test_what_each_device_of_a_mesh_computes_is_compared(
    cpu_backend: CPUBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs of the last device are made wrong."""
    runs: list[int] = []

    def run(*arguments: Any, **options: Any) -> Any:
        outputs, failure = run_executable(*arguments, **options)
        runs.append(len(runs))
        if len(runs) == 4:
            outputs = {
                function: {name: array + 1 for name, array in arrays.items()}
                for function, arrays in outputs.items()
            }
        return outputs, failure

    monkeypatch.setattr(lang_projects, "run_executable", run)
    found = checked(Source.read(str(PROGRAMS / "meshes.py")), "rows")
    assert [each.output for each in found] == [f"y for device {number}" for number in range(4)]
    assert [each.agreement.passed for each in found] == [True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [*CHECKED[:7], *CHECKED[8:18], *CHECKED[23:38]],
)
def test_kernels_compile_with_the_headers_of_the_release(
    name: str,
    arguments: tuple[object, ...],
    kernel_faults: KernelFaults,
    tmp_path: Path,
) -> None:
    source = Source.read(str(PROGRAMS / f"{name}.py"))
    projects = Projects(source.digest, tmp_path)
    run_program_text(source, [str(argument) for argument in arguments], projects.watch)
    for project in projects.written:
        assert kernel_faults(read_manifest(project / "manifest.json")) == []


def test_an_operation_as_a_module_compiles_to_the_same_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, sources = tmp_path / "out", tmp_path / "sources"
    program = str(PROGRAMS / "columns.py")
    assert main([program, "-o", str(out), "--mlir", "--", "2", "3", "1", "1", "3"]) == 0
    module = out / "negate" / "negate.mlir"
    assert opt([str(module), "--convert-ttmetal-to-emitc", "-o", str(tmp_path / "c.mlir")]) == 0
    assert translate([str(tmp_path / "c.mlir"), "--mlir-to-cpp", "-o", f"{sources}/"]) == 0
    for kernel in (out / "negate" / "kernels").glob("*.cpp"):
        made = (sources / "kernels" / kernel.name).read_text()
        # The hash of the source differs, and the project's files are formatted.
        texts = ["".join(text.split("//", 3)[-1].split()) for text in (made, kernel.read_text())]
        assert texts[0] == texts[1]
    assert main([program, "--mlir"]) == 2
    assert "--mlir needs -o" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_line_compares_and_writes(tmp_path: Path, cpu_backend: CPUBackend) -> None:
    program, out = str(PROGRAMS / "columns.py"), tmp_path / "out"
    assert main([program, "--check", "-o", str(out), "--", "2", "3", "1", "1", "3"]) == 0
    assert (out / "negate" / "src" / "negate.cpp").is_file()
    assert not (out / "negate" / "model.ttm").exists()


_NARROW = "rsqrt recip log logp1 sqrt atanh asin acos tan".split()
"""Functions of numbers between 0 and 1; acosh is one of numbers above."""

_STEPS = ("round", "remainder", "floor_quotient")
_STEPS_AGREE = 0.99
"""Share of elements that agree: a quotient rounded otherwise takes another step."""

_BLOCKS = {
    "sum": "v_blk + u_blk",
    "difference": "v_blk - u_blk",
    "product": "v_blk * u_blk",
    "quotient": "v_blk / w_blk",
    "remainder": "w_blk % u_blk",
    "floor_quotient": "v_blk // w_blk",
    "negated": "-v_blk",
    "magnitude": "abs(v_blk)",
    "power": "v_blk ** 3",
    "matmul": "v_blk @ u_blk",
    "matmul_of_expressions": "(v_blk + u_blk) @ ttl.math.exp(u_blk)",
    "two_matmuls": "v_blk @ u_blk - u_blk @ v_blk",
    "larger": "ttl.math.max(v_blk, u_blk)",
    "smaller": "ttl.math.min(v_blk, u_blk)",
    "exponential": "ttl.math.exp(v_blk, scale=0.25)",
    "rough_exponential": "ttl.math.exp(v_blk, approx=True, skip_clamp_check=True)",
    "equal": "ttl.math.eq(ttl.math.sign(v_blk), ttl.math.ceil(u_blk))",
    "unequal": "ttl.math.ne(ttl.math.sign(v_blk), ttl.math.ceil(u_blk))",
    "greater": "ttl.math.gt(v_blk, u_blk)",
    "not_less": "ttl.math.ge(v_blk, u_blk)",
    "less": "ttl.math.lt(v_blk, u_blk)",
    "not_greater": "ttl.math.le(v_blk, u_blk)",
    "transposed": "ttl.block.transpose(v_blk) + u_blk",
    "row": "ttl.block.broadcast(v_blk, dims=[0], shape=(1, 1)) * u_blk",
    "column": "ttl.block.broadcast(v_blk, dims=[-1], shape=(1, 1)) * u_blk",
    "scalar": "ttl.block.broadcast(v_blk, dims=[0, 1], shape=(1, 1)) * u_blk",
    "row_sum": "ttl.math.reduce_sum(v_blk, dims=[-1], shape=(1, 1))",
    "column_sum": "ttl.math.reduce_sum(v_blk, dims=[0], shape=(1, 1))",
    "whole_sum": "ttl.math.reduce_sum(v_blk, dims=[0, 1], shape=(1, 1))",
    "row_max": "ttl.math.reduce_max(w_blk, dims=[1], shape=(1, 1))",
    "column_max": "ttl.math.reduce_max(w_blk, dims=[0], shape=(1, 1))",
    "filled": "ttl.block.fill(2.5, shape=(1, 1))",
    "masked": "ttl.block.mask(v_blk, ttl.math.ceil(u_blk))",
    "masked_by_none": "ttl.block.mask(v_blk, ttl.math.floor(u_blk))",
    "masked_by_infinity": "ttl.math.recip(ttl.block.mask_posinf(w_blk, ttl.math.ceil(u_blk)))",
    "chosen": "ttl.block.where(ttl.math.relu(ttl.math.sign(v_blk)), u_blk, w_blk)",
    "shared_product": "(lambda p: p * ttl.math.sigmoid(p))(v_blk @ u_blk)",
    "shared_operand": "(lambda p: p @ p + ttl.block.transpose(p))(v_blk + u_blk)",
    "reshaped": "ttl.block.squeeze(ttl.block.unsqueeze(v_blk, dims=[0]), dims=[0])",
}


def _program(expressions: list[str]) -> str:
    """An operation that computes a tile of each expression of three tiles: `u` of numbers between 0
    and 1, `v` of numbers around 0, `w` of numbers above 1."""
    stores = "\n".join(
        f"            with y_dfb.reserve() as y_blk:\n                y_blk.store({expression})"
        for expression in expressions
    )
    reads = "\n".join(
        f"        with {n}_dfb.reserve() as {n}_blk:\n"
        f"            ttl.copy({n}[0, 0], {n}_blk).wait()"
        for n in "uvw"
    )
    buffers = "\n".join(
        f"    {n}_dfb = ttl.make_dataflow_buffer_like({n}, shape=(1, 1))" for n in "uvwy"
    )
    return f"""import numpy as np, ttl, ttnn
@ttl.operation(grid=(1, 1))
def op(u, v, w, y):
{buffers}
    @ttl.datamovement()
    def read():
{reads}
    @ttl.compute()
    def compute():
        with u_dfb.wait() as u_blk, v_dfb.wait() as v_blk, w_dfb.wait() as w_blk:
{stores}
    @ttl.datamovement()
    def write():
        for i in range({len(expressions)}):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[0, i]).wait()
generator = np.random.default_rng(3)
def tile(low, high):
    return ttnn.from_torch(generator.uniform(low, high, (32, 32)), ttnn.float32, layout="tile")
u, v, w = tile(0.1, 0.9), tile(-2.75, 2.75), tile(1.25, 3)
y = ttnn.zeros((32, 32 * {len(expressions)}), ttnn.float32)
op(u, v, w, y)
"""


def _call(name: str) -> str:
    operand = {"acosh": "w"}.get(name, "u" if name in _NARROW else "v")
    return f"ttl.math.{name}({', '.join([f'{operand}_blk', *map(str, MEANINGS[name][0])])})"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_functions_and_operators_on_the_emulated_device(part: int, cpu_backend: CPUBackend) -> None:
    expressions = {**{name: _call(name) for name in MEANINGS}, **_BLOCKS}
    mine = dict(list(expressions.items())[part::3])
    source = Source("program.py", _program(list(mine.values())))
    projects = Projects(source.digest, checks=True)
    held = run_program_text(source, [], projects.watch)
    (found,) = projects.comparisons
    expected = held["y"].elements()  # type: ignore[attr-defined]
    wrong: list[str] = []
    for number, name in enumerate(mine):
        tile = slice(32 * number, 32 * (number + 1))
        errors = np.abs(found.found[:, tile] - expected[:, tile])
        close = errors <= 0.01 * max(1.0, float(np.abs(expected[:, tile]).max()))
        if not close.mean() >= (_STEPS_AGREE if name in _STEPS else 1):
            wrong.append(f"{name}: {errors.max()} in {(~close).sum()} elements")
    assert not wrong
