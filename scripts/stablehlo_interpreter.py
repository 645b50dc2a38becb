"""Puts the tests of StableHLO's reference interpreter to the compiler.

usage: python -m scripts.stablehlo_interpreter FOLDER [--run flatbuffer|cpp] [--only TEXT]...
       [--results TABLE | --merge TABLE...] [--write PAGE] [OPTION...]

FOLDER is `stablehlo/tests/interpret` of openxla/stablehlo: functions of constants, whose results
`check.expect_*` compares with others. The constants become arguments, or stay where an op needs
them at compile time; what is compared becomes a result. Complex and quantized elements, programs of
several processes and elements narrower than a byte are left out. Compared as
scripts/stablehlo_values.py compares. Needs jax.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.stablehlo_values import Judged, Outcome, argument_parser, array_of, finish, judge

_LEFT_OUT = re.compile(
    r"complex|quant|run_parallel|interpreter\.|xu?i[24]>|tensor<u?i[24]>|f8E|f4E|f6E|expect_serialized|outfeed"
)
_NAME = r"%[\w#]+"
_CONSTANT = re.compile(rf"(?ms)^  ({_NAME}) = stablehlo\.constant (dense<.*?) : (tensor<[^\n]*?>)$")
_EXPECTED = re.compile(
    rf"(?ms)^ +check\.expect_\w+ ({_NAME}),\s*(dense<.*?|{_NAME}(?:, \w+ = [\d.]+)?) : +"
    r"(tensor<[^\n]*?>)(?:, tensor<[^\n]*?>)?(?: \{[^\n]*\})?$"
)


def read(path: Path) -> list[Judged]:
    """The functions of a file that have something to be compared, with constants as arguments."""
    found: list[Judged] = []
    for section in re.split(r"(?m)^// -----.*$", path.read_text()):
        text = re.sub(r"(?m)^\s*//.*\n", "", section)
        if "check.expect" not in text or _LEFT_OUT.search(text):
            continue
        blocks = re.split(r"(?m)^(?=func\.func )", text)
        rest = "".join(block for block in blocks if "check.expect" not in block)
        for block in blocks:
            if "check.expect" in block:
                found.append(_judged(f"{path.stem}_{len(found)}", block, rest))
    return found


def _judged(name: str, block: str, rest: str) -> Judged:
    """A function that compares, and the others that it may call."""
    values = {each[1]: (each[2], each[3]) for each in _CONSTANT.finditer(block)}
    expected: list[np.ndarray] = []
    results: list[tuple[str, str]] = []
    for each in _EXPECTED.finditer(block):
        value, wanted, type_ = each[1], each[2], each[3]
        if wanted.startswith("%"):
            wanted = values[wanted.partition(",")[0]][0]
        results.append((value, type_))
        expected.append(_array(wanted, type_))
    arguments = [
        (value, type_) for value, (_, type_) in values.items() if value not in dict(results)
    ]
    inputs = [_array(values[value][0], type_) for value, type_ in arguments]
    function = re.sub(r"\W", "_", name)
    kept = _EXPECTED.sub("", block)
    types = ", ".join(type_ for _, type_ in results)
    returned = f"func.return {', '.join(value for value, _ in results)} : {types}"
    kept = re.sub(r"(?m)^  (?:func\.)?return$", f"  {returned}", kept)
    called = re.findall(r"func\.func (?:private |public )?@([\w.$]+)", rest)

    def whole(signature: str, body: str) -> str:
        head = f"func.func @{function}({signature}) -> ({types}) {{"
        joined = re.sub(r"(?m)^func\.func [^\n]*\{$", lambda _: head, body, count=1) + rest
        for symbol in called:
            joined = re.sub(rf"@{re.escape(symbol)}(?![\w.$])", f"@{function}_{symbol}", joined)
        return joined

    signature = ", ".join(f"{value}: {type_}" for value, type_ in arguments)
    of_arguments = _CONSTANT.sub(lambda each: "" if each[1] in dict(arguments) else each[0], kept)
    return Judged(name, function, whole(signature, of_arguments), inputs, expected, whole("", kept))


def _array(literal: str, type_: str) -> np.ndarray:
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir

    with jax_mlir.make_ir_context():
        attribute: Any = ir.Attribute.parse(f"{literal} : {type_}")
        return array_of(ir, attribute)


def functions(folder: Path, only: Sequence[str] = ()) -> Iterator[Judged]:
    """The functions of all files of a folder and those below it."""
    for path in sorted(folder.rglob("*.mlir")):
        if not only or any(text in path.stem for text in only):
            yield from read(path)


def main() -> int:
    """Prints the functions that are not right, and a count of each outcome."""
    chosen, options = argument_parser(__doc__).parse_known_args()
    if chosen.merge:
        outcome = Outcome.merged(chosen.merge)
    else:
        asked = functions(chosen.folder, chosen.only)
        outcome = judge(asked, chosen.run, options, chosen.results)
    finish(outcome, chosen.run, options, "interpreter", chosen.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
