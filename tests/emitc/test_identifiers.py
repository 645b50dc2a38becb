"""Names from the input become identifiers, and stay apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttcodegen.emitc.spelling import (
    NameScope,
    constant_name,
    file_stem,
    identifier,
    is_identifier,
    snake_case,
    type_name,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("conv1_weight", "conv1_weight"),
        ("layer1.0.conv/weight", "layer1_0_conv_weight"),
        ("l__self___linear.bias", "l_self_linear_bias"),
        ("__reserved", "reserved"),
        ("_Upper", "Upper"),
        ("0", "value_0"),
        ("2fast", "value_2fast"),
        ("class", "class_"),
        ("co_await", "co_await_"),
        ("main", "main_"),
        ("errno", "errno_"),
        ("EOF", "eof"),
        ("TT_FATAL", "tt_fatal"),
        ("W", "W"),
        ("Maß", "Ma"),
        ("café", "cafe"),
        ("输入", "value"),
        ("", "value"),
        ("...", "value"),
        ('x"); system("rm', "x_system_rm"),
        ("a\n#include <b>", "a_include_b"),
        ("size_t", "size_t_"),
    ],
)
def test_identifier(text: str, expected: str) -> None:
    assert identifier(text) == expected


def test_identifier_uses_the_fallback_in_front_of_digits_and_for_nothing() -> None:
    assert identifier("7", "layer") == "layer_7"
    assert identifier("?", "layer") == "layer"


def test_long_names_are_cut_and_stay_apart() -> None:
    scope = NameScope()
    names = [scope.unique(identifier("module_" * 30 + end)) for end in ("weight", "bias")]
    assert len(set(names)) == 2
    assert all(len(name) <= 70 for name in names)


@given(st.text())
def test_every_text_becomes_an_identifier(text: str) -> None:
    for name in (identifier(text), type_name(text), constant_name(text), snake_case(text)):
        assert is_identifier(name)
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)


@given(st.text(alphabet="ab_0.", max_size=8))
def test_identifier_is_idempotent(text: str) -> None:
    assert identifier(identifier(text)) == identifier(text)


@pytest.mark.parametrize("text", ["", "a b", "1a", "a__b", "_A", "_", "int", "é", "a\n"])
def test_what_is_no_identifier(text: str) -> None:
    assert not is_identifier(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("linear_relu_stack", "LinearReluStack"), ("forward", "Forward"), ("0", "Type0")],
)
def test_type_name(text: str, expected: str) -> None:
    assert type_name(text) == expected


def test_other_conventions() -> None:
    assert constant_name("dram interleaved") == "kDramInterleaved"
    assert snake_case("MemoryConfig") == "memory_config"
    assert snake_case("SDPAProgramConfig") == "sdpa_program_config"
    assert file_stem("con") == "con_"
    assert file_stem("../../etc/passwd") == "etc_passwd"


def test_unique_names_are_numbered_in_order() -> None:
    scope = NameScope(["ttnn", "x_2"])
    assert [scope.unique("x") for _ in range(3)] == ["x", "x_3", "x_4"]
    assert scope.unique("ttnn") == "ttnn_2"


def test_numbering_keeps_double_underscores_out() -> None:
    scope = NameScope(["class_"])
    assert scope.unique("class_") == "class_2"


def test_inner_scopes_see_outer_names_and_give_theirs_back() -> None:
    outer = NameScope()
    assert outer.unique("x") == "x"
    assert outer.nested().unique("x") == "x_2"
    assert outer.nested().unique("x") == "x_2"
    assert outer.unique("x") == "x_2"


@given(st.lists(st.sampled_from(["x", "x_", "x_2", "x_2_2", "y"]), max_size=30))
def test_unique_names_are_unique(requests: list[str]) -> None:
    scope = NameScope()
    names: list[str] = []
    for number, request in enumerate(requests):
        scope = scope.nested() if number % 5 == 4 else scope
        names.append(scope.unique(request))
    assert len(set(names)) == len(names)
