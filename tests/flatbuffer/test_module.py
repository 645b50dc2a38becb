"""Files turned back into modules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.flatbuffer.programs import adding_program, binary
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.modules import module_of, origin_of
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.writer import Origin, write_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import module_text

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["digits", "cnn", "transformer"])
def test_a_module_read_back_gives_the_same_file(name: str) -> None:
    source = Source.read(str(EXAMPLES / name / f"{name}.mlir"))
    data = compile_module(source, CompileOptions(name)).flatbuffer
    module = module_of(read_ttnn(data))
    module.verify()
    assert write_ttnn(module, origin_of(module, Origin("", "", ""))) == data


@pytest.mark.slow
def test_modules_survive_flatbuffers_and_text(corpus: Path) -> None:
    """Written, read back, printed, parsed and written again, a module gives the same bytes."""
    paths = sorted(corpus.glob("*.mlir"), key=lambda path: (path.stat().st_size, path.name))
    compared = 0
    for path in paths[:400:8]:
        try:
            compiled = compile_module(Source.read(str(path)), CompileOptions("m"))
        except CompileError:
            continue
        module = module_of(read_ttnn(compiled.flatbuffer))
        again = parse_module(Source("again", module_text(module, locations=True)))
        for each in (module, again):
            written = write_ttnn(each, origin_of(each, Origin("", "", "")))
            assert written == compiled.flatbuffer, path.name
        compared += 1
    assert compared > 40


def test_names_kinds_and_locations_are_kept() -> None:
    text = str(module_of(binary(adding_program())))
    assert "func.func @main(%a: tensor<2x32xf32" in text
    assert "#ttcore.argument_type<parameter>" in text
    assert '"ttnn.add"(%a, %b)' in text
    assert 'arch = "wormhole_b0"' in text


def test_names_that_mlir_does_not_have_are_left_out() -> None:
    program = adding_program()
    strange = tuple(replace(tensor, source_name="%a b\n") for tensor in program.tensors)
    text = str(module_of(binary(replace(program, tensors=strange))))
    assert '"ttnn.add"(%arg0, %arg1)' in text or '"ttnn.add"(%0, %1)' in text


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (file.Operation("ttnn.warp", (0,), (1,), (2,)), "calls 'ttnn.warp' in a way"),
        (file.Operation("other.add", (0, 1), (1, 1), (2,)), "calls 'other.add' in a way"),
        (file.Operation("ttnn.add", (0, 1), (2,), (2,)), "calls 'ttnn.add' in a way"),
        (
            file.Operation("ttnn.add", (0, 1), (1, 1), (2,), (file.Attribute("speed"),)),
            "has no 'speed' here",
        ),
        (
            file.Operation(
                "ttnn.add", (0, 1), (1, 1), (2,), (file.Attribute("dtype", file.String("f")),)
            ),
            "'dtype' of 'ttnn.add' should be a data type",
        ),
    ],
)
def test_what_this_version_does_not_know(operation: file.Operation, message: str) -> None:
    program = adding_program()
    changed = file.Program(
        "main", "entry", program.tensors, program.inputs, program.outputs, (operation,)
    )
    with pytest.raises(CompileError, match=message):
        module_of(binary(changed))
