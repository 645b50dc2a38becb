"""Operations whose nodes all do the same, as functions of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.lang.running import PROGRAMS, operation, run_text
from ttcodegen.cli.ttcodegen import main as compiler
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.compiler.operations import compile_operation
from ttcodegen.lang.compiler.outlining import NotRegularError
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import GenericModule, Projects, generic_module
from ttcodegen.lang.simulator.context import Launch
from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS
from ttcodegen.lang.simulator.recording import record


def lifted(source: Source, *arguments: object) -> GenericModule:
    """The only operation of a program as a module; checks that it computes what the simulator
    does."""
    found: list[GenericModule] = []

    def watch(launch: Launch) -> Callable[[], None]:
        record(launch)
        compiled = compile_operation(launch)
        inputs = [tensor.stored().copy() for tensor in compiled.inputs]

        def finish() -> None:
            found.append(generic_module(launch, compiled))
            for tensor, array in zip(compiled.outputs, found[-1].run(inputs), strict=True):
                expected = tensor.elements()
                scale = np.abs(expected[np.isfinite(expected)]).max()
                np.testing.assert_allclose(
                    array.astype(np.float32), expected, rtol=2**-7, atol=2**-7 * scale
                )

        return finish

    run_program_text(source, [str(argument) for argument in arguments], watch)
    (module,) = found
    return module


def program(name: str) -> Source:
    return Source.read(str(PROGRAMS / f"{name}.py"))


def ops(text: str) -> list[str]:
    """The ops of a function, in order."""
    return [line.split('"ttir.')[1].split('"')[0] for line in text.splitlines() if '"ttir.' in line]


@pytest.mark.parametrize("grid", [(1, 1), (8, 8), (3, 5)])
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("columns", (6, 31, 3), ["neg"]),
        (
            "elementwise",
            (256, 64, 4),
            ["reshape", "reshape", "multiply", "multiply", "subtract", "multiply", "subtract",
             "multiply", "subtract", "sqrt", "sum", "reshape",
             "add", "add", "add", "sqrt", "sum"],
        ),
        (
            "matmul",
            ("4,6,1,2", "2,1,3,1"),
            ["reshape", "broadcast", "matmul", "reshape", "add"],
        ),
    ],
)  # fmt: skip
def test_examples_of_the_specification(
    name: str, arguments: tuple[object, ...], expected: list[str], grid: tuple[int, int]
) -> None:
    module = lifted(program(name), *arguments, *grid)
    assert ops(module.source.text) == expected
    assert f"grid = #ttcore.grid<{grid[1]}x{grid[0]}>" in module.text


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("rows", ("softmax", 5, 3, 2, 2), {"exp", "sum", "max", "subtract"}),
        ("rows", ("rms-norm-matmul", 5, 3, 2, 2), {"rsqrt", "matmul", "sum"}),
        ("rows", ("masked", 5, 3, 2, 2), {"where"}),
        ("split_k", (), {"matmul"}),
        ("transposed_norm", (), {"transpose", "sum"}),
        ("sharded", ("block",), {"add"}),
    ],
)
def test_operations_of_models(name: str, arguments: tuple[object, ...], expected: set[str]) -> None:
    assert expected <= {*ops(lifted(program(name), *arguments).source.text)}


READ = """
@ttl.datamovement()
def read():
    for row in range(2):
        for column in range(2):
            with x_dfb.reserve() as x_blk:
                ttl.copy(x[READ], x_blk).wait()
@ttl.compute()
def compute():
    for step in range(4):
        with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
            y_blk.store(EXPRESSION)
@ttl.datamovement()
def write():
    for row in range(2):
        for column in range(2):
            with y_dfb.wait() as y_blk:
                ttl.copy(y_blk, y[WRITE]).wait()
"""


def elementwise(expression: str, read: str = "row, column", write: str = "row, column") -> Source:
    """A program that computes tiles of 2x2."""
    body = READ.replace("EXPRESSION", expression).replace("READ", read).replace("WRITE", write)
    return Source("program.py", operation(body))


@pytest.mark.parametrize("name", MATH_FUNCTIONS)
def test_functions_of_each_element(name: str) -> None:
    numbers = {"celu": (2, 0.5), "clamp": (0, 1), "hardtanh": (0, 1), "threshold": (0.5, 2),
               "softplus": (1, 1, 20), "selu": (1, 2)}  # fmt: skip
    given = numbers.get(name, (2,) * len(MATH_FUNCTIONS[name].numbers))
    call = ", ".join(["x_blk", *map(str, given)])
    lifted(elementwise(f"ttl.math.{name}({call})"))


@pytest.mark.parametrize(
    "expression",
    ["x_blk - x_blk * x_blk", "-x_blk / abs(x_blk)", "x_blk ** 3", "ttl.math.min(x_blk, -x_blk)",
     "ttl.block.where(ttl.math.sign(x_blk), x_blk, -x_blk)",
     "ttl.block.mask_posinf(x_blk, ttl.math.floor(x_blk))",
     "x_blk + ttl.block.fill(0.5, shape=(1, 1))", "x_blk % abs(x_blk)", "x_blk // abs(x_blk)"],
)  # fmt: skip
def test_operators_and_functions_of_blocks(expression: str) -> None:
    lifted(elementwise(expression))


def of_type(dtype: str) -> Source:
    """A program that copies tiles of a type."""
    copied = elementwise("x_blk").text.replace("(64, 64))", f"(64, 64), {dtype})")
    return Source("program.py", copied.replace("ttnn.rand((64, 64)", "ttnn.ones((64, 64)"))


@pytest.mark.parametrize(
    ("expression", "op"),
    [("x_blk ^ x_blk", "bitwise_xor"), ("x_blk % x_blk", "remainder"), ("-x_blk", "neg"),
     ("x_blk * ttl.block.fill(3, shape=(1, 1))", "full")],
)  # fmt: skip
def test_blocks_of_integers(expression: str, op: str) -> None:
    text = of_type("ttnn.int32").text.replace("store(x_blk)", f"store({expression})")
    found = lifted(Source("program.py", text)).source.text
    assert "tensor<64x64xsi32>" in found
    assert op in ops(found)


@pytest.mark.parametrize("operator", ["//", "%"])
@pytest.mark.parametrize("divisor", [7, -7])
def test_integers_are_divided_downwards(operator: str, divisor: int) -> None:
    text = of_type("ttnn.int32").text
    drawn = (
        "ttnn.from_torch(np.arange(-2048, 2048, dtype=np.int32).reshape(64, 64), "
        "layout=ttnn.TILE_LAYOUT)"
    )
    text = text.replace("ttnn.ones((64, 64), ttnn.int32)", drawn)
    text = "import numpy as np\n" + text.replace(
        "store(x_blk)", f"store(x_blk {operator} ttl.block.fill({divisor}, shape=(1, 1)))"
    )
    assert "arange" in text
    lifted(Source("program.py", text))


def test_tiles_of_a_column_that_is_broadcast_have_a_map_of_their_own() -> None:
    text = lifted(program("elementwise"), 256, 64, 4, 1, 1).text
    assert "affine_map<(d0, d1) -> (d0, 0)>" in text
    assert "iterator_types = [#parallel, #reduction]" in text


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            elementwise("x_blk", read="column, row"),
            "it reads tensors at other positions than it writes",
        ),
        (elementwise("x_blk", write="row, 0"), "it does not write each part of its results once"),
        (program("attention"), "it reads a part of a tensor only"),
        (program("ring"), "it reads tensors at other positions than it writes"),
        (program("integers"), "it reads tensors at other positions than it writes"),
        (
            of_type("ttnn.bfloat8_b"),
            "it has tensors of other types than float32 and bfloat16, or than int32",
        ),
        (
            elementwise("ttl.math.reduce_sum(x_blk, dims=[0], shape=(1, 1))"),
            "its loops do not go over whole rows or columns",
        ),
    ],
)
def test_why_an_operation_is_no_function_of_whole_tensors(source: Source, reason: str) -> None:
    def watch(launch: Launch) -> Callable[[], None]:
        record(launch)

        def finish() -> None:
            compiled = compile_operation(launch)
            with pytest.raises(NotRegularError, match=reason):
                generic_module(launch, compiled)
            done.append(True)

        return finish

    done: list[bool] = []
    arguments = {"attention": ["3", "2", "3", "2", "8", "8"], "ring": ["5"]}
    run_program_text(source, arguments.get(Path(source.name).stem, []), watch)
    assert done == [True]


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert "op" in run_text(elementwise("x_blk").text)


@pytest.mark.slow
def test_the_common_path_compiles_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = program("rows")
    projects = Projects(source.digest, tmp_path, checks=True, has_modules=True)
    run_program_text(source, ["rms-norm-matmul", "5", "3", "2", "2"], projects.watch)
    names = [each.output for each in projects.comparisons]
    assert names == ["y as ttir.generic", "y"]
    assert all(each.agreement.passed for each in projects.comparisons)
    module = tmp_path / "rows" / "rows.generic.mlir"
    options = ["--target", "ttmetal", "--check", "-o", str(tmp_path / "out")]
    assert compiler([str(module), *options]) == 0
    assert "checked: 1 output agrees" in capfd.readouterr().err
