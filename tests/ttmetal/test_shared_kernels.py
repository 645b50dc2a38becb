"""Programs whose kernels differ in names only have the same kernels."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from tests.ttmetal.function_text import call, function, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.naming.values import operand_roles
from ttcodegen.parsing.module import parse_module

SMALL, LARGE = tensor((64, 96), "bf16"), tensor((512, 512), "bf16")


def kernels_of(types: list[str], ops: list[str]) -> dict[str, str]:
    """The kernels of a function of those ops, each of which gives a result, by their files."""
    given = ", ".join(op.rsplit("-> ", 1)[1] for op in ops)
    results = ", ".join(f"%{number}" for number in range(len(ops)))
    text = function("several", types, ops, f"{results} : {given}")
    files = compile_module(Source("several.mlir", text), CompileOptions("several", "ttmetal")).files
    return {
        path.removeprefix("kernels/"): text
        for path, text in files.items()
        if path.startswith("kernels/") and "/blocks/" not in path
    }


def test_kernels_of_a_single_program_are_named_after_its_tensors() -> None:
    kernels = kernels_of([LARGE], [call("exp", ["%a0"], [LARGE], LARGE)])
    assert set(kernels) == {"read_exp.cpp", "compute_exp.cpp", "write_exp.cpp"}
    assert "a0_address" in kernels["read_exp.cpp"]


def test_kernels_that_differ_in_names_only_are_one() -> None:
    ops = [call("exp", ["%a0"], [SMALL], SMALL), call("sin", ["%a1"], [LARGE], LARGE)]
    kernels = kernels_of([SMALL, LARGE], ops)
    assert set(kernels) == {
        "read_tiles.cpp",
        "compute_exp.cpp",
        "compute_sin.cpp",
        "write_tiles.cpp",
    }
    for name, tensor_name in (("read", "input"), ("write", "output")):
        text = kernels[f"{name}_tiles.cpp"]
        assert f"{tensor_name}_address = get_arg_val" in text
        assert f'get_named_compile_time_arg_val("cb_{tensor_name}")' in text


def test_kernels_of_the_same_ops_keep_their_name() -> None:
    ops = [call("exp", [f"%a{i}"], [type_], type_) for i, type_ in enumerate((SMALL, LARGE))]
    kernels = kernels_of([SMALL, LARGE], ops)
    assert set(kernels) == {"read_exp.cpp", "compute_exp.cpp", "write_exp.cpp"}
    assert "Reads the input tiles of exp." in kernels["read_exp.cpp"]


def test_kernels_of_other_data_types_differ() -> None:
    """The text of a kernel says what its circular buffers hold."""
    wide = tensor((64, 96), "f32")
    ops = [call("exp", ["%a0"], [SMALL], SMALL), call("exp", ["%a1"], [wide], wide)]
    writers = [text for name, text in kernels_of([SMALL, wide], ops).items() if "write" in name]
    assert sorted("f32" in text for text in writers) == [False, True]


MATRIX, ROW = tensor((128, 128), "bf16"), tensor((1, 128), "bf16")


@pytest.mark.parametrize(
    ("types", "ops", "roles"),
    [
        pytest.param(
            [MATRIX, MATRIX, ROW],
            [("matmul", "ab"), ("add", "0c")],
            ["left", "right", "bias"],
            id="product",
        ),
        pytest.param(
            [MATRIX, MATRIX, MATRIX],
            [("matmul", "ab"), ("add", "c0")],
            ["left", "right", "residual"],
            id="residual",
        ),
        pytest.param([MATRIX, ROW], [("multiply", "ab")], ["input", "scale"], id="scale"),
        pytest.param([MATRIX, MATRIX], [("subtract", "ab")], ["left", "right"], id="sides"),
        pytest.param(
            [MATRIX, MATRIX, MATRIX],
            [("exp", "a"), ("where", "0bc")],
            ["condition", "first", "second"],
            id="ternary",
        ),
        pytest.param([MATRIX], [("exp", "a"), ("sin", "0")], ["input"], id="unary"),
    ],
)
def test_tensors_of_shared_kernels_are_called_by_their_roles(
    types: list[str], ops: list[tuple[str, str]], roles: list[str]
) -> None:
    """Operands: `a` is the first tensor that the function takes, `0` the first result."""
    lines = [
        call(name, [f"%a{'abc'.index(x)}" if x in "abc" else f"%{x}" for x in operands],
             [types["abc".index(x)] if x in "abc" else MATRIX for x in operands], MATRIX)
        for name, operands in ops
    ]  # fmt: skip
    last = f"%{len(ops) - 1} : {MATRIX}"
    module = parse_module(Source("roles.mlir", function("roles", types, lines, last)))
    (meaning,) = (op for op in module.ops if isinstance(op, FuncOp))
    assert operand_roles(meaning) == roles
