"""Each option changes what is written, or is refused: none is dropped without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ttcodegen.cli.opt import main as opt_main
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.optimizer.overrides.overrides import read_overrides
from ttcodegen.transforms.registry import OptionError, Step, passes_of

SOURCE = """func.func @forward(%x: tensor<64x64xbf16>,
    %w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                            ttir.name = "w"}) -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      loc("scores")
  return %0 : tensor<64x64xbf16>
}
"""


def compiled(**options: Any) -> CompiledModule:
    return compile_module(Source("m.mlir", SOURCE), CompileOptions("m", **options))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize("weights", ["bfp8_b", "bfp4_b"])
def test_weights_become_block_floats(target: str, weights: str) -> None:
    expected = {"bfp8_b": "BFLOAT8_B", "bfp4_b": "BFLOAT4_B"}[weights]
    made = compiled(target=target, weights=weights)
    if target == "ttnn":
        setting = f"product_weights_type = ttnn::DataType::{expected};"
        assert setting in made.files["src/tuning.hpp"]
        return
    (function,) = made.description.functions
    (weight,) = [tensor for tensor in function.arguments if tensor.is_weight]
    assert weight.data_type.name == expected


@pytest.mark.parametrize(
    "options",
    [
        ["--optimize", "1"],
        ["--optimize", "2"],
        ["--optimize", "2", "--explain"],
        ["--optimize", "2", "--write-overrides", "o.json"],
        ["--overrides", "o.json"],
        ["--explain"],
        ["--embed-goldens"],
    ],
)
def test_ttmetal_refuses_what_it_has_not(
    source: Path, tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([str(source), "-o", str(out), "--target", "ttmetal", *options]) == 2
    assert "--target ttmetal" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    "options", [{"optimize": 2}, {"overrides": "{}"}, {"golden_seed": 1}, {"weights": "bf8"}]
)
def test_python_refuses_what_the_target_has_not(options: dict[str, Any]) -> None:
    with pytest.raises(CompileError):
        compiled(target="ttmetal", **options)


@pytest.mark.parametrize("options", [{"optimize": 3}, {"weights": "bfp8"}, {"target": "ttnm"}])
def test_values_that_there_are_not(options: dict[str, Any]) -> None:
    with pytest.raises(CompileError):
        compiled(**options)


def test_overrides_know_their_level(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decisions, out = tmp_path / "o.json", tmp_path / "out"
    command = [str(source), "-o", str(out), "--no-format", "-q"]
    for level in (1, 2):
        given = ["--optimize", str(level), "--write-overrides", str(decisions)]
        assert main([*command, *given]) == 0
        text = (out / "src" / "m.cpp").read_text()
        assert json.loads(decisions.read_text())["level"] == level
        assert main([*command, "--overrides", str(decisions), "--force"]) == 0
        assert (out / "src" / "m.cpp").read_text() == text
    assert main([*command, "--overrides", str(decisions), "--optimize", "0"]) == 2
    capsys.readouterr()
    decisions.write_text('{"version": 1, "level": 7, "functions": {}}')
    assert main([*command, "--overrides", str(decisions)]) == 1
    assert "the level 7" in capsys.readouterr().err


def test_decisions_are_followed_at_level_0() -> None:
    given = '{"version": 1, "functions": {"forward": {"scores": {"memory": "l1"}}}}'
    text = compiled(overrides=given).files["src/tuning.hpp"]
    assert text != compiled().files.get("src/tuning.hpp")
    with pytest.raises(CompileError, match="nothing called 'nosuch'"):
        compiled(overrides=given.replace("scores", "nosuch"))


@pytest.mark.parametrize(
    "options",
    [
        "overrides=nonsense",
        "override-output-layout=nosuch=dram",
        "override-output-layout=scores=99",
        "override-conv2d-config=x",
        "insert-memreconfig=nosuch=0",
        "optimization-level=7",
        "optimization-level=-1",
        "record-decisions=true",
        "overrides=insert-memreconfig=scores=0 override-output-layout=scores=dram",
    ],
)
def test_pipelines_refuse_impossible_options(
    source: Path, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt_main([f"--ttir-to-ttnn-common-pipeline={options}", str(source)]) != 0
    assert "error" in capsys.readouterr().err


def test_a_layout_is_followed_at_level_0(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = "--ttir-to-ttnn-common-pipeline"
    assert opt_main([pipeline, str(source)]) == 0
    plain = capsys.readouterr().out
    assert opt_main([f"{pipeline}=override-output-layout=scores=l1", str(source)]) == 0
    assert "#l1" in capsys.readouterr().out.replace(plain, "")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ttir-to-ttmetal-pipeline", {"optimization-level": 2}),
        ("ttir-to-ttmetal-pipeline", {"weight-dtype": "bf8"}),
        ("ttnn-optimize", {"levle": 2}),
        ("ttnn-optimize", {"level": 3}),
        ("ttnn-layout", {"x": 1}),
        ("ttir-to-ttnn-common-pipeline", {"enable-trace": True}),
    ],
)
def test_steps_refuse_options_that_they_do_not_take(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        passes_of(Step(name, options))


def test_overrides_say_nothing_beside_their_fields() -> None:
    with pytest.raises(CompileError, match="a field 'levle'"):
        read_overrides('{"version": 1, "levle": 2, "functions": {}}')


@pytest.mark.parametrize("name", ["f", "x", "y"])
def test_names_with_nul_are_refused(name: str) -> None:
    text = 'func.func @"f"(%x: tensor<4xf32> {ttir.name = "x"})'
    text += ' -> (tensor<4xf32> {ttir.name = "y"}) {return %x : tensor<4xf32>}'
    with pytest.raises(CompileError, match="has a NUL"):
        compile_module(
            Source("m.mlir", text.replace(f'"{name}"', f'"{name}\\00z"')), CompileOptions("m")
        )
