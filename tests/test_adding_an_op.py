"""The steps of docs/adding-an-op.md, which must suffice for a new op."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from ttcodegen.ops.core.definition import TTIRDefinition, TTNNDefinition
from ttcodegen.ops.core.traits import Trait

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "adding-an-op.md"

# The catalogue is put together once in a process, so each of these runs in one of its own.
REGULAR = """
import ttcodegen.ops.elementwise.unary as family
family._register(eval(ROW, vars(family)))
from tests.random_programs.recipes import RECIPES
from tests.test_adding_an_op import one_op
one_op(RECIPES["hardswish"], "hardswish", "ttnn::hardswish(")
"""
IRREGULAR = """
import numpy as np
import tests.random_programs.recipes.movement as recipes
import ttcodegen.ops.movement.data_movement as family
exec(BLOCK, vars(family))
from tests.ops.conftest import _evaluate as evaluate
x = np.arange(240, dtype=np.float32).reshape(2, 3, 40)
exec(TEST)
exec(RECIPE, vars(recipes))
from tests.test_adding_an_op import one_op
one_op(recipes.roll, "roll", "ttnn::roll(")
"""


def one_op(recipe, name: str, call: str) -> None:
    """Functions that the recipe adds something to compile to that call, and mean what they mean."""
    from tests.random_programs.checking import module_of, run_module
    from tests.random_programs.choices import SeededChoices
    from tests.random_programs.generator import Generator

    emitted = ""
    for seed in range(8):
        generator = Generator(SeededChoices(seed))
        assert generator.attempt(recipe)
        text = module_of([generator.function("f")])
        assert f"ttir.{name}" in text
        checked = run_module(text)
        (run,) = checked.runs
        assert checked.reasons(run) == []
        emitted += "".join(checked.compiled.files.values())
    assert call in emitted


def blocks() -> list[str]:
    """The Python of the document."""
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def run(script: str, **texts: str) -> None:
    """Runs a script with those names in a new process."""
    names = "".join(f"{name} = {text!r}\n" for name, text in texts.items())
    done = subprocess.run(
        [sys.executable, "-c", names + script],
        cwd=DOCUMENT.parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_regular_op() -> None:
    run(REGULAR, ROW=blocks()[0].strip())


def test_the_irregular_op() -> None:
    _, block, test, recipe = blocks()
    run(IRREGULAR, BLOCK=block, TEST=test, RECIPE=recipe)


def test_the_fields_of_rows_are_those_of_the_tables() -> None:
    from ttcodegen.ops.elementwise import binary as elementwise_binary
    from ttcodegen.ops.elementwise import unary as elementwise_unary

    rows = re.findall(r"^\| (`.*?`) \|", DOCUMENT.read_text(), re.MULTILINE)
    reported = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    known = {
        field.name
        for table in (elementwise_unary, elementwise_binary)
        for field in fields(table.Row)
    }
    assert reported >= known
    fields_of_ops = {f.name for kind in (TTIRDefinition, TTNNDefinition) for f in fields(kind)}
    assert reported <= known | fields_of_ops | {trait.name for trait in Trait}


def test_all_fields_and_traits_are_named() -> None:
    text = DOCUMENT.read_text()
    named = {
        *(field.name for field in fields(TTIRDefinition)),
        *(field.name for field in fields(TTNNDefinition)),
        *(trait.name for trait in Trait),
    }
    missing = {name for name in named if not re.search(rf"\b{name}\b", text)}
    assert missing == set()
