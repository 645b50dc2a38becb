"""Calls that a person moved, or replaced by others of the same meaning, in edited C++."""

from __future__ import annotations

import re

import pytest

from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.project.tuning.application import AppliedDecisions, apply_decisions
from ttcodegen.project.tuning.decisions import compared
from ttcodegen.project.tuning.edited_files import EditedFile
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.meanings import same_meaning
from ttcodegen.project.tuning.order import with_last_uses
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.project.tuning.report import report_lines
from ttcodegen.project.tuning.statements import statements

PATH = "src/model.cpp"
CODE = """\
namespace model {
Outputs block(const Inputs& inputs, const Weights& weights) {
    ttnn::Tensor norm = ttnn::rms_norm(inputs.x, 1e-5f, weights.norm);
    // gate
    ttnn::Tensor gate = call::matmul(norm, weights.gate);
    ttnn::Tensor active = ttnn::silu(last_use(gate));
    // up
    ttnn::Tensor up = call::matmul(last_use(norm), weights.up);
    ttnn::Tensor product = ttnn::multiply(last_use(active), last_use(up));
    ttnn::update_cache(inputs.cache, product, 0);
    ttnn::Tensor root = ttnn::sqrt(product);
    ttnn::Tensor inverse = ttnn::reciprocal(last_use(root));
    ttnn::Tensor sum = ttnn::add(last_use(product), inputs.cache);
    return Outputs{.sum = sum, .inverse = inverse};
}
}  // namespace model
"""
UP = "    // up\n    ttnn::Tensor up = call::matmul(last_use(norm), weights.up);\n"
EARLY = "    ttnn::Tensor up = call::matmul(norm, weights.up);\n    // gate\n"
MOVED = (
    (UP, "    // up\n"),
    ("    // gate\n", EARLY),
    ("matmul(norm, weights.gate)", "matmul(last_use(norm), weights.gate)"),
)
INVERSE = (
    ("    ttnn::Tensor root = ttnn::sqrt(product);\n", ""),
    ("ttnn::reciprocal(last_use(root))", "ttnn::rsqrt(product)"),
)
OPENED = "    ttnn::Tensor opened = ttnn::sigmoid(gate);\n"
ACTIVE = (
    ("    ttnn::Tensor active = ttnn::silu(last_use(gate));\n",
     f"    // on both engines\n{OPENED}"
     "    ttnn::Tensor active = ttnn::multiply(last_use(gate), last_use(opened));\n"),
)  # fmt: skip


def ops(text: str) -> list[OpLines]:
    return [
        OpLines(LoweredOp("block", match[1], None), PATH, number, number)
        for number, line in enumerate(text.split("\n"), 1)
        if (match := re.match(r" +ttnn::Tensor (\w+) =", line))
    ]


def renamed(text: str, variable: str, name: str) -> str:
    return re.sub(rf"(?<![.\w]){variable}\b", name, text)


def edited(*edits: tuple[str, str], code: str = CODE) -> EditedFile:
    text = code
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (file,) = compared({PATH: code}, {PATH: text}, ops(code))
    return file


def applied(file: EditedFile, now: str) -> AppliedDecisions:
    before = file.before
    return apply_decisions(
        [file], {PATH: before}, ops(before), {PATH: now}, ops(now), Legality(b"")
    )


def test_a_moved_call_is_a_decision_with_the_last_uses_around_it() -> None:
    file = edited(*MOVED)
    assert list(report_lines([file])) == ["up: called after 'norm'  (src/model.cpp:4)"]
    assert file.rest == CODE
    assert entries([file]) == {"block": {"up": {"after": "norm", "before": "gate"}}}


def test_a_move_is_made_again_in_a_changed_model() -> None:
    """The variable that was read last by the call is read last by another one."""
    now = renamed(CODE, "norm", "scaled").replace("ttnn::silu", "ttnn::gelu")
    made = applied(edited(*MOVED), now)
    assert made.lost == []
    text = made.texts[PATH]
    lines = [line.strip() for line in text.split("\n")]
    first = lines.index("ttnn::Tensor up = call::matmul(scaled, weights.up);")
    assert lines[first - 1].startswith("ttnn::Tensor scaled =")
    assert "call::matmul(last_use(scaled), weights.gate)" in text
    assert text.count("last_use(scaled)") == 1
    assert made.rest[PATH] == CODE


def test_a_move_that_holds_already_changes_nothing() -> None:
    file = edited(*MOVED)
    made = applied(file, file.after)
    assert made.lost == []
    assert made.texts[PATH] == file.after


def test_a_move_that_a_new_dependence_forbids_is_named() -> None:
    now = CODE.replace("last_use(norm), weights.up", "active, weights.up")
    made = applied(edited(*MOVED), now)
    (lost,) = made.lost
    assert "'up': called after 'norm': its place depends on 'active'" in str(lost)
    assert made.texts[PATH] == now


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param(
            (
                ("    ttnn::update_cache(inputs.cache, product, 0);\n", ""),
                ("    return", "    ttnn::update_cache(inputs.cache, product, 0);\n    return"),
            ),
            id="a cache that is read",
        ),
        pytest.param(
            (
                ("    ttnn::Tensor root = ttnn::sqrt(product);\n", ""),
                ("    return", "    ttnn::Tensor root = ttnn::sqrt(product);\n    return"),
            ),
            id="an operand",
        ),
    ],
)  # fmt: skip
def test_a_call_that_passes_what_it_depends_on_stays_text(
    edits: tuple[tuple[str, str], ...],
) -> None:
    file = edited(*edits)
    assert not file.has_decisions
    assert file.rest == file.after


def test_a_move_into_another_block_stays_text() -> None:
    looped = CODE.replace("    // up\n", "    for (int i = 0; i < 2; ++i) {\n").replace(
        "weights.up);\n", "weights.up);\n    }\n"
    )
    up = "    ttnn::Tensor up = call::matmul(last_use(norm), weights.up);\n"
    file = edited((up, ""), ("    // gate\n", EARLY), code=looped)
    assert not file.has_decisions


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        (INVERSE, "root, inverse: ttnn::rsqrt instead of ttnn::sqrt, ttnn::reciprocal"),
        (ACTIVE, "active: ttnn::sigmoid, ttnn::multiply instead of ttnn::silu"),
    ],
)
def test_calls_of_the_same_meaning_are_a_decision(
    edits: tuple[tuple[str, str], ...], line: str
) -> None:
    file = edited(*edits)
    assert [each.partition("  (")[0] for each in report_lines([file])] == [line]
    assert file.rest == CODE


def test_a_call_that_is_moved_past_another_one_does_not_keep_that_from_being_replaced() -> None:
    file = edited(*MOVED, *ACTIVE, *INVERSE)
    assert len(file.moved) == 1
    assert len(file.replaced) == 2
    assert file.rest == CODE


def test_a_call_may_be_replaced_and_moved_at_once() -> None:
    silu, *_ = (line for line in CODE.splitlines(True) if "ttnn::silu(" in line)
    opened = silu.replace(
        "ttnn::Tensor active = ttnn::silu(last_use(gate))",
        "ttnn::Tensor active = ttnn::multiply(gate, ttnn::sigmoid(gate))",
    )
    product = "    ttnn::Tensor product ="
    file = edited((silu, ""), (product, f"{opened}{product}"))
    assert len(file.moved) == len(file.replaced) == 1
    assert file.rest == CODE
    assert set(entries([file])["block"]["active"]) == {"calls", "after", "before"}
    made = applied(file, renamed(CODE, "up", "other"))
    assert made.lost == []
    lines = [line.strip() for line in made.texts[PATH].split("\n")]
    place = lines.index("ttnn::Tensor active = ttnn::multiply(gate, ttnn::sigmoid(gate));")
    assert lines[place - 1].startswith("ttnn::Tensor other =")
    assert lines[place + 1].startswith("ttnn::Tensor product =")


def test_calls_that_were_replaced_are_replaced_again_under_other_names() -> None:
    now = renamed(renamed(CODE, "gate", "opening"), "root", "square_root")
    made = applied(edited(*ACTIVE, *INVERSE), now)
    assert made.lost == []
    text = made.texts[PATH]
    assert (
        "    // on both engines\n    ttnn::Tensor opened = ttnn::sigmoid(opening);\n"
        "    ttnn::Tensor active = ttnn::multiply(last_use(opening), last_use(opened));\n"
    ) in text
    assert "square_root" not in text
    assert "ttnn::Tensor inverse = ttnn::rsqrt(product);" in text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ttnn::sqrt(product)", "ttnn::sqrt(product, true)", "other arguments now: true"),
        (".sum = sum", ".sum = root", "is read by"),
        ("ttnn::reciprocal(last_use(root))", "ttnn::exp(last_use(root))", "there is no such call"),
    ],
)
def test_a_replacement_that_does_not_apply_is_named(old: str, new: str, reason: str) -> None:
    now = CODE.replace(old, new)
    made = applied(edited(*INVERSE), now)
    if reason == "is read by":
        now = CODE.replace("ttnn::add(last_use(product)", "ttnn::add(root")
        made = applied(edited(*INVERSE), now)
    (lost,) = made.lost
    assert reason in str(lost)
    assert made.texts[PATH] == now


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("b = ttnn::divide(x, 8.0f);", "b = ttnn::multiply(x, 0.125f);", True),
        ("b = ttnn::subtract(x, y);", "b = ttnn::subtract(y, x);", False),
        ("b = ttnn::silu(x);", "b = ttnn::gelu(x);", False),
        ("b = ttnn::relu(x);", "b = ttnn::relu6(x);", False),
        ("m = call::matmul(x, w); b = ttnn::add(m, c);", "b = ttnn::linear(x, w, c);", True),
        (
            "b = ttnn::permute(x, ttsl::SmallVector<int64_t>{0, 1, 3, 2});",
            "b = ttnn::transpose(x, -2, -1);",
            True,
        ),
        (
            "b = ttnn::permute(x, ttsl::SmallVector<int64_t>{0, 2, 1, 3});",
            "b = ttnn::transpose(x, -2, -1);",
            False,
        ),
        ("b = ttnn::unknown(x);", "b = ttnn::unknown(x);", False),
    ],
)
def test_meanings_are_those_of_the_catalogue(before: str, after: str, same: bool) -> None:
    old, new = (
        [each for each in statements(f"void f() {{ {text} }}") if each.function]
        for text in (before, after)
    )
    assert same_meaning(old, new, {}) is same


def test_calls_that_read_and_assign_one_variable_are_made_with_two() -> None:
    code = CODE.replace(
        "ttnn::Tensor active = ttnn::silu(last_use(gate))", "gate = ttnn::silu(gate)"
    )
    code = code.replace("last_use(active)", "last_use(gate)")
    file = edited(("gate = ttnn::silu(gate);", "gate = ttnn::swish(gate);"), code=code)
    assert not file.has_decisions
    opened = "ttnn::Tensor opened = ttnn::sigmoid(gate);"
    file = edited(
        ("gate = ttnn::silu(gate);", f"{opened}\n    gate = ttnn::multiply(gate, opened);"),
        code=code,
    )
    made = applied(file, CODE)
    assert made.lost == []
    assert (
        f"{opened}\n    ttnn::Tensor active = ttnn::multiply(last_use(gate), last_use(opened));"
    ) in made.texts[PATH]


def test_a_variable_that_is_operand_and_result_now_is_not_overwritten_too_early() -> None:
    """active = sigmoid(gate); active = active * gate."""
    two = (
        "ttnn::Tensor active = ttnn::silu(last_use(gate));",
        "ttnn::Tensor active = ttnn::sigmoid(gate);\n"
        "    active = ttnn::multiply(last_use(gate), active);",
    )
    file = edited(two)
    assert len(file.replaced) == 1
    now = CODE.replace(
        "ttnn::Tensor active = ttnn::silu(last_use(gate))", "gate = ttnn::silu(gate)"
    )
    now = now.replace("last_use(active)", "last_use(gate)")
    (lost,) = applied(file, now).lost
    assert "'gate' is what the calls read, and their result, now" in str(lost)


def test_a_call_within_another_one_means_what_it_would_before_it() -> None:
    nested = "ttnn::Tensor active = ttnn::multiply(gate, ttnn::sigmoid(gate));"
    file = edited(("ttnn::Tensor active = ttnn::silu(last_use(gate));", nested))
    assert len(file.replaced) == 1
    assert file.rest == CODE
    (function,) = entries([file]).values()
    calls = function["active"]["calls"]
    assert [call["op"] for call in calls] == ["sigmoid", "multiply"]
    assert calls[1]["operands"] == ["active:0", calls[0]["name"]]


def test_operands_in_another_order_are_a_decision_where_they_commute() -> None:
    swapped = "ttnn::multiply(last_use(up), last_use(active), std::nullopt, ttnn::L1_MEMORY_CONFIG)"
    file = edited(("ttnn::multiply(last_use(active), last_use(up))", swapped))
    assert entries([file]) == {
        "block": {
            "product": {
                "calls": [{"op": "multiply", "operands": ["product:1", "product:0"]}],
                "memory": "l1",
                "sharding": "interleaved",
            }
        }
    }
    difference = CODE.replace("ttnn::multiply(", "ttnn::subtract(")
    file = edited(
        ("(last_use(active), last_use(up))", "(last_use(up), last_use(active))"), code=difference
    )
    assert not file.has_decisions


@pytest.mark.parametrize(
    ("now", "made"),
    [
        pytest.param(
            "ttnn::silu(last_use(gate), tuning::there)",
            "ttnn::Tensor active = ttnn::multiply(last_use(gate), last_use(opened), std::nullopt, "
            "tuning::there);",
            id="interleaved",
        ),
        pytest.param("ttnn::silu(last_use(gate), true)", None, id="another meaning"),
    ],
)
def test_calls_are_replaced_with_the_settings_of_another_level(now: str, made: str | None) -> None:
    constant = (
        "namespace model::tuning {\n"
        "inline const ttnn::MemoryConfig& there = ttnn::L1_MEMORY_CONFIG;\n}\n"
    )
    text = CODE.replace("ttnn::silu(last_use(gate))", now)
    found = apply_decisions(
        [edited(*ACTIVE)],
        {PATH: CODE},
        ops(CODE),
        {PATH: text, "src/tuning.hpp": constant},
        ops(text),
        Legality(b""),
    )
    if made is None:
        assert "other arguments now: true" in str(found.lost[0])
    else:
        assert found.lost == []
        assert made in " ".join(found.texts[PATH].split())


def test_an_activation_that_became_part_of_a_call_is_taken_out_again() -> None:
    """The product applies silu at another level: the calls that the person made follow it."""
    silu = "    ttnn::Tensor active = ttnn::silu(last_use(gate));\n"
    assert silu in CODE
    now = CODE.replace(silu, "").replace("ttnn::Tensor gate =", "ttnn::Tensor active =")
    now = now.replace("(norm, weights.gate)", '(norm, weights.gate, {.activation = "silu"})')
    made = applied(edited(*ACTIVE), now)
    assert made.lost == []
    assert (
        "    // on both engines\n"
        "    ttnn::Tensor active = call::matmul(norm, weights.gate);\n"
        "    ttnn::Tensor opened = ttnn::sigmoid(active);\n"
        "    active = ttnn::multiply(active, last_use(opened));\n"
    ) in made.texts[PATH]


def test_what_an_override_put_there_already_stays() -> None:
    file = edited(*ACTIVE, *INVERSE)
    made = applied(file, file.after)
    assert made.lost == []
    assert made.texts.get(PATH, file.after) == file.after


def test_a_heading_may_go_with_the_call_that_is_moved() -> None:
    file = edited((UP, ""), ("    // gate\n", EARLY), MOVED[2])
    assert len(file.moved) == 1
    assert file.rest == CODE


@pytest.mark.parametrize(("body", "moves"), [("ttnn::exp(a)", True), ("ttnn::exp_(a)", False)])
def test_a_function_of_the_file_may_be_passed_if_it_overwrites_nothing(
    body: str, moves: bool
) -> None:
    helper = f"static ttnn::Tensor scaled(const ttnn::Tensor& a) {{\n    return {body};\n}}\n\n"
    if not moves:
        helper = helper.replace("return", "ttnn::Tensor b =").replace(";\n}", ";\n    return b;\n}")
    code = CODE.replace("Outputs block(", f"{helper}Outputs block(").replace(
        "call::matmul(norm, weights.gate)", "scaled(norm)"
    )
    moved = (MOVED[0], MOVED[1], ("scaled(norm)", "scaled(last_use(norm))"))
    assert bool(edited(*moved, code=code).moved) is moves


def test_a_variable_is_moved_by_the_statement_that_reads_it_last() -> None:
    text = "void f() { ttnn::Tensor a = g(x); b = ttnn::exp(last_use(a)); c = ttnn::sin(a); }"
    assert with_last_uses(text, ["f"]) == text.replace("last_use(a)", "a").replace(
        "sin(a)", "sin(last_use(a))"
    )
    twice = text.replace("sin(a)", "add(a, a)")
    assert "last_use" not in with_last_uses(twice, ["f"])
    assert with_last_uses(text, []) == text


def test_a_member_is_assigned_under_its_path() -> None:
    text = "void f() { constants.stem.weight = g(x); weights[1].up = g(x); y = g(x); }"
    assert [each.target for each in statements(text)] == [
        "constants.stem.weight", "weights[1].up", "y"
    ]  # fmt: skip
