"""Damaged and hostile files in the tool: a result that says so, whatever they hold."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flatbuffer.programs import binary, tensor
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.flatbuffer.system import write_ttsys
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.result_sizes import oversize_reason
from ttcodegen.rt import API
from ttcodegen.systems.cards import default_system

DECODER = Path(__file__).resolve().parents[2] / "examples" / "stitching" / "decoder.mlir"
KINDS = ("ttnn", "ttm", "ttsys")
FUZZED = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@cache
def good(kind: str) -> bytes:
    """An undamaged file."""
    if kind == "ttsys":
        return write_ttsys(default_system("wormhole_b0"))
    target = {"ttnn": "ttnn", "ttm": "ttmetal"}[kind]
    seed = 0 if kind == "ttnn" else None
    options = CompileOptions("decoder", target=target, golden_seed=seed)
    return compile_module(Source.read(str(DECODER)), options).flatbuffer


def use(path: Path) -> set[int]:
    """The codes of all that can be done with a file."""
    args = {"binary": path, "--log-file": os.devnull}
    codes = {API.Read(args=args)()[0]}
    if path.suffix != ".ttsys":
        codes.add(API.Check(args=args)()[0])
        codes.add(API.Run(args={**args, "--memory": True})()[0])
    return codes


@pytest.mark.parametrize("kind", KINDS)
def test_the_undamaged_files_are_used(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{kind}"
    path.write_bytes(good(kind))
    assert use(path) == {0}


@pytest.mark.parametrize("kind", KINDS)
@FUZZED
@given(st.data())
def test_changed_bytes(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(good(kind))
    places = st.integers(0, len(content) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1)):
        content[place] = byte
    path = tmp_path / f"x.{kind}"
    path.write_bytes(bytes(content))
    assert use(path) <= {0, 1, 4}


@pytest.mark.parametrize("kind", KINDS)
@FUZZED
@given(st.data())
def test_hostile_words(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(good(kind))
    word = data.draw(st.sampled_from([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0]))
    struct.pack_into("<I", content, 4 * data.draw(st.integers(0, len(content) // 4 - 1)), word)
    path = tmp_path / f"x.{kind}"
    path.write_bytes(bytes(content))
    assert use(path) <= {0, 1, 4}


@pytest.mark.parametrize("kind", KINDS)
@FUZZED
@given(st.data())
def test_cut_files(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    content = good(kind)
    path = tmp_path / f"x.{kind}"
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    # What ends a file may be padding.
    assert use(path) <= {0, 1, 4}


def attribute(name: str, *numbers: int) -> file.Attribute:
    return file.Attribute(name, file.Integers(numbers))


@pytest.mark.parametrize(
    ("name", "attributes", "operands"),
    [
        ("full", (attribute("shape", 2**30, 4), file.Attribute("fill_value", file.Float(1.0))), 0),
        ("repeat", (attribute("repeat_dimensions", 2**20, 2**10),), 1),
        ("pad", (attribute("padding", 0, 2**20, 0, 2**20),), 1),
        ("repeat_interleave", (file.Attribute("repeats", file.Integer(2**40)),
                               file.Attribute("dim", file.Integer(0))), 1),
        ("full", (file.Attribute("shape", file.String("x")),
                  file.Attribute("fill_value", file.Float(1.0))), 0),
    ],
)  # fmt: skip
def test_ops_that_make_more_than_they_declare(
    name: str, attributes: tuple[file.Attribute, ...], operands: int, tmp_path: Path
) -> None:
    operation = file.Operation(
        f"ttnn.{name}", (0,) * operands, (1,) * operands, (1,), attributes, location="here"
    )
    program = file.Program(
        "main",
        "entry",
        (tensor(32, 32), tensor(32, 32)),
        (file.Input(0, "input", "a"),),
        (file.Output(1, "b"),),
        (operation,),
    )
    path = tmp_path / "x.ttnn"
    path.write_bytes(encode(load_schema("ttnn.fbs"), binary(program)))
    code, results = API.Run(args={"binary": path, "--quiet": True})()
    assert code == 1
    message = results["results"][0]["error"]
    assert message.startswith("function 'main', operation 0 at here: ")
    assert f"ttnn.{name}" in message
    assert "found" in message or "'shape' of 'ttnn.full' should be a list of integers" in message


def test_what_ops_may_make() -> None:
    assert oversize_reason("pad", {"padding": [0, 1, 2, 0]}, [(4, 4)], [(5, 6)]) is None
    assert (
        oversize_reason("upsample", {"scale_factor": [2, 2]}, [(1, 4, 4, 1)], [(1, 8, 8, 1)])
        is None
    )
    assert oversize_reason(
        "upsample", {"scale_factor": [2**20, 2**20]}, [(1, 4, 4, 1)], [(1, 8, 8, 1)]
    )
    assert oversize_reason("arange", {"start": 0, "end": 2.0**40, "step": 1}, [], [(8,)])
    assert oversize_reason(
        "max_pool2d", {"padding": [2**20, 2**20]}, [(1, 1, 64, 8)], [(1, 1, 16, 8)]
    )
    assert oversize_reason("relu", {}, [(4,)], [(4,)]) is None


def test_inputs_that_declare_no_known_type(tmp_path: Path) -> None:
    program = file.Program("main", "entry", (tensor(2),), (file.Input(0, "input", "a"),), (), ())
    strange = replace(program, inputs=(file.Input(0, "input", "a", "float8"),))
    path = tmp_path / "x.ttnn"
    path.write_bytes(encode(load_schema("ttnn.fbs"), binary(strange)))
    code, results = API.Run(args={"binary": path, "--quiet": True})()
    assert (code, "elements of no known type" in results["results"][0]["error"]) == (1, True)
