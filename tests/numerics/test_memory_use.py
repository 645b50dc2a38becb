"""The memory that programs take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.flatbuffer.programs import adding_program, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.cost import Leak, memory_use
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout, Shards
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.layout.placements import stored_bytes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BF16 = DataType.BFLOAT16
ROWS = Layout.ROW_MAJOR


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (TensorPlacement((32, 64), BF16), 2 * 32 * 64),
        (TensorPlacement((3, 33, 1), BF16), 3 * 2 * 32 * 32 * 2),
        (TensorPlacement((3, 33, 1), BF16, ROWS), 3 * 33 * 2),
        (TensorPlacement((5,), DataType.UINT8, ROWS), 5),
        (TensorPlacement((), DataType.FLOAT32, ROWS), 4),
        (TensorPlacement((), DataType.FLOAT32), 4096),
        (TensorPlacement((32, 32), DataType.BFLOAT8_B), 1088),
        (TensorPlacement((32, 32), DataType.BFLOAT4_B), 576),
        (TensorPlacement((64, 32), BF16).height_sharded(Shards.by_rows(2, (32, 32))), 4096),
        (TensorPlacement((0, 32), BF16), 0),
    ],
)
def test_bytes_of_tensors(placement: TensorPlacement, expected: int) -> None:
    assert stored_bytes(placement) == expected


def test_peaks_and_leaks() -> None:
    add = adding_program().operations[0]
    tensors = (*adding_program().tensors, tensor(2, 32), tensor(2, 32))
    program = replace(
        adding_program(),
        tensors=tensors,
        operations=(
            replace(add, results=(3,)),
            replace(add, operands=(0, 3), results=(4,)),
            file.Operation("ttnn.deallocate", (3,), (1,)),
            replace(add, operands=(0, 4)),
        ),
    )
    found = memory_use(program)
    assert [step.allocated["dram"] // 4096 for step in found.steps] == [3, 4, 4]
    assert found.peak == {"dram": 4 * 4096, "l1": 0}
    assert found.leaks == (Leak("tensor 4", "dram", 4096),)


@pytest.mark.parametrize(("shape", "tiles"), [((1, 2, 32), 3), ((1, 64), 5), ((2, 32), 3)])
def test_views_take_no_memory(shape: tuple[int, ...], tiles: int) -> None:
    reshape = file.Operation("ttnn.reshape", (0,), (1,), (3,))
    program = replace(
        adding_program(),
        tensors=(*adding_program().tensors, tensor(*shape)),
        operations=(reshape, adding_program().operations[0]),
    )
    found = memory_use(program)
    assert found.peak["dram"] == tiles * 4096
    assert bool(found.leaks) == (tiles > 3)


@pytest.mark.parametrize("name", ["digits", "cnn", "transformer"])
def test_compiled_programs_leak_nothing(name: str) -> None:
    source = Source.read(str(EXAMPLES / name / f"{name}.mlir"))
    binary = read_ttnn(compile_module(source, CompileOptions(name)).flatbuffer)
    for program in binary.programs:
        if program.kind == "entry":
            assert memory_use(program).leaks == ()
