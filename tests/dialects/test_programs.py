"""Programs of the device as attributes of `ttmetal.run_program`."""

from __future__ import annotations

import dataclasses
import re

import pytest
from xdsl.dialects.builtin import SymbolRefAttr, f32

from tests.dialects.texts import parse, refusal, text_of
from tests.ttmetal.exp_module import exp_module, exp_program
from ttcodegen.dialects.core.attribute_syntax import print_record
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.tile import TileType
from ttcodegen.dialects.ttmetal.device_module import (
    ProgramAttr,
    functions_of,
    is_host_function,
    launches,
)
from ttcodegen.dialects.ttmetal.program_verification import verify_programs
from ttcodegen.dialects.ttmetal.programs import (
    CircularBuffer,
    NocX,
    Place,
    Program,
    RuntimeArgument,
)
from ttcodegen.foundation.diagnostics import CompileError


def program_in(text: str) -> Program:
    """The program that the only launch of a module runs."""
    functions = [f for f in functions_of(parse(text)) if is_host_function(f)]
    (launch,) = launches(functions)
    return launch.program


def test_a_program_reads_back() -> None:
    reader, *others = exp_program().kernels
    places = (
        RuntimeArgument("x", NocX(Place.LAST_COLUMN, 3)),
        RuntimeArgument("n", -7),
        RuntimeArgument("row", Place.ROW),
    )
    reader = dataclasses.replace(
        reader, purpose='A "näme" \\ and\nmore.', arguments=(*reader.arguments, *places)
    )
    program = dataclasses.replace(exp_program(), kernels=(reader, *others))
    assert program_in(text_of(exp_module(program=program))) == program


def test_what_is_as_by_default_is_left_out() -> None:
    text = print_record(exp_program())
    assert "semaphores" not in text
    assert "fidelity" not in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "processor = reader",
            "processor = riscv",
            "'processor' is one of reader, writer, compute",
        ),
        ("inputs = 1", "input = 1", "there is no field 'input'; the fields are name, purpose"),
        ("inputs = 1, ", "", "'inputs' is missing"),
        ("inputs = 1", "inputs = 1, inputs = 1", "'inputs' is given twice"),
        ("inputs = 1", "inputs = 9", "has 2 operands, but 'exp' has 9 inputs"),
        (
            "inputs = 1",
            "inputs = 1, traffic = [<bytes = 2, least = 1>]",
            "has 2 operands, but 'exp' says what it moves of 1",
        ),
        ("value = address<operand = 0>", "value = address<operand = 5>", "uses operand 5"),
        ("value = address<operand = 0>", "value = place", "'value' is one of an integer, first"),
        ("index = 1,", "index = 0,", "has two circular buffers with index '0'"),
        ("index = 1,", "index = 32,", "a core has 32, counted from 0"),
        ("work_units = 6, ", "", "takes a share of the work, but the program has no work_units"),
        ("unpack_to_fp32 = [0]", "unpack_to_fp32 = [4]", "unpacks the circular buffer 4"),
        ("work_units = 6", "work_units = -6", "has a negative number in 'work_units'"),
        ("tiles_computed = 6", "tiles_computed = -6", "has a negative number in 'costs'"),
        ("value = first", "value = 4294967296", "gives a kernel 4294967296, which has more than"),
        ('name = "y", data', 'name = "the y", data', "buffer 'the y', which is no identifier"),
        (
            'name = "cb_x", value = 0',
            'name = "cb_x", value = 7',
            "uses circular buffer 7 as 'cb_x', but the program has none with that index",
        ),
        ('name = "count"', 'name = "first"', "has two arguments of 'read_exp' 'first'"),
        (
            "processor = writer",
            "processor = reader",
            "runs two kernels on the reader of one core: 'read_exp' and 'write_exp'",
        ),
        (
            "program = #ttmetal.program<",
            "program = #ttmetal.programme<",
            "#ttmetal.programme is given where #ttmetal.program is expected",
        ),
    ],
)
def test_malformed_programs_are_refused_at_their_place(old: str, new: str, expected: str) -> None:
    from ttcodegen.dialects.core.datatypes import DataType

    text = text_of(exp_module(DataType.FLOAT32))
    assert old in text
    message = refusal(text.replace(old, new, 1))
    assert expected in message
    assert message.startswith("in.mlir:")


def test_symbols_have_to_be_in_the_module() -> None:
    module = exp_module()
    (launch,) = launches([f for f in functions_of(module) if is_host_function(f)])
    launch.op.properties["meaning"] = SymbolRefAttr("nobody")
    reader, compute, writer = exp_program().kernels
    kernels = (
        dataclasses.replace(reader, function="nothing"),
        dataclasses.replace(compute, function=writer.function),
        writer,
    )
    changed = dataclasses.replace(exp_program(), kernels=kernels)
    launch.op.properties["program"] = ProgramAttr(changed)
    with pytest.raises(CompileError) as error:
        verify_programs(module)
    for expected in (
        "there is no function @nobody with the meaning of 'exp'",
        "there is no function @nothing for the kernel 'read_exp'",
        "needs a kernel of the thread compute, which @write_exp is not",
    ):
        assert expected in "\n".join(d.message for d in error.value.diagnostics)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'get_named_compile_time_arg_val("cb_x")',
            'get_named_compile_time_arg_val("cb_z")',
            "has no constant 'cb_z'",
        ),
        (
            ', <name = "count", value = count>]',
            "]",
            "runtime arguments, none at position",
        ),
        ("accessors = [0]", "accessors = []", "has accessors for 0 operands, but uses 1"),
        (
            "page_size = 2048",
            "page_size = 2000",
            "takes the pages of 'x' for !ttcore.tile<32x32, bf16>, but they are bf16, 2000 bytes",
        ),
        ("data_type = bfloat16", "data_type = uint16", "but they are u16, 2048 bytes each"),
        (
            "cores = <last_column = 1, last_row = 1>, circular",
            "cores = <last_column = 8, last_row = 1>, circular",
            "up to column 8 and row 1, but the chip has 8 columns and 8 rows, counted from 0",
        ),
    ],
)
def test_kernels_are_given_what_they_ask_for(old: str, new: str, expected: str) -> None:
    text = text_of(exp_module())
    assert old in text
    with pytest.raises(CompileError, match=expected) as error:
        verify_programs(parse(text.replace(old, new, 1)))
    assert error.value.diagnostics[0].place is not None


def test_a_launch_names_a_meaning() -> None:
    text = text_of(exp_module())
    without = re.sub(r", meaning = @\w+", "", text)
    assert without != text
    with pytest.raises(CompileError, match="'meaning'"):
        verify_programs(parse(without))


def test_two_programs_do_not_share_a_name() -> None:
    text = text_of(exp_module())
    (line,) = [line for line in text.splitlines() if "ttmetal.run_program" in line]
    other = line.replace('purpose = "', 'purpose = "another ')
    assert other != line
    with pytest.raises(CompileError, match="another program is called 'exp' too"):
        verify_programs(parse(text.replace(line, f"{line}\n{other}")))


def test_pages_that_are_no_tiles_are_taken_for_elements() -> None:
    tiles = CircularBuffer(0, "x", DataType.FLOAT32, 2, 4096)
    rows = dataclasses.replace(tiles, page_size=160)
    assert tiles.page_type == TileType(DataType.FLOAT32)
    assert rows.page_type == f32


@pytest.mark.parametrize("number", [1 << 32, 10**12])
def test_a_program_has_numbers_of_32_bits(number: int) -> None:
    program = exp_program()
    buffer = dataclasses.replace(program.circular_buffers[0], page_size=number)
    buffers = (buffer, *program.circular_buffers[1:])
    module = exp_module(program=dataclasses.replace(program, circular_buffers=buffers))
    with pytest.raises(CompileError, match=f"'exp' has the number {number}: a core counts in 32"):
        verify_programs(module)
