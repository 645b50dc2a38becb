"""Rows in order: what is no number, and rows that do not fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.test_grouping import programs
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend


def greatest(name: str, element: str) -> str:
    """A function that says where the greatest element of each row is."""
    types = [tensor((3, 40, 70), element)]
    words = {"dim_arg": "[2 : i32]", "keep_dim": "false"}
    return function(name, types, [call("argmax", ["%a0"], types, tensor((3, 40), "si32"), **words)])


def test_rows_whose_order_does_not_fit_into_l1_have_no_program() -> None:
    def whole(size: int) -> str:
        types = [tensor((32, size), element) for element in ("f32", "si32")]
        both = ", ".join(types)
        op = f'%0, %1 = "ttir.sort"(%a0) : ({types[0]}) -> ({both})'
        body = f"    {op}\n    return %0, %1 : {both}\n"
        return f"  func.func @f(%a0: {types[0]}) -> ({both}) {{\n{body}  }}\n"

    [program] = programs(whole(1024), cpu_hoist=False)
    assert (program.work_units, program.work_unit) == (1, "row of output tiles")
    with pytest.raises(CompileError, match="rows that do not fit into L1"):
        programs(whole(4096), cpu_hoist=False)


@pytest.mark.slow
def test_what_is_no_number_is_the_greatest_but_of_float32(
    cpu_backend: CPUBackend, tmp_path: Path
) -> None:
    source, out = tmp_path / "greatest.mlir", tmp_path / "out"
    source.write_text(f"module {{\n{greatest('narrow', 'bf16')}{greatest('wide', 'f32')}}}\n")
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--build", "-q"]) == 0
    x = np.random.default_rng(0).integers(-100, 100, (3, 40, 70)).astype(np.float32)
    x[0, 0, 5] = x[1, 2, 30:] = x[2, 3, :] = np.nan
    x[0, 1, 7] = -np.nan
    x[0, 2, :] = -np.inf
    np.save(tmp_path / "a0.npy", x)
    command = [out / "build" / "greatest_main", "--outputs", tmp_path]
    command += ["--input", f"a0={tmp_path / 'a0.npy'}"]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    narrow, wide = (np.load(tmp_path / name / "output.npy") for name in ("narrow", "wide"))
    assert np.array_equal(narrow, np.argmax(x, axis=-1))
    assert np.array_equal(wide, np.argmax(np.where(np.isnan(x), -np.inf, x), axis=-1))


def test_flatbuffers_order_the_bits_of_elements_as_programs_do() -> None:
    source = Source("m.mlir", f"module {{\n{greatest('narrow', 'bf16')}}}\n")
    compiled = compile_module(source, CompileOptions("m", target="ttmetal"))
    x = np.zeros((3, 40, 70), ml_dtypes.bfloat16)
    x[0, :, 5] = x[1, :, 60] = np.nan
    x[2, :, 7] = np.inf
    (run,) = run_in_numpy(source, compiled, lambda *_: (x,))
    for found in (run.golden[0], run.flatbuffer[0]):
        assert np.array_equal(found, np.repeat([[5], [60], [7]], 40, axis=1))
