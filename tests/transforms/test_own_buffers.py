"""Ops that overwrite a tensor change no other value, whatever shares its buffer or is folded."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.numerics.drawing import draw_inputs
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend

SHAPES = {
    "C": "1x2x64x32xf32",
    "B": "1x2x64x32xbf16",
    "V": "2x1x64x32xf32",
    "W": "2x2x64x32xf32",
    "E": "1x2x32x32xf32",
    "F": "1x2x32x32xbf16",
    "G": "1x1x32x32xf32",
    "U": "1x2x1x32xf32",
    "I": "1xi32",
}
"""Shapes of caches (C, B, V, W), of what is written into them (E, F, G, U), and an index."""

PROGRAMS = {
    "two_views": "x C, e G, f G; a V = reshape x; b V = reshape x; fill a e; fill b f; a b",
    "two_views_and_it": "x C, e G, f G; a V = reshape x; b V = reshape x; fill a e; fill b f; "
    "a b x",
    "operand_of_a_view": "x C, e G; a V = reshape x; fill a e; n C = neg x; a n",
    "argument_stays": "x C, e G; a V = reshape x; fill a e; n C = neg x; n",
    "view_before_write": "x C, e E; a V = reshape x; fill x e; n V = neg a; n",
    "view_returned": "x C, e E; a V = reshape x; fill x e; a x",
    "view_of_computed": "x C, e G; m C = neg x; a V = reshape m; fill a e; n C = neg m; a n",
    "view_and_back": "x C, e G; a V = reshape x; fill a e; d C = reshape a; n C = neg x; d n",
    "updated_view": "x V, e U, i I; a C = reshape x; b C = reshape x; update a e i; "
    "n C = neg b; a n",
    "updated_argument": "x C, e U, i I; b V = reshape x; update x e i; n V = neg b; "
    "m C = neg x; m n",
    "written_from_view": "x C; n C = neg x; b V = reshape n; d C = reshape b; fill n d; n b",
    "same_type": "x C, e E; a C = typecast x; fill a e; n C = neg x; a n",
    "old_contents": "x C, e E; o C = typecast x; fill x e; o x",
    "type_and_back": "x B, e F; a C = typecast x; b B = typecast a; fill b e; b x",
    "permuted_ones": "x C, e G; a V = permute x; fill a e; n C = neg x; a n",
    "there_and_back": "x C, e E; c V = permute x; d C = permute c; fill d e; d x",
    "whole_slice": "x C, e E; a C = slice x; fill a e; n C = neg x; a n",
    "part": "x W, e E; a C = slice x; fill a e; a x",
    "concat_of_one": "x C, e E; a C = concat x; fill a e; a x",
    "same_shape": "x C, e E; a C = broadcast x; fill a e; a x",
    "itself": "x C, e E; a C = maximum x x; fill a e; a x",
    "once_more": "x C, e E; s C = relu x; t C = relu s; fill s e; s t",
    "equal_ops": "x C, e E; s C = neg x; t C = neg x; fill s e; s t",
    "inverses": "x C, e E; s C = neg x; fill s e; t C = neg s; t",
    "sum_of_squares": "x C, e E; s C = neg x; m C = multiply s s; fill s e; t C = add m s; t s",
    "number": "x C, e E; s C = full; fill s e; t C = multiply x s; t",
    "number_alone": "e E; s C = full; fill s e; t C = neg s; t s",
    "number_before": "x C, e E; s C = full; t C = multiply x s; fill s e; t s",
    "equal_numbers": "e E; s C = full; t C = full; fill s e; fill t e; s t",
    "views_of_number": "e G; z C = full; s V = reshape z; t V = reshape z; fill s e; s t",
    "weight": "x* C, e E; s C = neg x; u C = neg x; fill u e; t C = add s u; t",
    "view_of_weight": "x* C, e G; s V = reshape x; fill s e; s",
}
"""By a name: arguments (`*` for a weight), ops in order, and what is returned."""

_WORDS = {
    "reshape": "shape = [{} : i32, {} : i32, 64 : i32, 32 : i32]",
    "permute": "permutation = array<i64: 1, 0, 2, 3>",
    "slice": "begins = [0 : i32, 0 : i32, 0 : i32, 0 : i32], "
    "ends = [1 : i32, 2 : i32, 64 : i32, 32 : i32], step = [1 : i32, 1 : i32, 1 : i32, 1 : i32]",
    "concat": "dim = 0 : si32",
    "broadcast": "broadcast_dimensions = array<i64: 1, 1, 1, 1>",
    "full": "shape = array<i32: 1, 2, 64, 32>, fill_value = 2.0 : f32",
}
_NAMES = {"slice": "slice_static", "fill": "fill_cache", "update": "update_cache"}
_WEIGHT = " {ttcore.argument_type = #ttcore.argument_type<parameter>}"


def text_of(name: str) -> str:
    """A function of TTIR."""
    given, *ops, returned = PROGRAMS[name].split("; ")
    types: dict[str, str] = {}
    arguments: list[str] = []
    for argument in given.split(", "):
        word, letter = argument.split()
        types[word.strip("*")] = f"tensor<{SHAPES[letter]}>"
        is_weight = word.endswith("*")
        arguments.append(f"%{word.strip('*')}: tensor<{SHAPES[letter]}>{_WEIGHT * is_weight}")
    lines: list[str] = []
    for op in ops:
        target, _, call = op.rpartition(" = ")
        kind, *operands = call.split()
        result = "()"
        if target:
            word, letter = target.split()
            types[word] = result = f"tensor<{SHAPES[letter]}>"
        words = _WORDS.get(kind, "").format(*re.findall(r"\d+", result)[:2])
        words = "batch_offset = 0 : i32" if kind in ("fill", "update") else words
        operand_types = ", ".join(types[operand] for operand in operands)
        lines.append(
            (f"%{target.split()[0]} = " if target else "")
            + f'"ttir.{_NAMES.get(kind, kind)}"({", ".join("%" + o for o in operands)})'
            + (f" <{{{words}}}>" if words else "")
            + f" : ({operand_types}) -> {result}"
        )
    names = returned.split()
    results = ", ".join(types[each] for each in names)
    lines.append(f"return {', '.join('%' + each for each in names)} : {results}")
    body = "\n  ".join(lines)
    return f"func.func @{name}({', '.join(arguments)}) -> ({results}) {{\n  {body}\n}}\n"


def computed(kind: str, operands: list[np.ndarray], shape: list[int]) -> np.ndarray:
    """The result of an op; most give the elements of the operand another shape."""
    match kind:
        case "neg":
            return -operands[0]
        case "add":
            return operands[0] + operands[1]
        case "multiply":
            return operands[0] * operands[1]
        case "relu":
            return np.maximum(operands[0], 0)
        case "full":
            return np.full(shape, 2.0, np.float32)
        case "slice":
            return operands[0][:1]
        case "permute":
            return operands[0].swapaxes(0, 1)
        case _:
            return operands[0].reshape(shape)


def meaning_of(name: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Results of a program in which every value has an array of its own."""
    given, *ops, returned = PROGRAMS[name].split("; ")
    names = [each.split()[0].strip("*") for each in given.split(", ")]
    values = {each: np.array(array, np.float32) for each, array in zip(names, inputs, strict=True)}
    for op in ops:
        target, _, call = op.rpartition(" = ")
        kind, *operands = call.split()
        read = [values[each] for each in operands]
        if kind == "fill":
            read[0][: len(read[1]), :, : read[1].shape[2]] = read[1]
        elif kind == "update":
            read[0][:, :, int(read[2][0])] = read[1][0].transpose(1, 0, 2)
        else:
            word, letter = target.split()
            shape = [int(size) for size in SHAPES[letter].split("x")[:-1]]
            values[word] = np.array(computed(kind, read, shape), np.float32)
    return [values[each] for each in returned.split()]


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_writes_change_one_value(name: str, target: str) -> None:
    source = Source("m.mlir", text_of(name))
    compiled = compile_module(source, CompileOptions("m", target=target))
    (run,) = run_in_numpy(
        source, compiled, lambda module, op: tuple(draw_inputs(module, op, 0).values())
    )
    expected = meaning_of(name, list(run.inputs))
    for found in (run.golden, run.flatbuffer):
        for first, second in zip(expected, found, strict=True):
            np.testing.assert_allclose(first, second.astype(np.float32), atol=1e-2)


def test_what_has_a_buffer_of_its_own_is_not_cloned() -> None:
    for name, clones in (("inverses", 0), ("number", 0), ("equal_ops", 1), ("two_views", 2)):
        compiled = compile_module(Source("m.mlir", text_of(name)), CompileOptions("m"))
        assert "".join(compiled.files.values()).count("ttnn::clone(") == clones, name


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--optimize", "2"], ["--target", "ttmetal"]])
def test_cpp_changes_one_value(cpu_backend: CPUBackend, tmp_path: Path, options: list[str]) -> None:
    assert cpu_backend is not None
    file = tmp_path / "writes.mlir"
    file.write_text("module {\n" + "".join(text_of(name) for name in PROGRAMS) + "}\n")
    arguments = [str(file), "-o", str(tmp_path / "out"), "--no-format", "--check", *options]
    assert main(arguments) == 0
