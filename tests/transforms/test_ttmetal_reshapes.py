"""Reshapes that distribute rows over more tiles move after what works row by row."""

from __future__ import annotations

import pytest

from tests.random_programs.checking import failures_built_together
from tests.ttmetal.function_text import call, function, tensor
from tests.ttmetal.test_grouping import names
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

USERS, WIDTH = 32, 256
FLAT, ROWS_APART = tensor((USERS, WIDTH), "bf16"), tensor((USERS, 1, WIDTH), "bf16")
ROW = tensor((WIDTH,), "bf16")


def moved(name: str, *ops: str, result: str = ROWS_APART, arguments: tuple[str, ...] = ()) -> str:
    """A function that reads %0, rows of tiles of one row each, made of the sums of users."""
    made = [
        call("add", ["%a0", "%a1"], [FLAT, FLAT], FLAT),
        call(
            "reshape", ["%0"], [FLAT], ROWS_APART, shape=f"[{USERS} : i32, 1 : i32, {WIDTH} : i32]"
        ),
    ]
    types = [FLAT, FLAT, *arguments]
    return function(name, types, [*made, *ops], f"%{len(ops) + 1} : {result}")


def flattened(number: int) -> str:
    """A reshape back of a value of that number."""
    shape = f"[{USERS} : i32, {WIDTH} : i32]"
    return call("reshape", [f"%{number}"], [ROWS_APART], FLAT, shape=shape)


NORM = {"normalized_shape": f"array<i64: {WIDTH}>", "operandSegmentSizes": "array<i32: 1, 1, 0>"}
COLUMN, FLAT_COLUMN = tensor((USERS, 1, 1), "bf16"), tensor((USERS, 1), "bf16")
CASES = {
    "unary": moved(
        "unary", call("silu", ["%1"], [ROWS_APART], ROWS_APART), flattened(2), result=FLAT
    ),
    "binary": moved(
        "binary",
        call("multiply", ["%1", "%1"], [ROWS_APART, ROWS_APART], ROWS_APART),
        flattened(2),
        result=FLAT,
    ),
    "row": moved(
        "row",
        call("multiply", ["%1", "%a2"], [ROWS_APART, ROW], ROWS_APART),
        flattened(2),
        result=FLAT,
        arguments=(ROW,),
    ),
    "softmax": moved(
        "softmax",
        call("softmax", ["%1"], [ROWS_APART], ROWS_APART, dimension="2 : si32"),
        flattened(2),
        result=FLAT,
    ),
    "norm": moved(
        "norm",
        call("rms_norm", ["%1", "%a2"], [ROWS_APART, ROW], ROWS_APART, **NORM),
        flattened(2),
        result=FLAT,
        arguments=(ROW,),
    ),
    "total": moved(
        "total",
        call("sum", ["%1"], [ROWS_APART], COLUMN, dim_arg="[2 : i32]", keep_dim="true"),
        call("reshape", ["%2"], [COLUMN], FLAT_COLUMN, shape=f"[{USERS} : i32, 1 : i32]"),
        result=FLAT_COLUMN,
    ),
}
"""Functions in which rows need not be distributed at all."""


@pytest.mark.parametrize("name", [name for name in CASES if name != "binary"])
def test_no_element_moves(name: str) -> None:
    assert len(names(CASES[name])) == 1


def test_what_others_read_too_stays_where_it_is() -> None:
    """Both operands are the reshaped tensor: it has two uses."""
    assert names(CASES["binary"]) == ["add", "reshape", "multiply", "reshape_2"]


def test_columns_of_several_users_do_not_wait() -> None:
    """Along the users: these are no rows."""
    total = tensor((1, 1, WIDTH), "bf16")
    text = moved(
        "f",
        call("sum", ["%1"], [ROWS_APART], total, dim_arg="[0 : i32]", keep_dim="true"),
        result=total,
    )
    assert "reshape" in names(text)


@pytest.mark.slow
def test_the_results_stay_the_same(toolchain: Toolchain, cpu_backend: CPUBackend) -> None:
    text = f"module {{\n{''.join(CASES.values())}}}\n"
    assert failures_built_together(drawn(text), toolchain, "ttmetal") == {}


def drawn(text: str) -> str:
    """The module with arguments that say how they are drawn."""
    words = "{drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = %d : i64}"
    for number in range(3):
        for type_ in (FLAT, ROW):
            text = text.replace(f"%a{number}: {type_}", f"%a{number}: {type_} {words % number}")
    return text
