"""Expressions of settings: their text, their values, and the rules between settings."""

from __future__ import annotations

import dataclasses

import pytest

from tests.dialects.texts import parse, refusal, text_of
from tests.ttmetal.exp_module import exp_module, exp_program
from ttcodegen.dialects.ttmetal.device_module import functions_of, is_host_function, launches
from ttcodegen.dialects.ttmetal.programs import CoreArea, Program
from ttcodegen.dialects.ttmetal.tuning import (
    Derived,
    Name,
    Operation,
    Operator,
    Rule,
    Setting,
    Size,
    Tuning,
    at_most,
    ceil_quotient,
    equal,
    evaluate,
    remainder,
    select,
)

A, B, C = Name("a"), Name("b"), Name("c")
VALUES = {"a": 7, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("size", "text", "value"),
    [
        (A * B * C, "a * b * c", 42),
        (A * (B * C), "a * (b * c)", 42),
        (A - 1, "a - 1", 6),
        (A - (B - 1), "a - (b - 1)", 6),
        ((A + B) * 2, "(a + b) * 2", 18),
        (ceil_quotient(A, B * C), "a ceildiv (b * c)", 2),
        (equal(remainder(A, B), 1), "a mod b eq 1", 1),
        (select(at_most(A, B), A, B + 1), "select(a le b, a, b + 1)", 3),
        (Operation(Operator.QUOTIENT, (A, B)), "a floordiv b", 3),
        (1 * A, "a", 7),
    ],
)
def test_expressions_are_written_and_read(size: Size, text: str, value: int) -> None:
    assert str(evaluate(size, VALUES)) == str(value)
    program = tuned(Derived("d", size))
    assert f"value = {text}>" in text_of(exp_module(program=program))
    assert read_back(program).tuning == program.tuning


def tuned(*derived: Derived, rules: tuple[Rule, ...] = ()) -> Program:
    """The program `exp` with settings a, b and c."""
    settings = tuple(Setting(name, value) for name, value in VALUES.items())
    return dataclasses.replace(exp_program(), tuning=Tuning(settings, derived, rules))


def read_back(program: Program) -> Program:
    """The program as it is after it was printed and parsed."""
    module = parse(text_of(exp_module(program=program)))
    (launch,) = launches([f for f in functions_of(module) if is_host_function(f)])
    return launch.program


def test_parts_of_a_program_follow_its_settings() -> None:
    program = dataclasses.replace(
        tuned(Derived("d", B * C)),
        cores=CoreArea(A - 1, B),
        circular_buffers=tuple(
            dataclasses.replace(buffer, pages=Name("d"))
            for buffer in exp_program().circular_buffers
        ),
    )
    assert read_back(program) == program
    assert (program.core_range.columns, program.core_range.rows) == (7, 3)
    assert program.l1_bytes == 2 * 6 * 2048


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("value = a ceildiv b", "value = a ceildiv x", "names the value 'x', which it does not"),
        ("value = a ceildiv b", "value = d", "names the value 'd', which it does not have"),
        ("value = a ceildiv b", "value = a ceildiv (b - 2)", "divides by a setting that is 0"),
        ("value = a ceildiv b", "value = select(a, b)", "select has three operands, not 2"),
        ('name = "b", value = 2', 'name = "a", value = 2', "has two values 'a'"),
        ('name = "d"', 'name = "l1_bytes"', "has a setting 'l1_bytes', which is the name of"),
        ("condition = b le a", "condition = a le b", "breaks a rule: make b smaller"),
    ],
)
def test_settings_that_fit_nothing_are_refused(old: str, new: str, expected: str) -> None:
    rule = Rule(at_most(B, A), "make b smaller")
    text = text_of(exp_module(program=tuned(Derived("d", ceil_quotient(A, B)), rules=(rule,))))
    assert old in text
    assert expected in refusal(text.replace(old, new, 1))
