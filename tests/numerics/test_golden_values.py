"""Golden values in flatbuffers, and runs that are compared with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.rt import API, OpEvent

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

CHAIN = """
func.func @chain(
    %x: tensor<32x32xbf16> {ttir.name = "x"},
    %w: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                            ttir.name = "w"}
) -> (tensor<32x32xbf16> {ttir.name = "y"}, tensor<32xi64> {ttir.name = "best"}) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
      loc("product")
  %1 = "ttir.exp"(%0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16> loc("power")
  %2 = "ttir.sin"(%1) : (tensor<32x32xbf16>) -> tensor<32x32xbf16> loc("wave")
  %3 = "ttir.argmax"(%0) <{dim_arg = [1 : i32], keep_dim = false}>
      : (tensor<32x32xbf16>) -> tensor<32xi64> loc("best")
  return %2, %3 : tensor<32x32xbf16>, tensor<32xi64>
}
"""


def compiled(text: str, seed: int = 3) -> bytes:
    source = Source("chain.mlir", text)
    return compile_module(source, CompileOptions("chain", golden_seed=seed)).flatbuffer


def goldens_of(binary: file.Binary, program: str) -> dict[int, np.ndarray]:
    constants = binary.constants
    found = {}
    for golden in binary.program(program).goldens:
        constant = constants[golden.constant]
        array = np.frombuffer(constant.elements, np.dtype(constant.element_type))
        found[golden.tensor] = array.reshape(constant.shape)
    return found


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """The chain with golden values."""
    path = tmp_path / "chain.ttnn"
    path.write_bytes(compiled(CHAIN))
    return path


def test_values_are_those_of_the_source(chain: Path) -> None:
    binary = read_ttnn(chain.read_bytes())
    program = binary.program("chain")
    goldens = goldens_of(binary, "chain")
    wave = [op for op in program.operations if op.location == "wave" and op.results]
    by_op = {op.name: goldens[op.results[0]] for op in wave}
    x, w = (goldens[entry.tensor].astype(np.float32) for entry in program.inputs)
    expected = np.sin(np.exp(x @ w))
    np.testing.assert_allclose(by_op["ttnn.sin"], expected, rtol=1e-4, atol=1e-5)
    y, best = (goldens[entry.tensor] for entry in program.outputs)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    assert best.dtype == np.int64
    assert best.tolist() == (x @ w).argmax(axis=1).tolist()


def test_without_the_option_there_are_none() -> None:
    plain = compile_module(Source("c", CHAIN), CompileOptions("chain")).flatbuffer
    assert all(program.goldens == () for program in read_ttnn(plain).programs)


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert compiled(CHAIN) == compiled(CHAIN)
    assert compiled(CHAIN) != compiled(CHAIN, seed=4)


def test_a_callback_sees_each_op_with_its_golden_value(chain: Path) -> None:
    seen: list[OpEvent] = []
    code, results = API.Run(
        args={"binary": chain, "--quiet": True}, callback=lambda event: seen.append(event)
    )()
    assert code == 0
    assert results["results"][0]["programs"][0]["golden"] == "embedded"
    by_name = {event.name: event for event in seen}
    wave = by_name["ttnn.sin"]
    assert (wave.program, wave.location) == ("chain", "wave")
    assert wave.goldens[0] is not None
    assert wave.outputs[0].dtype.name == "bfloat16"
    (agreement,) = wave.agreements()
    assert agreement is not None
    assert agreement.passed
    assert [event.index for event in seen] == list(range(len(seen)))
    assert not any(event.drifts for event in seen)


def drifting(path: Path) -> Path:
    """The file with another op in the place of the exponential."""
    binary = read_ttnn(path.read_bytes())
    program = binary.program("chain")
    changed = tuple(
        replace(op, name="ttnn.abs") if op.name == "ttnn.exp" else op for op in program.operations
    )
    programs = tuple(
        replace(p, operations=changed) if p.name == "chain" else p for p in binary.programs
    )
    out = path.with_name("drifting.ttnn")
    out.write_bytes(encode(load_schema("ttnn.fbs"), replace(binary, programs=programs)))
    return out


def test_a_test_stops_at_the_first_op_that_drifts(chain: Path) -> None:
    stops: list[str | None] = []

    def stop(event: OpEvent) -> bool:
        if event.drifts:
            stops.append(event.location)
        return not event.drifts

    code, results = API.Run(args={"binary": drifting(chain), "--quiet": True}, callback=stop)()
    assert stops == ["power"]
    (program,) = results["results"][0]["programs"]
    assert program["stopped"]
    assert program["drifting_ops"][0]["location"] == "power"
    assert code == 4


def test_what_a_callback_raises_reaches_the_caller(chain: Path) -> None:
    def check(event: OpEvent) -> None:
        assert not event.drifts, event.location

    with pytest.raises(AssertionError, match="power"):
        API.Run(args={"binary": drifting(chain), "--quiet": True}, callback=check)()


def test_drift_is_a_mismatch_without_a_callback(
    chain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, results = API.Run(args={"binary": drifting(chain)})()
    assert code == 4
    drifts = results["results"][0]["programs"][0]["drifting_ops"]
    assert [d["location"] for d in drifts][:2] == ["power", "wave"]
    assert "first op that drifts: ttnn.abs at power" in capsys.readouterr().out


def test_goldens_are_not_looked_at_if_not_wanted(chain: Path) -> None:
    args = {"binary": drifting(chain), "--disable-golden": True, "--quiet": True}
    code, results = API.Run(args=args)()
    program = results["results"][0]["programs"][0]
    assert (code, program["golden"], program["drifting_ops"]) == (0, None, [])


def test_other_inputs_have_no_embedded_goldens(chain: Path) -> None:
    code, results = API.Run(args={"binary": chain, "--init": "zeros", "--quiet": True})()
    program = results["results"][0]["programs"][0]
    assert (code, program["inputs"], program["golden"]) == (0, "zeros", "unrounded")


def test_golden_tensors_are_saved(chain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    args = {"binary": chain, "--save-golden-tensors": True, "--artifact-dir": folder}
    assert API.Run(args={**args, "--quiet": True})()[0] == 0
    program = folder / "run" / "chain" / "program_0"
    assert np.load(program / "golden_0.npy").shape == (32, 32)
    pairs = sorted(path.name for path in (program / "ops").iterdir())
    assert pairs
    assert [n for n in pairs if n.endswith("_golden.npy")] == [
        n.replace("_device.npy", "_golden.npy") for n in pairs if n.endswith("_device.npy")
    ]
    first = np.load(program / "ops" / pairs[0])
    np.testing.assert_allclose(first, np.load(program / "ops" / pairs[1]), rtol=0.02, atol=0.02)


MOVED = """
func.func @moved(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 1, 0>}>
      : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("there")
  %1 = "ttir.relu"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("relu")
  %2 = "ttir.permute"(%1) <{permutation = array<i64: 1, 0>}>
      : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("back")
  %3 = "ttir.add"(%2, %y) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("sum")
  return %3 : tensor<8x8xf32>
}
"""


def test_ops_that_were_moved_have_no_golden_value() -> None:
    """The transposes cancel, and the op between them sees the transposed values."""
    binary = read_ttnn(compiled(MOVED))
    program = binary.program("moved")
    goldens = goldens_of(binary, "moved")
    reported = {op.location for op in program.operations if goldens.keys() & set(op.results)}
    assert {op.location for op in program.operations if op.name == "ttnn.relu"} == {"relu"}
    assert "relu" not in reported
    assert "sum" in reported


@pytest.mark.parametrize("name", ["digits", "cnn", "transformer"])
def test_whole_models_meet_their_goldens(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.ttnn"
    source = Source.read(str(EXAMPLES / name / f"{name}.mlir"))
    options = CompileOptions(name, golden_seed=0)
    path.write_bytes(compile_module(source, options).flatbuffer)
    code, results = API.Run(args={"binary": path, "--quiet": True})()
    program = results["results"][0]["programs"][0]
    assert (code, program["golden"], program["drifting_ops"]) == (0, "embedded", [])
    binary = read_ttnn(path.read_bytes())
    entry = next(p for p in binary.programs if p.kind == "entry")
    assert len(entry.goldens) > len(entry.inputs) + len(entry.outputs)


def test_golden_values_need_a_ttnn_file() -> None:
    options = CompileOptions("chain", target="ttmetal", golden_seed=0)
    with pytest.raises(CompileError, match=r"\.ttnn files only"):
        compile_module(Source("c", CHAIN), options)
