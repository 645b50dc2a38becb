"""Modules printed as tt-mlir spelled them in 2024 and 2025, for tools that compare such texts.

Only the spelling changes: `tt` for `ttcore`, names of ops that were renamed, tensors that TTIR ops
write their results to. What is printed is read back as the module that it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SPELLINGS = ("2024", "2025")
"""The years whose spelling is known."""

_TOKEN = re.compile(
    r"""
    "(?P<op>ttnn\.\w+)"(?=\()                  # the name of an operation
    | "(?:[^"\\]|\\.)*"                        # any other string stays
    | //[^\n]*                                 # so does a comment
    | (?P<core>(?<![\w.])(?:[\#!])?ttcore\.)
    | ,\s<(?P<placed>\w+)>>                    # the memory layout of the pages
    """,
    re.VERBOSE,
)
_OPS = {"ttnn.slice_static": "ttnn.slice", "ttnn.clamp_scalar": "ttnn.clamp"}
_PLACED = ("interleaved", "single_bank", "height_sharded", "width_sharded", "block_sharded")
_RESULT = re.compile(
    r'(?P<indent> *)(?P<name>%[\w.$-]+) = "ttir\.(?P<op>\w+)"\((?P<operands>[^()]*)\)'
    r"(?P<attributes>.*) : \((?P<types>.*)\) -> (?P<result>tensor<[^()]*>)(?P<location> loc\(.*)?"
)
_WITHOUT_DESTINATION = frozenset("arange constant empty full ones rand zeros".split())
_SEGMENTS = re.compile(r"(operandSegmentSizes = array<i32: [^>]*)>")


def respelled(text: str, year: str) -> str:
    """The text of a module in the spelling of a year, one of `SPELLINGS`."""

    def token(found: re.Match[str]) -> str:
        if (name := found["op"]) is not None:
            return f'"{_OPS.get(name, name)}"'
        if found["core"] is not None:
            return found["core"].replace("ttcore", "tt")
        if year == "2024" and found["placed"] in _PLACED:
            return f", {found['placed']}>"
        return found[0]

    spelled = _TOKEN.sub(token, text)
    return "\n".join(line for each in spelled.split("\n") for line in _with_destination(each))


def _with_destination(line: str) -> Iterable[str]:
    """A TTIR op on a line of its own, and before it the tensor that it writes its result to."""
    found = _RESULT.fullmatch(line)
    if found is None or found["op"] in _WITHOUT_DESTINATION:
        return (line,)
    indent, name, result = found["indent"], found["name"], found["result"]
    target = f"%destination_{name[1:]}"
    operands = ", ".join(each for each in (found["operands"], target) if each)
    types = ", ".join(each for each in (found["types"], result) if each)
    attributes = _SEGMENTS.sub(r"\1, 1>", found["attributes"])
    return (
        f"{indent}{target} = tensor.empty() : {result}",
        f'{indent}{name} = "ttir.{found["op"]}"({operands}){attributes} : ({types}) -> '
        f"{result}{found['location'] or ''}",
    )
