"""Modules from which every construct of device kernels is emitted, as TTIR text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttcodegen.conversions.ttir_to_ttmetal.coverage import obstacle
from ttcodegen.diagnostics import Source
from ttcodegen.dialects.operation import CatalogueOp
from ttcodegen.dialects.ttir import ttir_op_classes
from ttcodegen.ops.definition import TTIRDefinition
from ttcodegen.parsing import parse_module

ROOT = Path(__file__).resolve().parents[2]
DATA_TYPES = ("bf16", "f32", "si32", "ui32", "ui16", "ui8")
_ARGUMENTS = ("%a0", "%a1", "%a2")
_ATTRIBUTES = {"clamp_scalar": "<{min = 0.0 : f32, max = 1.0 : f32}>"}


@dataclass(frozen=True)
class Function:
    """A function of one result.

    Attributes:
        name: its name.
        arguments: the types of its arguments %a0, %a1 and so on, without `tensor`.
        ops: its ops; the last one gives the result.
    """

    name: str
    arguments: tuple[str, ...]
    ops: tuple[str, ...]

    def __str__(self) -> str:
        arguments = ", ".join(f"%a{n}: tensor<{t}>" for n, t in enumerate(self.arguments))
        result = self.ops[-1].rsplit("-> ", 1)[1]
        body = "".join(f"    %{number} = {op}\n" for number, op in enumerate(self.ops))
        return (
            f"  func.func @{self.name}({arguments}) -> {result} {{\n"
            f"{body}    return %{len(self.ops) - 1} : {result}\n  }}\n"
        )


def module(functions: Iterable[Function]) -> str:
    """The text of a module."""
    return f"module {{\n{''.join(map(str, functions))}}}\n"


def _op(
    name: str, operands: Sequence[str], types: Sequence[str], result: str, attributes: str = ""
) -> str:
    values = ", ".join(operands[: len(types)])
    listed = ", ".join(f"tensor<{type_}>" for type_ in types)
    return f'"ttir.{name}"({values}) {attributes} : ({listed}) -> tensor<{result}>'


def _has_program(op: str, *arguments: str) -> bool:
    text = module([Function("alone", arguments, (op,))])
    parsed = parse_module(Source("alone.mlir", text))
    return not any(isinstance(op, CatalogueOp) and obstacle(op) for op in parsed.walk())


def elementwise(data_type: str) -> Function:
    """A chain of all elementwise ops that there are kernels for in a data type."""
    tensor = f"64x96x{data_type}"
    ops: list[str] = []
    for op_class in ttir_op_classes().values():
        definition = op_class.definition
        assert isinstance(definition, TTIRDefinition)
        name = definition.name.removeprefix("ttir.")
        if definition.tile is None or name in ("to_layout", "typecast"):
            continue
        count = sum(operand.count == "one" for operand in definition.operands)
        types, attributes = [tensor] * count, _ATTRIBUTES.get(name, "")
        if _has_program(_op(name, _ARGUMENTS, types, tensor, attributes), *[tensor] * 3):
            before = f"%{len(ops) - 1}" if ops else "%a0"
            operands = (before, *_ARGUMENTS[1:])
            ops.append(_op(name, operands, types, tensor, attributes))
    return Function(f"elementwise_{data_type}", (tensor,) * 3, tuple(ops))


def typecasts() -> list[Function]:
    """Functions from and to bf16, for each other data type that there is a kernel for."""
    functions: list[Function] = []
    for other in DATA_TYPES:
        for source, target in ((other, "bf16"), ("bf16", other)):
            types = (f"32x32x{source}",)
            op = _op("typecast", _ARGUMENTS, types, f"32x32x{target}")
            if source != target and _has_program(op, *types):
                functions.append(Function(f"typecast_{source}_{target}", types, (op,)))
    return functions


def _of_one_op(rows: Iterable[tuple[str, tuple[str, ...], str, str]]) -> list[Function]:
    """A function for each row of name, types of operands, type of the result and attributes."""
    return [
        Function(f"{name}_{number}", types, (_op(name, _ARGUMENTS, types, result, attributes),))
        for number, (name, types, result, attributes) in enumerate(rows)
    ]


def _slice(begins: str, ends: str, step: str) -> str:
    return f"<{{begins = [{begins} : i32], ends = [{ends} : i32], step = [{step} : i32]}}>"


PRODUCTS = _of_one_op(
    [
        ("matmul", ("256x512xbf16", "512x256xbf16"), "256x256xbf16", ""),
        ("matmul", ("256x512xf32", "512x256xf32"), "256x256xf32", ""),
        ("matmul", ("4x70x50xbf16", "4x50x33xbf16"), "4x70x33xbf16", ""),
        ("matmul", ("4x70x50xbf16", "50x33xbf16"), "4x70x33xbf16", ""),
        ("matmul", ("64x96xbf16", "64x96xbf16"), "64x64xbf16", "<{transpose_b = true}>"),
        ("linear", ("32x256xbf16", "256x1024xbf16", "1024xbf16"), "32x1024xbf16", ""),
        ("linear", ("128x64xf32", "64x64xf32", "64xf32"), "128x64xf32", ""),
    ]
)
REDUCTIONS = _of_one_op(
    (
        name,
        (f"3x50x70x{data_type}",),
        f"{shape}x{data_type}",
        f"<{{dim_arg = {dims}, keep_dim = true}}>",
    )
    for name, data_type in (("sum", "bf16"), ("mean", "f32"), ("max", "bf16"), ("min", "f32"))
    for dims, shape in (
        ("[2 : i32]", "3x50x1"),
        ("[1 : i32]", "3x1x70"),
        ("[0 : i32]", "1x50x70"),
        ("[1 : i32, 2 : i32]", "3x1x1"),
    )
)
MOVEMENTS = _of_one_op(
    (name, tuple(f"{shape}x{data_type}" for shape in shapes), f"{result}x{data_type}", attributes)
    for data_type in ("bf16", "si32")
    for name, shapes, result, attributes in (
        ("permute", ("2x50x70",), "70x2x50", "<{permutation = array<i64: 2, 0, 1>}>"),
        ("transpose", ("2x64x96",), "2x96x64", "<{dim0 = 1 : si32, dim1 = 2 : si32}>"),
        ("reshape", ("2x50x70",), "100x70", "<{shape = [100 : i32, 70 : i32]}>"),
        ("reshape", ("2x64x96",), "4x32x96", "<{shape = [4 : i32, 32 : i32, 96 : i32]}>"),
        ("concat", ("2x50x70", "2x50x33"), "2x50x103", "<{dim = 2 : si32}>"),
        ("concat", ("64x96", "32x96"), "96x96", "<{dim = 0 : si32}>"),
        ("slice_static", ("50x70",), "20x30", _slice("10 : i32, 5", "50 : i32, 65", "2 : i32, 2")),
        ("slice_static", ("64x96",), "32x96", _slice("32 : i32, 0", "64 : i32, 96", "1 : i32, 1")),
        ("pad", ("50x70",), "53x75", "<{padding = array<i32: 1, 2, 3, 2>, value = 0.0 : f32}>"),
        ("broadcast", ("1x70",), "50x70", "<{broadcast_dimensions = array<i64: 50, 1>}>"),
        ("repeat", ("2x50x70",), "4x50x140", "<{repeat_dimensions = array<i64: 2, 1, 2>}>"),
        ("reverse", ("50x70",), "50x70", "<{dimensions = array<i64: 1>}>"),
    )
)
LAYERS = _of_one_op(
    [
        ("embedding", ("4x8xui32", "100x64xbf16"), "4x8x64xbf16", ""),
        ("embedding", ("40xsi32", "100x70xf32"), "40x70xf32", ""),
        ("softmax", ("3x50x70xf32",), "3x50x70xf32", "<{dimension = 1 : si32}>"),
        (
            "rms_norm",
            ("50x70xbf16", "70xbf16"),
            "50x70xbf16",
            "<{normalized_shape = array<i64: 70>, operandSegmentSizes = array<i32: 1, 1, 0>}>",
        ),
        ("gelu", ("50x70xf32",), "50x70xf32", ""),
    ]
)
BROADCASTS = _of_one_op(
    (name, tuple(f"{shape}x{data_type}" for shape in shapes), f"2x50x70x{data_type}", "")
    for name, data_type in (("add", "bf16"), ("div", "f32"))
    for shapes in (
        ("2x50x70", "1x1x70"),
        ("2x50x70", "2x50x1"),
        ("2x1x1", "2x50x70"),
        ("2x50x1", "1x1x70"),
        ("2x50x70", "1x50x70"),
    )
)

EXAMPLES = ("stitching/decoder", "stitching/encoder", "transformer/transformer")
"""Those of the examples that there are programs for."""


def texts() -> dict[str, str]:
    """The modules by name."""
    functions = {
        "elementwise": [elementwise(data_type) for data_type in DATA_TYPES],
        "typecasts": typecasts(),
        "broadcasts": BROADCASTS,
        "products": PRODUCTS,
        "reductions": REDUCTIONS,
        "movements": MOVEMENTS,
        "layers": LAYERS,
    }
    written = {name: module(members) for name, members in functions.items()}
    examples = {Path(name).name: ROOT / "examples" / f"{name}.mlir" for name in EXAMPLES}
    return written | {name: path.read_text("utf-8") for name, path in examples.items()}
