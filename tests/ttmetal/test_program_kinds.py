"""Programs that are put together alike: one function builds them all."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source


def chain(*sizes: int, op: str = "exp") -> str:
    """A product with a weight of each size, each followed by an op on each element."""
    rows = 64
    types, ops = [tensor((rows, sizes[0]), "f32")], list[str]()
    value = "%a0"
    for before, after in pairwise(sizes):
        types.append(tensor((before, after), "f32"))
        source, result = tensor((rows, before), "f32"), tensor((rows, after), "f32")
        weight = f"%a{len(types) - 1}"
        ops.append(call("matmul", [value, weight], [source, types[-1]], result))
        ops.append(call(op, [f"%{len(ops) - 1}"], [result], result))
        value = f"%{len(ops) - 1}"
    return function("f", types, ops)


def sources(text: str) -> dict[str, str]:
    """The files of a module."""
    return compile_module(Source("model.mlir", text), CompileOptions("model", "ttmetal")).files


def builders(files: dict[str, str]) -> int:
    """Number of functions that build device programs."""
    programs = "".join(text for path, text in files.items() if path.startswith("src/programs"))
    return len(re.findall(r"\bWorkload build\(", programs))


def runs(files: dict[str, str]) -> list[str]:
    """The functions that run programs."""
    return re.findall(r" (run_\w+)\(", files["src/programs.hpp"])


def test_programs_of_other_sizes_have_one_builder() -> None:
    files = sources(chain(256, 320, 384, 448))
    assert len(runs(files)) == 3
    assert builders(files) == 1
    assert files["src/programs.cpp"].count("Factory<tuning::") == 3


def test_programs_that_compute_something_else_have_their_own() -> None:
    ops = [
        call(op, [value], [tensor((64, 64), "f32")], tensor((64, 64), "f32"))
        for op, value in (("exp", "%a0"), ("sin", "%a1"))
    ]
    types = [tensor((64, 64), "f32")] * 2
    returned = f"%0, %1 : {', '.join(types)}"
    files = sources(function("f", types, ops, returned))
    assert len(runs(files)) == builders(files) == 2


def test_a_program_alone_is_no_template() -> None:
    text = sources(chain(256, 320))["src/programs.cpp"]
    assert "template" not in text
    assert "Variant" not in text


def test_equal_settings_are_written_once() -> None:
    types = [tensor((64, 64), "f32"), tensor((96, 64), "f32")]
    ops = [call("exp", [f"%a{index}"], [type_], type_) for index, type_ in enumerate(types)]
    header = sources(function("f", types, ops, f"%0, %1 : {', '.join(types)}"))["src/tuning.hpp"]
    assert header.count("static constexpr std::uint32_t grid_rows =") == 1
    assert "struct exp {" in header
    assert "struct exp_96x64 : exp {};" in header


def test_files_of_kernels_are_called_after_shapes() -> None:
    kernels = [path for path in sources(chain(256, 320, 2080)) if path.startswith("kernels/read")]
    assert not any(re.search(r"_\d{1,2}\.cpp$", path) for path in kernels)


@pytest.mark.slow
def test_programs_of_a_kind_run(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(chain(64, 96, 160, 224, 2080, 64, op="tanh"))
    given = [str(tmp_path / "model.mlir"), "-o", str(tmp_path / "out")]
    assert main([*given, "--target", "ttmetal", "--check"]) == 0
