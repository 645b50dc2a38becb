"""Values that others say are right, in the three meanings of a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from tests.judges.built import built
from tests.judges.built_ops import built_ops
from tests.judges.interpreted import interpreted
from tests.judges.values import Case, cases
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.frontends import read_module
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.interpreter import Interpreter
from ttcodegen.project.cpu_backend import CPUBackend

CASES = {case.name: case for case in [*cases(), *interpreted()]}


def differences(case: Case, found: np.ndarray) -> str:
    """Describes differences from the expected values; empty if there are none."""
    expected = case.expected
    if found.shape != expected.shape:
        return f"a shape of {found.shape}"
    if case.near:
        a, b = found.astype(np.float64), expected.astype(np.float64)
        same = np.isclose(a, b, rtol=case.near, atol=1e-6, equal_nan=True)
    elif expected.dtype.kind in "biu":
        same = found.astype(np.int64) == expected.astype(np.int64)
    else:
        same = (found == expected) & (np.signbit(found) == np.signbit(expected))
        same |= np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    return "" if same.all() else f"{found[~same]} instead of {expected[~same]}"


@pytest.mark.parametrize("name", CASES)
def test_the_source_and_the_flatbuffer_give_the_values(name: str) -> None:
    case = CASES[name]
    source = Source("case.mlir", f"module {{\n{case.text()}}}\n")
    assert differences(case, Golden(read_module(source)).run(name, list(case.inputs))[0]) == ""
    compiled = compile_module(source, CompileOptions("case"))
    found = Interpreter(read_ttnn(compiled.flatbuffer)).run(name, list(case.inputs))[0]
    assert differences(case, found) == ""


@pytest.mark.frameworks
@pytest.mark.parametrize("kind", ["all", "some of each type"])
def test_ops_with_options_of_the_golden_tests_give_the_values(kind: str) -> None:
    """Many in one module, which their sources and the flatbuffer compute."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    # The script judges the others (docs/judges.md).
    cases = built() if kind == "all" else built_ops()[::13]
    source = Source("built.mlir", "\n".join(case.text() for case in cases))
    golden = Golden(read_module(source))
    lowered = Interpreter(read_ttnn(compile_module(source, CompileOptions("built")).flatbuffer))
    wrong: list[str] = []
    for case in cases:
        for run in (golden, lowered):
            (found,) = run.run(case.name, list(case.inputs))
            if said := differences(case, found):
                wrong.append(f"{case.name}: {said}")
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--optimize", "0"], ["--optimize", "2"]])
def test_the_cpp_gives_the_values(
    cpu_backend: CPUBackend, tmp_path: Path, options: list[str]
) -> None:
    text = "\n".join(case.text() for case in CASES.values())
    file, out = tmp_path / "values.mlir", tmp_path / "out"
    file.write_text(f"module {{\n{text}}}\n")
    assert main([str(file), "-o", str(out), *options, "--build", "--no-format"]) == 0
    model = ttcodegen.load(out)
    wrong: dict[str, str] = {}
    for case in CASES.values():
        found = np.asarray(getattr(model, case.name)(*case.inputs))
        if said := differences(case, found):
            wrong[case.name] = said
    assert wrong == {}
