"""Modules of functions that show what programs of the device can do, by what they are about."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ttmetal.function_text import array, call, function, integers, tensor
from tests.ttmetal.matrix_functions import attention, hidden, matmuls, windows
from tests.ttmetal.moving_functions import caches, movements, reorderings, scatters
from tests.ttmetal.other_functions import of_bits_and_places, of_integers
from tests.ttmetal.row_functions import layers, reductions, rows, scans


def plumbing() -> Iterator[str]:
    """Functions that return several values, arguments, constants and views."""
    a, row = tensor((40, 70), "f32"), tensor((1, 70), "f32")
    listed = ", ".join(f"{number / 8:.3f}" for number in range(70))
    numbers = call("constant", [], [], row, value=f"dense<[[{listed}]]> : {row}")
    total = {"dim_arg": integers((1,)), "keep_dim": "true"}
    column = tensor((40, 1), "f32")
    yield function(
        "several_results",
        [a, a],
        [
            numbers,
            call("add", ["%a0", "%0"], [a, row], a),
            call("exp", ["%a1"], [a], a),
            call("multiply", ["%1", "%2"], [a, a], a),
            call("sum", ["%3"], [a], column, **total),
            call("subtract", ["%3", "%4"], [a, column], a),
        ],
        f"%1, %5, %3, %4 : {a}, {a}, {a}, {column}",
    )
    yield function("unchanged", [a, row], [call("neg", ["%a0"], [a], a)],
                   f"%a1, %0, %a0 : {row}, {a}, {a}")  # fmt: skip
    yield function("twice", [a], [call("abs", ["%a0"], [a], a)], f"%0, %0 : {a}, {a}")
    for element, value in (("f32", "0.3 : f32"), ("bf16", "-2.0 : f32"), ("si32", "7 : i32")):
        filled = tensor((3, 40), element)
        yield function(
            f"filled_{element}",
            [],
            [call("full", [], [], filled, shape="array<i32: 3, 40>", fill_value=value)],
        )
    yield function("kept_constant", [], [numbers])
    small = tensor((40, 70), "ui16")
    hundred = call("full", [], [], a, shape="array<i32: 40, 70>", fill_value="100.0 : f32")
    grown = call("multiply", ["%a0", "%0"], [a, a], a)
    yield function("fractions_cut_off", [a], [hundred, grown, call("typecast", ["%1"], [a], small)])
    view = tensor((1, 40, 70), "f32")
    yield function(
        "free_reshape",
        [a],
        [
            call("sin", ["%a0"], [a], a),
            call("reshape", ["%0"], [a], view, shape=integers((1, 40, 70))),
            call("cos", ["%1"], [view], view),
            call("reshape", ["%2"], [view], a, shape=integers((40, 70))),
        ],
        f"%3, %1 : {a}, {view}",
    )


def sharing() -> Iterator[str]:
    """Values that one program reads in several places."""
    a, column = tensor((64, 70), "bf16"), tensor((64, 1), "bf16")
    total = {"dim_arg": integers((1,)), "keep_dim": "true"}
    yield function(
        "around_a_reduction",
        [a, column],
        [
            call("multiply", ["%a0", "%a1"], [a, column], a),
            call("sum", ["%0"], [a], column, **total),
            call("add", ["%1", "%a1"], [column] * 2, column),
        ],
    )
    yield function(
        "results_in_other_registers",
        [a, column],
        [
            call("sum", ["%a0"], [a], column, **total),
            call("add", ["%a1", "%0"], [column] * 2, column),
            call("exp", ["%0"], [column], column),
        ],
        f"%1, %0, %2 : {column}, {column}, {column}",
    )
    square = tensor((96, 96), "bf16")
    for name, left, right, last in (
        ("left_and_behind", "%a0", "%a1", "%a0"),
        ("right_and_behind", "%a0", "%a1", "%a1"),
        ("everywhere", "%a0", "%a0", "%a0"),
    ):
        ops = [
            call("matmul", [left, right], [square] * 2, square),
            call("add", ["%0", last], [square] * 2, square),
        ]
        yield function(name, [square] * 2, ops)
    yield function(
        "filled",
        [square],
        [
            call("full", [], [], square, shape="array<i32: 96, 96>", fill_value="3.0 : f32"),
            call("add", ["%0", "%a0"], [square] * 2, square),
            call("matmul", ["%1", "%0"], [square] * 2, square),
            call("multiply", ["%2", "%0"], [square] * 2, square),
        ],
        f"%0, %3 : {square}, {square}",
    )


def broadcasts() -> Iterator[str]:
    """Operands whose tiles cores need several times, and keep."""
    for element in ("bf16", "f32"):
        shapes = (4096, 64), (1, 64), (4096, 1), (1, 1)
        types = [tensor(shape, element) for shape in shapes]
        column = tensor((4096, 1), element)
        ops = [
            call("multiply", ["%a0", "%a1"], types[:2], types[0]),
            call("add", ["%0", "%a2"], [types[0], column], types[0]),
            call("subtract", ["%1", "%a3"], [types[0], types[3]], types[0]),
            call("sum", ["%2"], types[:1], column, dim_arg=integers((1,)), keep_dim="true"),
            call("multiply", ["%3", "%a3"], [column, types[3]], column),
        ]
        yield function(f"kept_{element}", types, ops)


_OFTEN_MEANT = """
    x x_address x_tensor cb_x reserve_back noc_async_read_page get_write_ptr row column batch_0 tile
    first count left right partial scaler program programs device workload core cores share reader
    compute writer reader_kernel output_tiles read_left receive_right left_sent class
""".split()


def names() -> Iterator[str]:
    """Tensors that are called as kernels, host and the device's API call other things."""
    square = tensor((64, 64), "bf16")
    for number in range(0, len(_OFTEN_MEANT), 4):
        given = [*_OFTEN_MEANT[number:], "y", "z", "w"][:4]
        types = [f'{square} {{ttir.name = "{name}"}}' for name in given]
        ops = [
            call("matmul", ["%a0", "%a1"], [square] * 2, square),
            call("add", ["%0", "%a2"], [square] * 2, square),
            call("subtract", ["%a3", "%a2"], [square] * 2, square),
            call("permute", ["%2"], [square], square, permutation=array((1, 0))),
        ]
        yield function(f"names_{number // 4}", types, ops, f"%1, %3 : {square}, {square}")


def draws() -> Iterator[str]:
    """Random numbers, which are the same in all three runs."""
    for element, shape, low, high in (
        ("bf16", (64, 70), -1.0, 3.0),
        ("f32", (2, 3, 40, 33), 0.0, 1.0),
        ("f32", (50,), -2.0, -1.5),
    ):
        numbers = tensor(shape, element)
        size = f"[{', '.join(f'{each} : i32' for each in shape)}]"
        of_rand = {"size": size, "low": f"{low} : f32", "high": f"{high} : f32", "seed": "3 : ui32"}
        of_dropout = {"prob": "0.25 : f32", "scale": "1.25 : f32", "seed": "4294967295 : ui32"}
        yield function(
            f"drawn_{element}_{len(shape)}",
            [numbers],
            [
                call("rand", [], [], numbers, **of_rand),
                call("multiply", ["%a0", "%0"], [numbers] * 2, numbers),
                call("dropout", ["%1"], [numbers], numbers, **of_dropout),
                call("exp", ["%2"], [numbers], numbers),
            ],
            f"%0, %2, %3 : {numbers}, {numbers}, {numbers}",
        )
    scores, total = tensor((3, 64, 40), "bf16"), tensor((3, 64, 1), "bf16")
    half = {"prob": "0.5 : f32", "scale": "2.0 : f32"}
    yield function(
        "dropped_rows",
        [scores],
        [
            call("softmax", ["%a0"], [scores], scores, dimension="2 : si32"),
            call("dropout", ["%0"], [scores], scores, **half),
            call("sum", ["%1"], [scores], total, dim_arg=integers((2,)), keep_dim="true"),
        ],
        f"%1, %2 : {scores}, {total}",
    )


MODULES = {
    "reductions": reductions,
    "matmuls": matmuls,
    "movements": movements,
    "layers": layers,
    "reorderings": reorderings,
    "rows": rows,
    "attention": attention,
    "hidden": hidden,
    "plumbing": plumbing,
    "sharing": sharing,
    "broadcasts": broadcasts,
    "names": names,
    "caches": caches,
    "scatters": scatters,
    "scans": scans,
    "windows": windows,
    "integers": of_integers,
    "places": of_bits_and_places,
    "draws": draws,
}


def text_of(name: str) -> str:
    """The text of a module by its name in `MODULES`."""
    return f"module {{\n{''.join(MODULES[name]())}}}\n"
