"""Asks releases of ttnn about the calls that modules become, each on its own, and writes a table.

    scripts/measured_calls.py FOLDER... --python 'ttnn70/bin/python:ttnn81/bin/python' -o calls.xz
    scripts/measured_calls.py FOLDER... --machine p150 --python ... -o calls-p150.xz

The modules are compiled at levels 0 and 2 of the optimizer, for a machine. A call with the same
arguments, and operands of the same types and places, counts once. A line of the table is JSON: the
call as the Python package takes it, the types of operands and results, the module of TTNN that is
this call alone, and for each release what the package says: "ok", the types that it gives
otherwise, or its refusal. scripts/replayed_calls.py makes the calls on the CPU backend, as
tests/releases does; docs/releases.md says what differs.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.release_checks import taken_evenly
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import Binary, Input, Operation, Output, Program, Tensor
from ttcodegen.flatbuffer.system import load_system
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.judging.library import (
    JUDGE,
    library_answers,
    memory_limit,
    python_of_release,
)
from ttcodegen.judging.programs import harvesting
from ttcodegen.judging.python_calls import steps_of_call
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.optimizer.call import call_in_file
from ttcodegen.systems.cards import NAMES
from ttcodegen.systems.releases import RELEASES

LEVELS = (0, 2)
DEFAULT_MACHINE = "n150"
_AT_ONCE = 400
"""Calls that one process makes."""


def calls_of(module: Path, release: str, machine: str = DEFAULT_MACHINE) -> dict[str, str]:
    """The calls of a module at all levels, each with the module of TTNN that it is alone; none of a
    module that does not compile, or is for several chips.

    A call is JSON: steps that make the operands, call, and forget the tensors.
    """
    found: dict[str, str] = {}
    system = load_system(machine)
    for level in LEVELS:
        options = CompileOptions("m", optimize=level, release=release, system=system)
        try:
            binary = read_flatbuffer(compile_module(Source.read(str(module)), options).flatbuffer)
        except CompileError:
            continue
        if not isinstance(binary, Binary):
            continue
        for program in binary.programs:
            for operation in program.operations:
                if operation.callee is None and operation.name != "ttnn.deallocate":
                    call = call_in_file(program, operation)
                    if steps := steps_of_call(program, operation, call, 0):
                        key = json.dumps(steps, sort_keys=True)
                        if key not in found:
                            found[key] = alone(binary, program, operation)
    return found


def alone(binary: Binary, program: Program, operation: Operation) -> str:
    """The module of TTNN that one operation of a program is, a function of its operands."""
    places = list(dict.fromkeys([*operation.operands, *operation.results]))
    numbers = {tensor: place for place, tensor in enumerate(places)}
    operands = dict.fromkeys(operation.operands)
    made = replace(
        operation,
        operands=tuple(numbers[each] for each in operation.operands),
        results=tuple(numbers[each] for each in operation.results),
        location=None,
    )
    function = Program(
        "call",
        "entry",
        tuple(Tensor(program.tensors[each].type) for each in places),
        tuple(Input(numbers[each], "input", f"x{numbers[each]}") for each in operands),
        tuple(Output(numbers[each], f"y{numbers[each]}") for each in operation.results),
        (made,),
    )
    return str(module_of(replace(binary, programs=(function,), system=b"", input_hash="")))


def outcomes(
    calls: Sequence[str], release: str, python: str, machine: str = DEFAULT_MACHINE
) -> dict[str, str]:
    """The package's answers to calls on a mocked machine, by the call."""
    card = json.dumps(harvesting(load_system(machine).chip))
    options = ["--memory", str(memory_limit(None)), "--mocked", card]
    command = [python_of_release(python, release), str(JUDGE), *options]
    found: dict[str, str] = {}
    for first in range(0, len(calls), _AT_ONCE):
        some = calls[first : first + _AT_ONCE]
        listed: list[Any] = []
        places: list[int] = []
        for call in some:
            places.append(len(listed) + 1)
            listed += json.loads(call)
        answers = library_answers(listed, command)
        for call, place in zip(some, places, strict=True):
            found[call] = outcome(listed[place], answers[place])
    return found


def largest(call: str) -> int:
    """Elements of the largest tensor of a call."""
    listed: list[Any] = json.loads(call)
    return max(prod(each["type"]["shape"]) for step in listed for each in step["results"])


def outcome(call: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Outcome of a call by the package's answer."""
    if "refused" in answer:
        return f"refused: {answer['refused']}"
    if "missing" in answer:
        return "an operand cannot be made"
    given: list[Any] = answer.get("results") or []
    expected = [result["type"] for result in call["results"]]
    return "ok" if given == expected else f"gives {json.dumps(given)}"


def rows(
    answers: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The rows of the table, from the answers of each release and the modules, by call."""
    for text in sorted({call for each in answers.values() for call in each}):
        made, call, *_ = json.loads(text)
        types = {result["id"]: result["type"] for result in made["results"]}
        arguments = {"arguments": call["arguments"], "keywords": call["keywords"]}
        said = {release: each[text] for release, each in answers.items() if text in each}
        yield {
            "callee": call["callee"],
            **arguments,
            "operands": {str(number): type_ for number, type_ in types.items()},
            "results": [result["type"] for result in call["results"]],
            "module": modules[text],
            **said,
        }


def write_table(path: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Writes the rows, one in each line."""
    text = "".join(f"{json.dumps(row)}\n" for row in found)
    path.write_bytes(lzma.compress(text.encode(), preset=9))


def read_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the table; prints what releases answer differently."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, help="modules, taken evenly (all)")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--python", required=True, help="as ttcodegen-rt validate takes it")
    parser.add_argument("--release", action="append", choices=RELEASES, help="compiled for (all)")
    parser.add_argument("--machine", choices=NAMES, default=DEFAULT_MACHINE,
                        help=f"compiled for, and mocked ({DEFAULT_MACHINE})")  # fmt: skip
    parser.add_argument("--elements", type=int, default=1 << 62,
                        help="leave out calls with a larger tensor")  # fmt: skip
    parser.add_argument("-o", dest="out", type=Path, required=True, help="the table")
    options = parser.parse_args(arguments)
    modules = taken_evenly(options.folders)[: options.count]
    answers: dict[str, dict[str, str]] = {}
    made: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for release in options.release or RELEASES:
            work = partial(calls_of, release=release, machine=options.machine)
            found: dict[str, str] = {}
            for each in pool.map(work, modules):
                found |= each
            found = {call: text for call, text in found.items()
                     if largest(call) <= options.elements}  # fmt: skip
            made[release] = sorted(found)
            texts |= found
            print(f"{release}: {len(found)} calls of {len(modules)} modules", flush=True)
    every = sorted(texts)
    for release in RELEASES:
        answers[release] = outcomes(every, release, options.python, options.machine)
    table = list(rows(answers, texts))
    write_table(options.out, table)
    own = {release: Counter(answers[release][call].partition(":")[0].partition(" ")[0]
                            for call in calls) for release, calls in made.items()}  # fmt: skip
    for release, counts in own.items():
        print(f"{release}, of its own calls: {dict(counts.most_common())}")
        for call in made[release]:
            if answers[release][call] != "ok":
                print(f"  {json.loads(call)[1]['callee']}: {answers[release][call][:200]}")
    for row in table:
        said = [row[release] for release in RELEASES]
        if len(set(said)) > 1:
            print(f"differs: {row['callee']}: {' | '.join(each[:150] for each in said)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
