"""Edits of three models as a file of overrides, which does the same alone in another folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.project import test_decisions_applied as transformer
from tests.project import test_edits_of_models as models
from tests.project.tuned_models import decode_layers
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.emission.description import ModuleDescription
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.optimizer.overrides.overrides import MERGED
from ttcodegen.project.edits import tuned_files
from ttcodegen.project.sources import project_files
from ttcodegen.project.tuning.override_entries import entries, overrides_text, unexpressed
from ttcodegen.project.writer import write_project

Texts = Mapping[str, str]
UNARY = "ttnn::operations::unary::"


GATE = "    feed_forward_gate = ttnn::silu(feed_forward_gate);\n"
MASK = (
    "    ttnn::Tensor mask = ttnn::to_layout(inputs.mask, ttnn::Layout::TILE);\n"
    "    mask = ttnn::maximum(mask, -1e30f);\n"
)
VALUE = "    ttnn::Tensor l_value = call::matmul(last_use(l_input_norm), weights.value.weight);\n"
STRUCTURE: Mapping[str, tuple[str, tuple[tuple[str, str], ...], Mapping[str, Any], str]] = {
    "calls": (
        "transformer",
        (
            (
                GATE,
                "    // on both engines\n"
                "    ttnn::Tensor opened = ttnn::sigmoid(feed_forward_gate);\n"
                "    feed_forward_gate = ttnn::multiply(last_use(feed_forward_gate), "
                "last_use(opened), std::nullopt, ttnn::L1_MEMORY_CONFIG);\n",
            ),
        ),
        {
            "silu": {
                "calls": [
                    {"name": "opened", "op": "sigmoid", "operands": ["silu:0"]},
                    {"op": "multiply", "operands": ["silu:0", "opened"]},
                ],
                "comment": "on both engines",
                "memory": "l1",
                "sharding": "interleaved",
            }
        },
        "ttnn::Tensor opened = ttnn::sigmoid(feed_forward_gate);",
    ),
    "activation of an operand": (
        "transformer",
        (
            (GATE, ""),
            (
                "last_use(feed_forward_up));",
                "last_use(feed_forward_up), std::nullopt, std::nullopt, std::nullopt, {}, "
                f"std::array{{{UNARY}EltwiseUnaryWithParam({UNARY}UnaryOpType::SILU)}});",
            ),
        ),
        {
            "multiply": {
                "calls": [
                    {
                        "op": "multiply",
                        "operands": ["silu:0", "multiply:1"],
                        "attributes": {"lhs_activation": "silu"},
                    }
                ]
            }
        },
        f"{{}}, std::array{{{UNARY}EltwiseUnaryWithParam({UNARY}UnaryOpType::SILU)}});",
    ),
    "order": (
        "transformer",
        ((MASK, ""), ("    // attention_norm\n", f"    // early\n{MASK}\n    // attention_norm\n")),
        {
            "mask": {"after": "hidden_states", "before": "attention_norm", "comment": "early"},
            "maximum": {"after": "mask", "before": "attention_norm"},
        },
        "mask = ttnn::maximum(mask, -1e30f);  // attention_norm",
    ),
    "calls of layers": (
        "decode",
        (
            (
                "ttnn::Tensor l_active = ttnn::silu(last_use(l_gate));",
                "ttnn::Tensor open = ttnn::sigmoid(l_gate);\n"
                "    ttnn::Tensor l_active = ttnn::multiply(last_use(l_gate), last_use(open));",
            ),
        ),
        {
            f"l{layer}_active": {
                "calls": [
                    {
                        "name": f"l{layer}_active_open",
                        "op": "sigmoid",
                        "operands": [f"l{layer}_active:0"],
                    },
                    {
                        "op": "multiply",
                        "operands": [f"l{layer}_active:0", f"l{layer}_active_open"],
                    },
                ]
            }
            for layer in range(2)
        },
        "ttnn::Tensor l_active_open = ttnn::sigmoid(l_gate); ttnn::Tensor l_active = "
        "ttnn::multiply(last_use(l_gate), last_use(l_active_open)",
    ),
    "order in layers": (
        "decode",
        (
            (VALUE, ""),
            (
                "    // key\n",
                f"{VALUE.replace('last_use(l_input_norm)', 'l_input_norm')}    // key\n",
            ),
            (
                "(l_input_norm, weights.key.weight)",
                "(last_use(l_input_norm), weights.key.weight)",
            ),
        ),
        {
            f"l{layer}_value": {
                "after": f"l{layer}_query_rotated",
                "before": f"l{layer}_key",
            }
            for layer in range(2)
        },
        "// key ttnn::Tensor l_key = call::matmul(",
    ),
}


def squeezed(text: str) -> str:
    """A text without the spaces that depend on the length of its lines."""
    return "".join(text.split())


def generated(
    text: str, name: str, **options: Any
) -> tuple[CompiledModule, dict[str, str | bytes]]:
    compiled = compile_module(Source(f"{name}.mlir", text), CompileOptions(name, **options))
    return compiled, project_files(compiled, formatted=True)


def edited(out: Path, of: tuple[ModuleDescription, dict[str, str | bytes]], texts: Texts) -> str:
    """A project with edits, and its file of overrides."""
    write_project(of[0], out, of[1])
    for path, text in texts.items():
        (out / path).write_text(text)
    return overrides_text(tuned_files(out))


@pytest.mark.parametrize("level", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", STRUCTURE)
def test_order_and_calls_are_entries_that_do_the_same(
    what: str, level: int, tmp_path: Path
) -> None:
    name, pairs, expected, made = STRUCTURE[what]
    text = transformer.model() if name == "transformer" else decode_layers(2)
    compiled, files = generated(text, name)
    path = f"src/{name}.cpp"
    code = str(files[path])
    for old, new in pairs:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    overrides = edited(tmp_path / "out", (compiled.description, files), {path: code})
    tuned = tuned_files(tmp_path / "out")
    (entry,) = entries(tuned).values()
    assert entry == expected
    assert unexpressed(tuned) == []
    assert all(file.rest == file.before for file in tuned)
    fresh, files = generated(text, name, optimize=level, overrides=overrides)
    assert squeezed(made) in squeezed(str(files[path]))
    # What was given is written beside what was decided.
    (decided,) = json.loads(fresh.decisions)["functions"].values()
    for op, fields in expected.items():
        assert {field: decided[op].get(field) for field in fields} == fields
    # In the folder of the edits, they are there already.
    if level == 1:
        assert write_project(fresh.description, tmp_path / "out", files) == []
        assert squeezed(made) in squeezed((tmp_path / "out" / path).read_text())


REFUSED = {
    (
        "decode",
        "memory of attention",
    ): "'l0_attention' (scaled_dot_product_attention_decode) cannot",
    ("network", "memory of activations"): "'pooled' (max_pool2d) cannot be made",
}
"""Decisions that the library is not known to take, with the op that the message names."""


@cache
def cases() -> dict[tuple[str, str], tuple[str, Any, Texts]]:
    """Text, project and edited files of each edit of each model."""
    found: dict[tuple[str, str], tuple[str, Any, Texts]] = {}
    for name, (text, _, edits) in models.MODELS.items():
        for edit, function in edits.items():
            texts = models.edited_files(name, function)
            found[name, edit] = text, models.generated(name, ""), texts
    for edit, (pairs, _) in transformer.EDITS.items():
        project = transformer.generated("")
        texts = {p: str(project[1][p]) for p in (transformer.CODE, transformer.TUNING)}
        for old, new in pairs:
            texts = {path: text.replace(old, new) for path, text in texts.items()}
        found["transformer", edit] = transformer.model(), project, texts
    return found


@pytest.mark.parametrize(
    "name", ["transformer", *(pytest.param(n, marks=pytest.mark.slow) for n in models.MODELS)]
)
def test_each_edit_does_the_same_alone_in_another_folder(name: str, tmp_path: Path) -> None:
    for number, ((of, edit), (text, project, texts)) in enumerate(cases().items()):
        if of != name:
            continue
        overrides = edited(tmp_path / str(number), project, texts)
        given = json.loads(overrides)["functions"]
        assert given != {}, edit
        options = CompileOptions(name, optimize=1, overrides=overrides)
        refused = REFUSED.get((name, edit))
        if refused is not None:
            with pytest.raises(CompileError) as caught:
                compile_module(Source("", text), options)
            assert refused in caught.value.diagnostics[0].message
            assert "the library takes" in (caught.value.diagnostics[0].remedy or "")
            continue
        compiled = compile_module(Source("", text), options)
        decided = json.loads(compiled.decisions)["functions"]
        assert MERGED not in compiled.files[f"src/{name}.cpp"]
        for function, ops in given.items():
            made = decided[function]
            for op, fields in ops.items():
                # A call that applies the activation after it is named after that.
                there = [made[op]] if op in made else list(made.values())
                config = fields.pop("conv2d_config", None)
                assert any(fields.items() <= each.items() for each in there), (edit, op)
                if config and "act_block_h_override" in config:
                    assert any("act_block_h_override = 32" in json.dumps(e) for e in there)


def test_the_command_line_writes_and_takes_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out, file = tmp_path / "model.mlir", tmp_path / "out", tmp_path / "tuned.json"
    model.write_text(transformer.model())
    assert main([str(model), "-o", str(out)]) == 0
    code = out / "src/model.cpp"
    text = code.read_text()
    for old, new in STRUCTURE["calls"][1] + STRUCTURE["order"][1]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    code.write_text(text)
    capsys.readouterr()
    assert main(["--edits", str(out), "--write-overrides", str(file)]) == 0
    listed = capsys.readouterr().out
    assert "# silu: ttnn::sigmoid, ttnn::multiply instead of ttnn::silu" in listed
    assert "# maximum: called after 'mask'" in listed
    fresh = tmp_path / "fresh"
    assert main([str(model), "-o", str(fresh), "--overrides", str(file)]) == 0
    made = squeezed((fresh / "src/model.cpp").read_text())
    assert squeezed(STRUCTURE["calls"][3]) in made
    assert squeezed(STRUCTURE["order"][3]) in made
    # The op that the entry is of is another one now.
    model.write_text(transformer.model().replace("ttir.silu", "ttir.gelu"))
    capsys.readouterr()
    assert main([str(model), "-o", str(fresh), "--overrides", str(file)]) == 1
    said = capsys.readouterr().err
    assert "'silu' (gelu) cannot be made by the calls that its override gives" in said
    assert "sigmoid, multiply would not compute what gelu does" in said
    assert "without the entry, gelu is called" in said
