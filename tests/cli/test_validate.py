"""The real library as a judge of programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.optimizer.modules import (
    CHAIN,
    CONVOLUTION,
    OTHERS,
    PADDED,
    PROJECTIONS,
    SEQUENCES,
    compiled,
    entry,
    token,
)
from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.judging.library import VARIABLE, end
from ttcodegen.judging.mocked_device import compiler_of_nothing, environment, executable
from ttcodegen.judging.python_calls import TAKE, joined_steps, steps
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.systems.releases import RELEASES

MODULES = {
    "others": OTHERS,
    "chain": CHAIN,
    "padded": PADDED,
    "projections": PROJECTIONS,
    "convolution": CONVOLUTION,
    "sequences": SEQUENCES,
    "token": token(32, 8, 2),
    "token of few users": token(8, 4, 1),
    "token of odd users": token(11, 4, 2),
}

ROOT = Path(__file__).parents[2]
EXAMPLES = ("digits", "cnn", "transformer")
MODELS = (
    *("jax_block", "jax_decoder", "jax_llama", "jax_resnet18", "torch_block", "torch_cnn"),
    *("torch_decoder", "torch_mobilenet", "torch_resnet18", "torch_vit"),
)
PROGRAMS = [
    *(ROOT / "examples" / name / f"{name}.mlir" for name in EXAMPLES),
    *(
        path
        for name in MODELS
        for path in sorted((ROOT / "tests" / "frontends" / "modules").glob(f"{name}.bf16.*.mlir"))
    ),
]


IN_DRAM = {"layout": {"page": "tile"}, "device": {"device": None}}


def flatbuffer(text: str) -> Binary:
    """The flatbuffer of a module at level 0."""
    return read_flatbuffer(compiled(text, 0).flatbuffer)


def calls(text: str, level: int) -> dict[str, dict[str, Any]]:
    """The calls of a program by their names."""
    return {step["callee"]: step for step in steps(entry(compiled(text, level)))}


def test_calls_get_what_the_program_says() -> None:
    product = calls(CHAIN, 2)["matmul"]
    (name, fields) = product["keywords"]["program_config"]["program"]
    assert name.startswith("MatmulMultiCoreReuseMultiCast")
    assert fields["compute_with_storage_grid_size"] == {"grid": [8, 8]}
    assert product["keywords"]["compute_kernel_config"]["compute"]["math_fidelity"] == "HiFi2"
    (result,) = product["results"]
    assert result["type"]["dtype"] == "bf16"


GATED = """
func.func @f(%x: tensor<64x256xbf16>, %y: tensor<64x256xbf16>, %z: tensor<1x256xbf16>)
    -> (tensor<64x256xbf16>, tensor<64x256xbf16>) {
  %0 = "ttir.silu"(%x) : (tensor<64x256xbf16>) -> tensor<64x256xbf16>
  %1 = "ttir.multiply"(%0, %y)
      : (tensor<64x256xbf16>, tensor<64x256xbf16>) -> tensor<64x256xbf16>
  %2 = "ttir.gelu"(%z) : (tensor<1x256xbf16>) -> tensor<1x256xbf16>
  %3 = "ttir.subtract"(%y, %2)
      : (tensor<64x256xbf16>, tensor<1x256xbf16>) -> tensor<64x256xbf16>
  return %1, %3 : tensor<64x256xbf16>, tensor<64x256xbf16>
}
"""


def test_operands_get_activations() -> None:
    found = calls(GATED, 1)
    assert found.keys().isdisjoint({"silu", "gelu"})
    product, difference = found["multiply"]["keywords"], found["subtract"]["keywords"]
    assert product["input_tensor_a_activations"] == [{"activation": ["silu", []]}]
    assert difference["input_tensor_b_activations"] == [{"activation": ["gelu", [0.0]]}]


@pytest.mark.slow
def test_activations_of_operands_compute_the_same_and_are_taken(
    tmp_path: Path, ttnn_pythons: Callable[[str], str]
) -> None:
    module, out = tmp_path / "gated.mlir", tmp_path / "out"
    module.write_text(GATED)
    for release in RELEASES:
        given = [str(module), "-o", str(out), "--tt-metal", release, "--optimize", "1", "--check"]
        assert ttcodegen(given) == 0
        assert main(["validate", str(out), "--python", ttnn_pythons(release)]) == 0


CREATED = """
func.func @f(%x: tensor<32x64xf32>, %i: tensor<32x64xi32>)
    -> (tensor<32x64xf32>, tensor<32x64xbf16>, tensor<32x64xi32>, tensor<7x9xui8>,
        tensor<32x64xi32>, tensor<32x64xbf16>, tensor<32x64xf32>, tensor<4xf32>, tensor<4xi32>) {
  %0 = "ttir.zeros"() <{shape = array<i32: 32, 64>}> : () -> tensor<32x64xf32>
  %1 = "ttir.full"() <{shape = array<i32: 32, 64>, fill_value = 2.5 : f32}>
      : () -> tensor<32x64xbf16>
  %2 = "ttir.arange"() <{start = 0 : si64, end = 64 : si64, step = 1 : si64,
      arange_dimension = 1 : i64}> : () -> tensor<32x64xi32>
  %3 = "ttir.full"() <{shape = array<i32: 7, 9>, fill_value = 3 : i32}> : () -> tensor<7x9xui8>
  %4 = "ttir.div"(%i, %2) : (tensor<32x64xi32>, tensor<32x64xi32>) -> tensor<32x64xi32>
  %5 = "ttir.rand"() <{size = [32 : i32, 64 : i32], low = 0.0 : f32, high = 1.0 : f32,
      seed = 3 : ui32}> : () -> tensor<32x64xbf16>
  %6 = "ttir.elu"(%x) <{alpha = 0.5 : f32}> : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %7 = "ttir.constant"() <{value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}>
      : () -> tensor<4xf32>
  %8 = "ttir.constant"() <{value = dense<[1, 2, 3, 4]> : tensor<4xi32>}> : () -> tensor<4xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<32x64xf32>, tensor<32x64xbf16>,
      tensor<32x64xi32>, tensor<7x9xui8>, tensor<32x64xi32>, tensor<32x64xbf16>,
      tensor<32x64xf32>, tensor<4xf32>, tensor<4xi32>
}
"""


def test_tensors_that_programs_make_are_judged() -> None:
    found = [
        step
        for program in flatbuffer(CREATED).programs
        for step, operation in zip(steps(program)[1:], program.operations, strict=True)
        if operation.callee is None
    ]
    assert all(step["callee"] is not None for step in found)
    made = [[step["callee"], step["arguments"]] for step in found]
    filled = {"call": ["zeros", [[7, 9]], {**IN_DRAM, "dtype": {"dtype": "si32"}}]}
    # Bytes are filled as integers, as the C++ does.
    assert ["typecast", [{"call": ["fill", [filled, 3], {}]}, {"dtype": "u8"}]] in made
    assert ["zeros", [[32, 64]]] in made
    assert ["Tensor", [{"array": [[4], "float32"]}]] in made
    assert ["arange", [0, 64, 1]] in made


@pytest.mark.slow
def test_the_library_takes_tensors_that_programs_make(
    tmp_path: Path, ttnn_pythons: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    module, out = tmp_path / "created.mlir", tmp_path / "out"
    module.write_text(CREATED)
    for release in RELEASES:
        assert ttcodegen([str(module), "-o", str(out), "--force", "--tt-metal", release]) == 0
        assert main(["validate", str(out), "--python", ttnn_pythons(release)]) == 0
    assert "not judged" not in caplog.text


def test_what_is_in_dram_only_gets_no_memory() -> None:
    assert "memory_config" not in calls(CHAIN, 0)["matmul"]["keywords"]


def test_tensors_without_a_judge_are_made_as_they_should_be() -> None:
    (inputs, *_) = steps(entry(compiled(CHAIN, 2)))
    assert inputs["callee"] is None
    assert inputs["results"][0]["type"]["shape"] == [2048, 1024]


def test_nearly_every_kind_of_call_is_judged() -> None:
    program = entry(compiled(OTHERS, 2))
    made = {op.name for op in program.operations}
    left = {
        operation.name
        for operation, step in zip(program.operations, steps(program)[1:], strict=True)
        if step["callee"] is None
    }
    assert len(made) >= 10
    assert left == set()


def test_a_program_takes_the_tensors_that_its_constants_are() -> None:
    binary = read_flatbuffer(compiled(CONVOLUTION, 2).flatbuffer)
    assert isinstance(binary, Binary)
    programs = sorted(binary.programs, key=lambda each: each.kind == "entry")
    assert [each.kind for each in programs] == ["const_eval", "entry"]
    constants, main = joined_steps(programs)
    made = {result["id"] for step in constants for result in step["results"]}
    own = {result["id"] for step in main for result in step["results"]}
    (take,) = (step for step in main if step["callee"] == TAKE)
    assert {each["tensor"] for each in take["arguments"]} <= made
    assert made.isdisjoint(own)
    (convolution,) = (step for step in main if step["callee"] == "conv2d")
    taken = {result["id"] for result in take["results"]}
    assert convolution["keywords"]["weight_tensor"]["tensor"] in taken


def test_two_libraries_at_once_have_a_cache_each() -> None:
    assert environment()["TT_METAL_CACHE"] != environment()["TT_METAL_CACHE"]


def test_the_compiler_that_compiles_nothing(tmp_path: Path) -> None:
    compiler = tmp_path / "g++"
    compiler.write_text(compiler_of_nothing())

    def run(*arguments: str) -> str:
        command = ["sh", str(compiler), *arguments]
        return subprocess.run(
            command, check=True, cwd=tmp_path, capture_output=True, text=True
        ).stdout

    made = tmp_path / "folder of kernels" / "kernel.elf"
    run("-o", str(made), "kernel.o")
    assert made.read_bytes() == executable()
    assert made.read_bytes()[:4] == b"\x7fELF"
    run("-c", "-MMD", "-o", "kernel.o", "kernel.cc")
    assert (tmp_path / "kernel.o").read_bytes() == b""
    assert (tmp_path / "kernel.d").read_text() == "kernel.o:\n"
    run("-MD", "-MF", "named.d", "-o", "kernel.o", "-c", "kernel.cc")
    assert (tmp_path / "named.d").read_text() == "kernel.o:\n"
    assert run("--version") == "riscv-tt-elf-g++ 15.1.0\n"


def test_a_python_without_the_package_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(CONVOLUTION, 1).flatbuffer)
    assert main(["validate", str(program)]) == 1
    assert "there is no Python with the package 'ttnn'" in capsys.readouterr().err
    assert main(["validate", str(program), "--python", sys.executable]) == 1
    assert "the library ended with status 1" in capsys.readouterr().err
    (tmp_path / "python").symlink_to(sys.executable)
    assert main(["validate", str(program), "--python", "./python"]) == 1
    assert "the library ended with status 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_the_library_takes_what_the_levels_make(
    text: str, level: int, ttnn_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(text, level).flatbuffer)
    assert main(["validate", str(program), "--python", ttnn_python]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_the_library_takes_what_models_become(
    path: Path, ttnn_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ttcodegen([str(path), "-o", "out", "--optimize", "2", "-q"]) == 0
    assert main(["validate", "out/model.ttnn", "--python", ttnn_python]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_the_library_takes_what_models_become_for_a_blackhole(
    path: Path, ttnn_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card of 11x10 cores."""
    monkeypatch.chdir(tmp_path)
    options = [str(path), "-o", "out", "--optimize", "2", "--machine", "p150", "-q"]
    assert ttcodegen(options) == 0
    assert main(["validate", "out/model.ttnn", "--python", ttnn_python]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["p100", "p150", "p150_140"])
@pytest.mark.parametrize("name", ["chain", "token", "sequences"])
def test_the_library_takes_programs_for_a_blackhole(
    name: str, machine: str, ttnn_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = CompileOptions("m", optimize=2, system=load_system(machine))
    made = compile_module(Source("m.mlir", MODULES[name]), options)
    Path("model.ttnn").write_bytes(made.flatbuffer)
    assert main(["validate", "model.ttnn", "--python", ttnn_python]) == 0


def stating(release: str, folder: Path) -> str:
    """A Python whose package is of a release, and that refuses each call by its name."""
    python = folder / f"python-{release}"
    python.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "if sys.argv[1] == '-c':\n"
        f"    sys.exit(print({release!r}))\n"
        "for index, step in enumerate(json.load(open(sys.argv[-1]))):\n"
        "    refused = {} if step['callee'] in (None, 'deallocate', 'take') else "
        f"{{'refused': {release!r}}}\n"
        "    print(json.dumps({'index': index, **refused}))\n"
    )
    python.chmod(0o755)
    return str(python)


def written_for(release: str, folder: Path) -> str:
    """The flatbuffer of a module for a release."""
    module = compile_module(Source("m.mlir", CHAIN), CompileOptions("m", release=release))
    program = folder / f"{release}.ttnn"
    program.write_bytes(module.flatbuffer)
    return str(program)


@pytest.mark.parametrize("release", RELEASES)
def test_a_program_is_judged_by_the_release_that_it_was_written_for(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = written_for(release, tmp_path)
    # A build of one's own states where it comes from.
    pythons = [stating(f"{each}+local", tmp_path) for each in RELEASES]
    assert main(["validate", program, "--python", os.pathsep.join(pythons)]) == 4
    said = capsys.readouterr().err
    assert f"is refused: {release}+local" in said
    assert not any(each in said for each in RELEASES if each != release)


def test_a_program_of_a_release_that_is_not_there_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = written_for(RELEASES[-1], tmp_path)
    other = stating(RELEASES[0], tmp_path)
    assert main(["validate", program, "--python", other]) == 1
    said = capsys.readouterr().err
    assert f"written for tt-metal {RELEASES[-1]}, which no package 'ttnn' here is of" in said
    assert f"that of {other} is {RELEASES[0]}" in said
    assert "is refused" not in said
    missing = str(tmp_path / "nowhere")
    assert main(["validate", program, "--python", f"{other}{os.pathsep}{missing}"]) == 1
    assert f"no Python with the package 'ttnn' at {missing}" in capsys.readouterr().err


def dying(at: str, folder: Path) -> str:
    """A Python whose library takes every call but one, which ends it."""
    library = folder / "library"
    library.write_text(
        f"#!{sys.executable}\n"
        "import json, os, signal, sys\n"
        "for index, step in enumerate(json.load(open(sys.argv[-1]))):\n"
        f"    if step['callee'] == {at!r}:\n"
        "        os.kill(os.getpid(), signal.SIGFPE)\n"
        "    results = step['callee'] and [one['type'] for one in step['results']]\n"
        "    print(json.dumps({'index': index, 'results': results}), flush=True)\n"
    )
    library.chmod(0o755)
    return str(library)


def test_a_call_that_ends_the_library_is_refused_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(CHAIN, 0).flatbuffer)
    assert main(["validate", str(program), "--python", dying("multiply", tmp_path)]) == 4
    captured = capsys.readouterr()
    assert "ttnn.multiply (step 3) is refused: the library ended with SIGFPE" in captured.err
    assert "4 calls accepted" in captured.out + captured.err


def test_a_call_that_takes_all_memory_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(CHAIN, 0).flatbuffer)
    library = dying("multiply", tmp_path)
    text = Path(library).read_text()
    Path(library).write_text(
        text.replace(
            "os.kill(os.getpid(), signal.SIGFPE)",
            'print("what(): std::bad_alloc", file=sys.stderr, flush=True); os.abort()',
        )
    )
    assert main(["validate", str(program), "--python", library, "--memory", "3"]) == 4
    reported = "ttnn.multiply (step 3) is refused: simulating it takes more than 3 GB of memory"
    assert reported in capsys.readouterr().err
    assert main(["validate", str(program), "--python", library, "--memory", "0"]) == 2
    assert "--memory is 0, the minimum is 1" in capsys.readouterr().err


def test_a_library_that_ends_without_a_call_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(CHAIN, 0).flatbuffer)
    assert main(["validate", str(program), "--python", dying("deallocate", tmp_path)]) == 1
    assert "the library ended at 'deallocate' with SIGFPE" in capsys.readouterr().err


LIBRARY = """\
import os, signal

class Name:
    def __getattr__(self, name):
        return name

class Tensor:
    shape, layout, dtype = (), "tile", "bf16"
    def storage_type(self):
        return "host"

refused = False

def multiply(*arguments, **keywords):
    global refused
    refused = True
    raise RuntimeError("no such product")

def empty(*arguments):
    if refused:
        os.kill(os.getpid(), signal.SIGABRT)
    return Tensor()

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    named = name[0].isupper() and not name.endswith("Config")
    return Name() if named else name if name.isupper() else lambda *a, **k: Tensor()
"""
"""A library that refuses products, and ends where a tensor is made in their place."""


def test_a_result_that_cannot_be_made_is_missing_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "model.ttnn"
    program.write_bytes(compiled(CHAIN, 0).flatbuffer)
    (tmp_path / "ttnn").mkdir()
    (tmp_path / "ttnn" / "__init__.py").write_text(LIBRARY)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert main(["validate", str(program), "--card", "--python", str(python)]) == 4
    captured = capsys.readouterr()
    assert "ttnn.multiply (step 3) is refused: no such product" in captured.err
    lines = (captured.out + captured.err).splitlines()
    (later,) = [line for line in lines if "not judged" in line]
    assert "(step 5)" in later


def test_programs_are_judged_on_the_system_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, said = tmp_path / "model.ttnn", tmp_path / "said"
    program.write_bytes(compiled(CHAIN, 0).flatbuffer)
    library = Path(dying("none", tmp_path))
    library.write_text(f"{library.read_text()}open({str(said)!r}, 'w').write(' '.join(sys.argv))\n")
    command = ["validate", str(program), "--python", str(library)]
    main(command)
    assert '"arch": "wormhole_b0"' in said.read_text()
    system = tmp_path / "card.ttsys"
    assert main(["query", "--machine", "p100", "--output", str(system)]) == 0
    for option in (["--machine", "p100"], ["--system-desc", str(system)]):
        main([*command, *option])
        assert '{"arch": "blackhole", "workers": 192, "dram": 8}' in said.read_text()
    capsys.readouterr()
    assert main([*command, "--machine", "p15"]) == 1
    assert "there is no system 'p15'; did you mean p150?" in capsys.readouterr().err


def test_the_end_of_the_library_is_what_it_said_before_its_trace() -> None:
    said = (
        "RuntimeError: TT_FATAL @ cluster.cpp:129\ninfo:\nNo chips detected\nbacktrace:\n --- f()\n"
    )
    assert end(1, "", said) == "status 1: No chips detected"
    assert end(1, "", "") == "status 1: it said nothing"
