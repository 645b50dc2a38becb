"""The command line of `ttcodegen-translate`."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from ttcodegen.cli.opt import main as opt
from ttcodegen.cli.translate import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.ttnn_to_emitc import ConvertTTNNToEmitC
from ttcodegen.emitc.printer import print_module
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.reader import read_ttm, read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import Step, passes_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DECODER = EXAMPLES / "stitching" / "decoder.mlir"


@pytest.fixture
def ttnn(tmp_path: Path) -> Path:
    """The decoder of the example in TTNN."""
    out = tmp_path / "ttnn.mlir"
    assert opt(["--ttir-to-ttnn-common-pipeline", str(DECODER), "-o", str(out)]) == 0
    return out


BODIES = {
    "add": """func.func @f(%x: tensor<64x96xbf16>) -> tensor<64x96xbf16> {
        %0 = "ttir.add"(%x, %x) : (tensor<64x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
        return %0 : tensor<64x96xbf16>
    }""",
    # No program of the device computes it: the host has functions for the CPU alone.
    "max_pool2d": """
    func.func @f(%x: tensor<1x8x8x32xbf16>) -> tensor<1x4x4x32xbf16> {
        %0 = "ttir.max_pool2d"(%x) <{kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>,
            padding = array<i32: 0, 0, 0, 0>, dilation = array<i32: 1, 1>, ceil_mode = false}>
            : (tensor<1x8x8x32xbf16>) -> tensor<1x4x4x32xbf16>
        return %0 : tensor<1x4x4x32xbf16>
    }""",
}


def emitc_text(name: str) -> str:
    """An example as a module of EmitC."""
    source = Source.read(str(EXAMPLES / name))
    module = module_of(read_ttnn(compile_module(source, CompileOptions("m")).flatbuffer))
    ConvertTTNNToEmitC(module_name="decoder").apply(load_dialects(), module)
    return module_text(module)


@pytest.fixture
def emitc(tmp_path: Path) -> Path:
    """The decoder of the example in EmitC."""
    out = tmp_path / "emitc.mlir"
    out.write_text(emitc_text("stitching/decoder.mlir"))
    return out


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    assert main(arguments) == status
    return capsys.readouterr().err


def test_cpp_in_one_file(emitc: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-mlir-to-cpp", str(emitc)]) == 0
    text = capsys.readouterr().out
    assert "struct DecodeInputs {" in text
    assert text.index("struct DecodeInputs {") < text.index("ttnn::matmul(")
    assert '#include "' not in text
    assert "#pragma once" not in text


def test_cpp_in_the_files_of_the_module(emitc: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cpp"
    assert main(["--mlir-to-cpp", str(emitc), "-o", f"{folder}/"]) == 0
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files == {"src/decoder.hpp", "src/decoder.cpp", "src/tuning.hpp"}
    assert '#include "decoder.hpp"' in (folder / "src" / "decoder.cpp").read_text()
    assert main(["--mlir-to-cpp", str(emitc), "-o", str(folder)]) == 0


def test_emitc_of_other_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Modules without files, and with functions of the dialect func."""
    module = tmp_path / "other.mlir"
    module.write_text(
        """
        func.func @twice(%a: !emitc.opaque<"ttnn::Tensor">) -> !emitc.opaque<"ttnn::Tensor"> {
          %0 = "emitc.call_opaque"(%a, %a) <{callee = "ttnn::add"}>
            : (!emitc.opaque<"ttnn::Tensor">, !emitc.opaque<"ttnn::Tensor">)
            -> !emitc.opaque<"ttnn::Tensor">
          return %0 : !emitc.opaque<"ttnn::Tensor">
        }
        """
    )
    assert main(["--mlir-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert "ttnn::Tensor twice(ttnn::Tensor a) {" in text
    assert "ttnn::add(a, a);" in text
    assert "return " in text


@pytest.mark.slow
def test_the_one_file_compiles_by_itself(
    emitc: Path, tmp_path: Path, toolchain: Toolchain, cpu_backend: CPUBackend
) -> None:
    out = tmp_path / "decoder.cpp"
    assert main(["--mlir-to-cpp", str(emitc), "-o", str(out)]) == 0
    options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    include = ["-isystem", str(cpu_backend.folder / "include")]
    subprocess.run([toolchain.compiler, *options, *include, str(out)], check=True)


def test_what_is_no_emitc(ttnn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "error:" in refused(["--mlir-to-cpp", str(ttnn)], capsys)


def test_the_flatbuffer_is_that_of_the_compiler(ttnn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ttnn"
    assert main(["--ttnn-to-flatbuffer", str(ttnn), "-o", str(out)]) == 0
    made = read_ttnn(out.read_bytes())
    compiled = compile_module(Source.read(str(DECODER)), CompileOptions("decoder"))
    expected = read_ttnn(compiled.flatbuffer)
    assert [o.name for o in made.programs[-1].operations] == [
        o.name for o in expected.programs[-1].operations
    ]
    assert made.programs[-1].inputs == expected.programs[-1].inputs


def test_a_flatbuffer_read_back_gives_itself(
    ttnn: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, text, second = tmp_path / "a.ttnn", tmp_path / "a.mlir", tmp_path / "b.ttnn"
    assert main(["--ttnn-to-flatbuffer", str(ttnn), "-o", str(first)]) == 0
    assert main(["--flatbuffer-to-mlir", str(first), "-o", str(text)]) == 0
    assert main(["--ttnn-to-flatbuffer", str(text), "-o", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.fixture
def ttmetal(tmp_path: Path) -> Path:
    """The decoder of the example as programs of the device."""
    out = tmp_path / "ttmetal.mlir"
    assert opt(["--ttir-to-ttmetal-pipeline", str(DECODER), "-o", str(out)]) == 0
    return out


def test_the_device_flatbuffer_is_that_of_the_compiler(ttmetal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ttm"
    assert main(["--ttmetal-to-flatbuffer", str(ttmetal), "-o", str(out)]) == 0
    made = read_ttm(out.read_bytes())
    options = CompileOptions("decoder", target="ttmetal")
    expected = read_ttm(compile_module(Source.read(str(DECODER)), options).flatbuffer)
    assert [program.name for program in made.programs] == [p.name for p in expected.programs]
    assert [len(p.kernels) for p in made.programs] == [len(p.kernels) for p in expected.programs]
    assert made.functions[-1].inputs == expected.functions[-1].inputs


def test_a_file_for_each_kernel(ttmetal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert main(["--ttkernel-to-cpp", str(ttmetal), "-o", f"{folder}/"]) == 0
    files = {path.name: path.read_text() for path in folder.glob("*.cpp")}
    assert {
        "compute_matmul.cpp",
        "read_left_matmul.cpp",
        "write_max_subtract_div.cpp",
    } <= files.keys()
    assert all("void kernel_main() {" in text for text in files.values())


MOVE = """
func.func @move(%cb: !ttkernel.cb<2, !ttcore.tile<32x32, bf16>>)
    attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  ttkernel.cb_reserve_back(%cb, %c1) : (!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>, i32) -> ()
  %p = ttkernel.get_write_ptr(%cb) : (!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>) -> i32
  %q = ttkernel.reinterpret_cast(%p) : (i32) -> !ttkernel.l1_addr_ptr
  %v = ttkernel.load_from_l1(%q, %c0) : (!ttkernel.l1_addr_ptr, i32) -> i32
  %x = ttkernel.my_x() : () -> i32
  %s = arith.addi %v, %x : i32
  ttkernel.store_to_l1(%s, %q, %c1) : (i32, !ttkernel.l1_addr_ptr, i32) -> ()
  ttkernel.cb_push_back(%cb, %c1) : (!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>, i32) -> ()
  func.return
}
"""
KERNEL = """
func.func @scale() attributes {ttkernel.thread = #ttkernel.thread<THREAD>} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %cb_in = ttkernel.get_named_compile_time_arg_val("cb_in")
      : () -> !ttkernel.cb<2, !ttcore.tile<32x32, bf16>>
  %count = ttkernel.get_arg_val(%1) : (index) -> index
  scf.for %tile = %0 to %count step %1 {
    ttkernel.cb_wait_front(%cb_in, %1) : (!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>, index) -> ()
  }
  return
}
"""


def test_circular_buffers_have_the_ports_that_they_were_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "kernel.mlir"
    types = (
        "!ttkernel.cb<cb_out0, 294912, memref<2x!ttcore.tile<32x32, bf16>>, 2048, 1>",
        "!ttkernel.cb<0, 5, memref<2x!ttcore.tile<32x32, bf16>>>",
        "!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>",
    )
    arguments = ", ".join(f"%cb_{name}: {t}" for name, t in zip("abc", types, strict=True))
    waits = "".join(
        f"  ttkernel.cb_wait_front(%cb_{name}, %1) : ({t}, index) -> ()\n"
        for name, t in zip("abc", types, strict=True)
    )
    module.write_text(
        f"func.func @wait({arguments}) attributes {{ttkernel.thread = "
        f"#ttkernel.thread<compute>}} {{\n  %1 = arith.constant 1 : index\n{waits}  return\n}}\n"
    )
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert "constexpr uint32_t cb_a = 16;  // at 0x48000 in L1" in text
    assert "constexpr uint32_t cb_b = 5;\n" in text
    assert "constexpr uint32_t cb_c = 2;\n" in text
    assert "cb_wait_front(cb_a, 1);" in text
    module.write_text(module.read_text().replace("cb_out0", "cb_top0"))
    assert main(["--ttkernel-to-cpp", str(module)]) == 1
    assert "there is no circular buffer 'cb_top0'" in capsys.readouterr().err


PASS_ON = """
func.func @pass_on(%cb_in: BUFFER, %cb_out: BUFFER) {
  %1 = arith.constant 1 : i32
  ttkernel.cb_wait_front(%cb_in, %1) : (BUFFER, i32) -> ()
  MORE
  ttkernel.cb_push_back(%cb_out, %1) : (BUFFER, i32) -> ()
  return
}
""".replace("BUFFER", "!ttkernel.cb<2, !ttcore.tile<32x32, bf16>>")


@pytest.mark.parametrize(
    ("more", "header", "line"),
    [
        ("", "api/dataflow/dataflow_api.h", "cb_push_back(cb_out, 1);"),
        (
            "ttkernel.noc_async_read_barrier() : () -> ()",
            "api/dataflow/dataflow_api.h",
            "noc_async_read_barrier();",
        ),
        (
            "ttkernel.tile_regs_acquire() : () -> ()",
            "api/compute/reg_api.h",
            "tile_regs_acquire();",
        ),
    ],
)
def test_a_kernel_that_does_not_say_what_runs_it(
    more: str, header: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ops say whether it computes or moves data."""
    module = tmp_path / "kernel.mlir"
    module.write_text(PASS_ON.replace("MORE", more))
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("// pass_on.cpp\n")
    assert f'#include "{header}"' in text
    assert "constexpr uint32_t cb_in = 0;\n" in text
    assert "constexpr uint32_t cb_out = 1;\n" in text
    assert "cb_wait_front(cb_in, 1);" in text
    assert line in text


def test_a_kernel_that_nothing_could_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "kernel.mlir"
    both = ("tile_regs_acquire", "noc_async_read_barrier")
    module.write_text(
        PASS_ON.replace("MORE", "\n".join(f"ttkernel.{name}() : () -> ()" for name in both))
    )
    assert main(["--ttkernel-to-cpp", str(module)]) == 1
    message = capsys.readouterr().err
    assert f"{module}:6:" in message
    assert "'ttkernel.noc_async_read_barrier' is of another kind than those before it" in message


def test_elements_of_arrays_in_kernels_that_move_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "move.mlir"
    module.write_text(MOVE)
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    for line in (
        "const auto q = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(p);",
        "uint32_t v = q[0];",
        "const uint32_t s = v + (my_x[noc_index]);",
        "q[1] = s;",
    ):
        assert f"    {line}\n" in text


def test_what_the_firmware_has_in_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Constants, and elements of arrays: of the kernel's own NoC unless it names one."""
    module = tmp_path / "move.mlir"
    module.write_text(
        MOVE.replace(
            "  %x = ttkernel.my_x() : () -> i32\n",
            "  %noc = arith.constant 1 : i8\n  %n = ttkernel.my_x(%noc) : (i8) -> i32\n"
            "  %base = ttkernel.mem_zeros_base() : () -> i32\n"
            "  %x = arith.addi %n, %base : i32\n",
        )
    )
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert "my_x[1]" in text
    assert "+ MEM_ZEROS_BASE" in text


def test_kernels_without_what_launches_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "kernel.mlir"
    module.write_text(KERNEL.replace("THREAD", "compute"))
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("// scale.cpp\n")
    assert 'constexpr uint32_t cb_in = get_named_compile_time_arg_val("cb_in");' in text
    assert "const uint32_t count = get_arg_val<uint32_t>(1);" in text
    assert "cb_wait_front(cb_in, 1);" in text
    module.write_text(KERNEL.replace("THREAD", "noc"))
    assert main(["--ttkernel-to-cpp", str(module)]) == 0
    text = capsys.readouterr().out
    assert '#include "api/dataflow/dataflow_api.h"' in text
    assert "// A kernel that moves data." in text


def test_modules_without_programs(ttnn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "does not launch a program" in refused(["--ttmetal-to-flatbuffer", str(ttnn)], capsys)
    assert "the module has no kernels" in refused(["--ttkernel-to-cpp", str(ttnn)], capsys)


@pytest.mark.parametrize(
    ("target", "pipeline", "convert"),
    [
        ("ttnn", "ttir-to-ttnn-common-pipeline", ["convert-ttnn-to-emitc"]),
        (
            "ttmetal",
            "ttir-to-ttmetal-pipeline",
            ["convert-ttkernel-to-emitc", "convert-ttmetal-to-emitc"],
        ),
        ("ttmetal", "ttir-to-ttmetal-pipeline", ["convert-ttmetal-to-emitc"]),
    ],
)
@pytest.mark.parametrize("body", ["add", "max_pool2d"])
def test_the_compiler_is_its_passes_and_the_printer(
    target: str, pipeline: str, convert: list[str], body: str
) -> None:
    source = Source("model.mlir", BODIES[body])
    compiled = compile_module(source, CompileOptions("model", target))
    module = parse_module(source)
    given = {"module-name": "model", "input-hash": source.digest}
    passes = passes_of(pipeline, *(Step(name, given) for name in convert))
    PassRunner(load_dialects()).run(module, passes)
    assert print_module(module) == compiled.files


def test_modules_without_layouts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(["--ttnn-to-flatbuffer", str(DECODER)], capsys)
    assert "has no layout" in message
    assert "note: run --convert-ttir-to-ttnn and --ttnn-layout first" in message


def test_damaged_flatbuffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = tmp_path / "x.ttnn"
    damaged.write_bytes(b"\x08\0\0\0TTNN" + bytes(20))
    assert "is damaged" in refused(["--flatbuffer-to-mlir", str(damaged)], capsys)
    assert "cannot read" in refused(["--flatbuffer-to-mlir", str(tmp_path / "no.ttnn")], capsys)


def test_outputs_that_cannot_be_written(ttnn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(ttnn / "x.ttnn")
    assert "cannot write" in refused(["--ttnn-to-flatbuffer", str(ttnn), "-o", out], capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of these is needed: --mlir-to-cpp, --ttkernel-to-cpp, "),
        (["--mlir-to-cpp", "--ttnn-to-flatbuffer"], "not allowed with argument -mlir-to-cpp"),
        (["--to-c"], "there is no option --to-c\n"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, last = refused(arguments, capsys, status=2).splitlines(keepends=True)
    assert first.startswith("ttcodegen-translate: error: ")
    assert message in first
    assert last == "note: ttcodegen-translate --help lists the options\n"


def test_flatbuffers_are_not_written_to_a_terminal(
    ttnn: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert "cannot go to a terminal" in refused(["--ttnn-to-flatbuffer", str(ttnn)], capsys)


def test_pipes() -> None:
    """`ttcodegen-opt ... | ttcodegen-translate ... | ttcodegen-translate ...`"""
    run = [sys.executable, "-m"]
    first = [*run, "ttcodegen.cli.opt", "--ttir-to-ttnn-common-pipeline", str(DECODER)]
    module = subprocess.run(first, check=True, capture_output=True).stdout
    second = [*run, "ttcodegen.cli.translate", "--ttnn-to-flatbuffer"]
    flatbuffer = subprocess.run(second, input=module, check=True, capture_output=True).stdout
    third = [*run, "ttcodegen.cli.translate", "--flatbuffer-to-mlir", "-"]
    text = subprocess.run(third, input=flatbuffer, check=True, capture_output=True).stdout
    assert b'"ttnn.matmul"(' in text


def test_help_imports_no_dialects() -> None:
    code = (
        "import sys; from ttcodegen.cli.translate import main\n"
        "main(['--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('xdsl', 'numpy', 'jinja2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
