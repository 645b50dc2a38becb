# ruff: noqa: E501 -- MLIR as it is printed
"""Activations as block floats: which values become them, and what programs compute then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tests.optimizer.modules import INPUT, WEIGHT, entry, seconds
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompiledModule, CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.project.checking import run_in_numpy
from ttcodegen.project.cpu_backend import CPUBackend

ROWS, WIDTH = 64, 128
T = f"tensor<{ROWS}x{WIDTH}xbf16>"
W = f"tensor<{WIDTH}x{WIDTH}xbf16>"


def module(body: str, result: str = T, inputs: str = "") -> str:
    """A function of rows %x and weights %w and %v, whose last value is %r."""
    arguments = f"%x: {T} {{{INPUT}}}, %w: {W} {{{WEIGHT}}}, %v: {W} {{{WEIGHT}}}{inputs}"
    return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return %r : {result}\n}}\n"


def product(name: str, left: str = "%x", right: str = "%w") -> str:
    return f'  %{name} = "ttir.matmul"({left}, {right}) : ({T}, {W}) -> {T}\n'


def of_two(name: str, op: str, left: str, right: str, shape: str = T) -> str:
    return f'  %{name} = "ttir.{op}"({left}, {right}) : ({shape}, {shape}) -> {shape}\n'


def norm(name: str, of: str) -> str:
    return f'  %{name} = "ttir.rms_norm"({of}) <{{normalized_shape = array<i64: {WIDTH}>, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({T}) -> {T}\n'


RESIDUALS = module(
    product("up")
    + of_two("first", "add", "%x", "%up")
    + norm("normed", "%first")
    + product("hidden", "%normed")
    + f'  %active = "ttir.silu"(%hidden) : ({T}) -> {T}\n'
    + product("down", "%active", "%v")
    + of_two("second", "add", "%first", "%down")
    + norm("r", "%second")
)
"""Two residuals, a norm after each and a product with an activation: the layer of a model."""


def compiled(text: str, level: int = 0, **options: Any) -> CompiledModule:
    chosen: dict[str, Any] = {"optimize": level, "activations": "bfp8_b", **options}
    given = CompileOptions("m", **chosen)
    return compile_module(Source("m.mlir", text), given)


def types(found: CompiledModule) -> dict[str, list[str]]:
    """Data types of the results of all calls, by the name of the call."""
    program = entry(found)
    made: dict[str, list[str]] = {}
    for op in program.operations:
        for result in op.results:
            made.setdefault(op.name, []).append(program.tensors[result].type.data_type)
    return made


def outputs(text: str, *values: np.ndarray, level: int = 0, **options: Any) -> list[np.ndarray]:
    """Outputs of the flatbuffer of a module for these arguments."""

    def given(module: ModuleOp, function: FuncOp) -> tuple[np.ndarray, ...]:
        return values

    (run,) = run_in_numpy(Source("m.mlir", text), compiled(text, level, **options), given)
    return list(run.flatbuffer)


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(3)
    return [
        (generator.standard_normal(shape) / (1 if n == 0 else np.sqrt(shape[0]))).astype(np.float32)
        for n, shape in enumerate(shapes)
    ]


@pytest.mark.parametrize("level", [0, 2])
def test_values_between_products_norms_and_sums_are_block_floats(level: int) -> None:
    found = types(compiled(RESIDUALS, level))
    assert found["ttnn.matmul"] == ["bfp_bf8"] * 3
    # The last norm is the result of the program, and its operand has the same data type.
    assert found["ttnn.rms_norm"] == ["bfp_bf8", "bf16"]
    assert found["ttnn.add"] == ["bfp_bf8", "bf16"]


def test_results_and_arguments_keep_their_data_type() -> None:
    found = compiled(RESIDUALS)
    (function,) = found.description.functions
    assert {tensor.data_type.mlir for tensor in (*function.arguments, *function.outputs)} == {
        "bf16"
    }
    assert not any(
        "bfp_bf8" in kinds for kinds in types(compiled(RESIDUALS, activations="")).values()
    )


IMAGE, KERNEL = "tensor<4x32x32x64xbf16>", "tensor<64x64x3x3xbf16>"
IMAGES = (
    f"func.func @main(%0: {IMAGE} {{{INPUT}}}, %w: {KERNEL} {{{WEIGHT}}}) -> {IMAGE} {{\n"
    + "".join(
        f'  %{n + 1} = "ttir.conv2d"(%{n}, %w) <{{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}}> : ({IMAGE}, {KERNEL}) -> {IMAGE}\n'
        for n in range(3)
    )
    + f"  return %3 : {IMAGE}\n}}\n"
)
"""Convolutions of images, one after the other."""

DECIDING = {
    "comparison": product("a") + of_two("r", "gt", "%a", "%x"),
    "sum that is compared": product("a")
    + of_two("b", "add", "%a", "%x")
    + of_two("r", "ge", "%b", "%x"),
    "exponential": product("a") + f'  %r = "ttir.exp"(%a) : ({T}) -> {T}\n',
    "variance": product("a")
    + of_two("b", "multiply", "%a", "%a")
    + f'  %m = "ttir.mean"(%b) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({T}) -> tensor<{ROWS}x1xbf16>\n'
    + f'  %c = "ttir.rsqrt"(%m) : (tensor<{ROWS}x1xbf16>) -> tensor<{ROWS}x1xbf16>\n'
    + f'  %r = "ttir.multiply"(%x, %c) : ({T}, tensor<{ROWS}x1xbf16>) -> {T}\n',
    "choice": product("a") + f'  %r = "ttir.where"(%x, %a, %x) : ({T}, {T}, {T}) -> {T}\n',
    "sum of inputs": of_two("a", "add", "%x", "%x") + product("r", "%a"),
    "result": product("r"),
}


@pytest.mark.parametrize("body", DECIDING.values(), ids=DECIDING)
def test_values_that_decide_keep_their_digits(body: str) -> None:
    made = types(compiled(module(body)))
    assert not any("bfp_bf8" in kinds for kinds in made.values()), made


@pytest.mark.parametrize("op", ["argmax", "topk", "typecast"])
def test_values_that_are_ordered_or_counted_keep_their_digits(op: str) -> None:
    rows, whole = f"tensor<{ROWS}x1xi32>", f"tensor<{ROWS}x{WIDTH}xi32>"
    last = {
        "argmax": f'  %r = "ttir.argmax"(%b) <{{dim_arg = [1 : i32], keep_dim = true}}> : ({T}) -> {rows}\n',
        "topk": f'  %s, %r = "ttir.topk"(%b) <{{k = 32 : i32, dim = -1 : i32}}> : ({T}) -> (tensor<{ROWS}x32xbf16>, tensor<{ROWS}x32xi32>)\n',
        "typecast": f'  %r = "ttir.typecast"(%b) : ({T}) -> {whole}\n',
    }[op]
    result = {"argmax": rows, "topk": f"tensor<{ROWS}x32xi32>", "typecast": whole}[op]
    body = product("a") + of_two("b", "add", "%a", "%x") + last
    made = types(compiled(module(body, result)))
    assert not any("bfp_bf8" in kinds for kinds in made.values()), made


def test_digits_are_kept_by_sums_and_moves_and_not_by_products() -> None:
    """Operands of a comparison are exact, with all that they are sums of, unlike products before."""
    body = (
        product("a")
        + product("b", "%a")
        + of_two("c", "add", "%b", "%x")
        + of_two("r", "gt", "%c", "%x")
    )
    assert types(compiled(module(body)))["ttnn.matmul"] == ["bfp_bf8", "bf16"]


SCORES = f"""
func.func @main(%q: tensor<1x2x32x32xbf16> {{{INPUT}}}, %k: tensor<1x2x32x32xbf16> {{{INPUT}}}, %m: tensor<1x1x32x32xbf16> {{{INPUT}}}, %v: tensor<1x2x32x32xbf16> {{{INPUT}}}) -> tensor<1x2x32x32xbf16> {{
  %s = "ttir.matmul"(%q, %k) <{{transpose_b = true}}> : (tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %a = "ttir.add"(%s, %m) : (tensor<1x2x32x32xbf16>, tensor<1x1x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %p = "ttir.softmax"(%a) <{{dimension = 3 : si32}}> : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %e = "ttir.silu"(%p) : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %o = "ttir.matmul"(%e, %v) : (tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  return %o : tensor<1x2x32x32xbf16>
}}
"""
"""Attention with a mask that is added to the scores; the silu keeps it from becoming one call."""


@pytest.mark.parametrize("hidden", [-1e9, -np.inf])
def test_scores_are_exact_beside_large_masks(hidden: float) -> None:
    """A block of 16 scores has one exponent: in blocks with a mask, nothing else would be left."""
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(1)
    q, k, v = (generator.standard_normal((1, 2, 32, 32)).astype(np.float32) for _ in range(3))
    mask = np.where(np.tril(np.ones((32, 32))) > 0, 0.0, hidden).astype(np.float32)[None, None]
    (found,) = outputs(SCORES, q, k, mask, v)
    t = [torch.from_numpy(each) for each in (q, k, mask, v)]
    p = torch.nn.functional.silu(torch.softmax(t[0] @ t[1].mT + t[2], -1))
    expected = (p @ t[3]).numpy()
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999
    made = types(compiled(SCORES))
    assert made["ttnn.matmul"][0] == made["ttnn.add"][0] == made["ttnn.softmax"][0] == "bf16"


def test_scores_without_a_mask_may_be_block_floats() -> None:
    text = SCORES.replace('"ttir.softmax"(%a)', '"ttir.softmax"(%s)')
    assert types(compiled(text))["ttnn.softmax"] == ["bfp_bf8"]


@pytest.mark.parametrize("level", [0, 2])
def test_programs_compute_what_torch_does(level: int) -> None:
    torch = pytest.importorskip("torch")
    x, w, v = drawn((ROWS, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH))
    (found,) = outputs(RESIDUALS, x, w, v, level=level)
    (plain,) = outputs(RESIDUALS, x, w, v, level=level, activations="")
    tx, tw, tv = (torch.from_numpy(each) for each in (x, w, v))

    def normed(rows: Any) -> Any:
        return torch.nn.functional.rms_norm(rows, (WIDTH,), eps=1e-5)

    first = tx + tx @ tw
    expected = normed(first + torch.nn.functional.silu(normed(first) @ tw) @ tv).numpy()
    # Eight bits, of which one is the sign, beside the largest of 16 neighbours.
    off, off_plain = (np.abs(each - expected).max() for each in (found, plain))
    assert off_plain < off < 0.15
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.9995


def test_products_round_to_blocks_with_one_exponent() -> None:
    """By hand: 1 beside 128 in a block has steps of 2; in a block of its own it is exact."""
    x = np.zeros((ROWS, WIDTH), np.float32)
    x[0, 0], x[0, 1], x[0, 16] = 128.0, 1.0, 1.0
    (found,) = outputs(module(product("a") + product("r", "%a", "%v")), x, *[np.eye(WIDTH)] * 2)
    assert found[0, :2].tolist() in ([128.0, 0.0], [128.0, 2.0])
    assert found[0, 16] == 1.0


def test_overrides_of_data_types_take_precedence() -> None:
    given = {"version": 1, "level": 2, "functions": {"main": {"up": {"data_type": "bf16"}}}}
    made = types(compiled(RESIDUALS, 2, overrides=json.dumps(given)))
    assert made["ttnn.matmul"] == ["bf16", "bfp_bf8", "bfp_bf8"]
    assert "ttnn.typecast" not in made


@pytest.mark.parametrize("level", [1, 2])
def test_decisions_of_a_compile_give_the_same_program(level: int) -> None:
    first = compiled(RESIDUALS, level)
    assert '"data_type": "bfp_bf8"' in first.decisions
    assert compiled(RESIDUALS, level, overrides=first.decisions).files == first.files


def test_convolutions_hand_block_floats_on_in_shards() -> None:
    found = compiled(IMAGES, 2)
    assert types(found)["ttnn.conv2d"] == ["bfp_bf8", "bfp_bf8", "bf16"]
    program = entry(found)
    images = [op.operands[0] for op in program.operations if op.name == "ttnn.conv2d"]
    layouts = [program.tensors[image].type.memory_layout for image in images]
    assert layouts[1:] == ["height_sharded"] * 2
    assert seconds(found) < seconds(compiled(IMAGES, 2, activations=""))


def test_other_types_and_other_targets_are_refused() -> None:
    with pytest.raises(CompileError, match="activations cannot be 'bfp4_b'"):
        compiled(RESIDUALS, activations="bfp4_b")
    with pytest.raises(CompileError, match="for calls of ttnn"):
        compiled(RESIDUALS, target="ttmetal")


def test_modules_without_such_values_are_noted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, text, noted in (("one", module(product("r")), True), ("layer", RESIDUALS, False)):
        source = tmp_path / f"{name}.mlir"
        source.write_text(text)
        given = ["--weights", "bfp8_b", "--activations", "bfp8_b", "--no-format"]
        assert main([str(source), "-o", str(tmp_path / name), *given]) == 0
        assert ("note: no activation can be bfp8_b" in capfd.readouterr().err) == noted


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_three_runs_agree(cpu_backend: CPUBackend, tmp_path: Path, level: int) -> None:
    for name, text in (("layer", RESIDUALS), ("scores", SCORES), ("images", IMAGES)):
        source = tmp_path / f"{name}.mlir"
        source.write_text(text)
        out = tmp_path / name
        given = ["--activations", "bfp8_b", "--optimize", str(level), "--check", "-q"]
        assert main([str(source), "-o", str(out), *given]) == 0
        assert json.loads((out / "check.json").read_text())["passed"]


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("level", [0, 2])
def test_models_of_float32_agree_with_torch(
    cpu_backend: CPUBackend, tmp_path: Path, level: int
) -> None:
    """Their results are float32, but no longer as exact: `--check` says how exact."""
    torch = pytest.importorskip("torch")
    import ttcodegen.torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, norm_first=True).eval()
    ttcodegen.torch.compile(
        *(layer, (torch.randn(2, 50, 128),)),
        **{"out": tmp_path / "out", "check": True, "activations": "bfp8_b", "optimize": level},
    )
    report = json.loads((tmp_path / "out/check.json").read_text())
    for output in report["outputs"]:
        assert 0.999 < output["reference_pcc"] < 0.99999
