"""Makes measured calls on the CPU backend, and says where it differs from what a release answers.

    scripts/replayed_calls.py tests/releases/measured/calls.jsonl.xz --release 0.81.1

The calls of a table of scripts/measured_calls.py become the functions of projects, which are built
for the CPU backend of the release and run on zeros. The backend has to take what the release takes,
and give the types, layouts and places that it gives. Prints a line for each difference; the exit
status is 0 if there is none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.measured_calls import DEFAULT_MACHINE, read_table
from ttcodegen.compilation import CompileOptions, emit_module
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    declared_data_type,
    placed_type,
    placement_of,
)
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import Diagnostics, Source
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.dialects import load_dialects, ttnn_op_classes
from ttcodegen.parsing.module import parse_operations
from ttcodegen.project.building import build_project
from ttcodegen.project.sources import project_files
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.project.writer import write_project
from ttcodegen.runtime.backend_reports import CallReport, ReportedCall
from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.library import load_library
from ttcodegen.systems.cards import NAMES
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES
from ttcodegen.transforms.pass_runner import PassRunner

_TOGETHER = 100
"""Functions of one project."""
_REFUSED = "refused: "
_NAMES = {each.cpp.rpartition("::")[2]: each.mlir for each in DataType}


def differences(
    rows: Sequence[Mapping[str, Any]], release: str, machine: str = DEFAULT_MACHINE
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Rows whose call the CPU backend answers otherwise than the release, with what it says.

    Args:
        rows: of a table.
        release: the release.
        machine: the machine that the calls were measured on.
    """
    for first in range(0, len(rows), _TOGETHER):
        some = rows[first : first + _TOGETHER]
        with tempfile.TemporaryDirectory() as folder:
            library = _built(some, release, machine, Path(folder))
            for row, said in zip(some, _answers(library, some), strict=True):
                both_refuse = said.startswith(_REFUSED) and row[release].startswith(_REFUSED)
                if said != row[release] and not both_refuse:
                    yield row, said


def _built(rows: Sequence[Mapping[str, Any]], release: str, machine: str, out: Path) -> Path:
    """The shared object of a project with a function for each row."""
    functions = [_function(row["module"], number) for number, row in enumerate(rows)]
    module = ModuleOp([function for function, _ in functions])
    system = load_system(machine)
    options = CompileOptions("calls", "ttnn", system.arch, release, system=system, kind="so")
    dtypes = {function.sym_name.data: types for function, types in functions}
    compiled = emit_module(module, options, PassRunner(load_dialects()), "", dtypes)
    write_project(compiled.description, out, project_files(compiled, formatted=False), force=True)
    built = build_project(out, "calls", find_toolchain(), "so").library
    assert built is not None
    return built


def _function(text: str, number: int) -> tuple[FuncOp, tuple[list[str], list[str]]]:
    """The function of a module of one call, under a name of its own, and its numpy types."""
    (module,) = parse_operations(Source("call.mlir", text), Diagnostics())
    assert isinstance(module, ModuleOp)
    (function,) = module.body.block.ops
    assert isinstance(function, FuncOp)
    function.detach()
    function.properties["sym_name"] = StringAttr(f"call{number}")
    _take_interleaved(function)
    kind = function.function_type

    def names(types: Iterable[Attribute]) -> list[str]:
        return [declared_data_type(each).numpy for each in types]

    return function, (names(kind.inputs.data), names(kind.outputs.data))


def _take_interleaved(function: FuncOp) -> None:
    """Moves sharded operands to their cores in the function, which takes and gives tensors that are
    interleaved, as those of projects do."""
    block = function.body.block
    first, end = block.first_op, block.last_op
    assert first is not None
    assert end is not None

    def moved(value: SSAValue, place: TensorPlacement, before: Operation) -> SSAValue:
        builder = OpBuilder(ttnn_op_classes(), lambda op: block.insert_op_before(op, before))
        return builder.emit("to_memory_config", [value], placed_type(place))

    for argument in tuple(block.args):
        place = placement_of(argument)
        if place.shards is not None:
            uses = list(argument.uses)
            type_ = placed_type(place.interleaved())
            taken = Rewriter.replace_value_with_new_type(argument, type_)
            there = moved(taken, place, first)
            for use in uses:
                use.operation.operands[use.index] = there
    for index, value in enumerate(end.operands):
        place = placement_of(value)
        if place.shards is not None:
            end.operands[index] = moved(value, place.interleaved(), end)
    function.update_function_type()


def _answers(library: Path, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The backend's answers, in the words of the table."""
    with CallReport() as report:
        module = load_library(library)
        for function, row in zip(module.functions, rows, strict=True):
            report.take()
            try:
                function.run(
                    [np.zeros(each.shape, each.computed_dtype) for each in function.inputs]
                )
            except ModuleError as error:
                yield f"{_REFUSED}{error}"
                continue
            yield _outcome(row, report.take())


def _outcome(row: Mapping[str, Any], calls: Sequence[ReportedCall]) -> str:
    """Answer of a call that ran, by the calls that were reported."""
    name = row["callee"].rpartition(".")[2]
    made = [call for call in calls if call.name == name]
    if not made:
        return f"calls {', '.join(each.name for each in calls) or 'nothing'}"
    # Operands and results are moved, which is a call as well.
    answers = [_given(call)[: len(row["results"])] for call in made]
    return "ok" if row["results"] in answers else f"gives {json.dumps(answers[0])}"


def _given(call: ReportedCall) -> list[dict[str, Any]]:
    """The types of the results of a call, in the form of the table."""
    return [
        {
            "shape": list(result.shape),
            "dtype": _NAMES[result.data_type],
            "page": result.page,
            "memory": result.memory,
        }
        for result in call.results
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what differs; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--release", choices=RELEASES, default=DEFAULT_RELEASE)
    parser.add_argument("--machine", choices=NAMES, default=DEFAULT_MACHINE)
    parser.add_argument("--every", type=int, default=1, help="each n-th row only")
    options = parser.parse_args(arguments)
    rows = read_table(options.table)[:: options.every]
    found = 0
    for row, said in differences(rows, options.release, options.machine):
        found += 1
        print(f"{row['callee']}: {options.release}: {row[options.release][:200]}; the CPU backend: "
              f"{said[:400]}", flush=True)  # fmt: skip
    print(f"{len(rows)} rows, {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
