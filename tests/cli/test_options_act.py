"""Each declared option of the command lines changes the outcome of a run, or is refused."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.cli import lang, rt, translate, ttcodegen, tune
from ttcodegen.cli.arguments import ArgumentParser
from ttcodegen.rt.commands.arguments import COMMANDS, Argument

TTIR = """func.func @forward(%x: tensor<64x64xbf16>,
    %w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                            ttir.name = "w"}) -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      loc("scores")
  return %0 : tensor<64x64xbf16>
}
"""
MODULES = {
    "ttir": TTIR,
    "stablehlo": """func.func @forward(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
""",
    "tosa": """func.func @forward(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = tosa.tanh %x : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = tosa.exp %0 : (tensor<512x512xf32>) -> tensor<512x512xf32>
  return %1 : tensor<512x512xf32>
}
""",
    "linalg": """func.func @forward(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>)
    -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %0 = linalg.add ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>)
      outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = linalg.mul ins(%0, %w : tensor<512x512xf32>, tensor<512x512xf32>)
      outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %1 : tensor<512x512xf32>
}
""",
    "ttnn": """func.func @forward(%x: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %0 = "ttnn.tanh"(%x) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %1 = "ttnn.exp"(%0) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %1 : tensor<512x512xbf16>
}
""",
}
"""A small module of each source dialect."""
VALUES = {
    "--name": "other",
    "--mesh-shape": "1x2",
    "--hosts": "1x2",
    "--parallel": "auto",
    "--stages": "2",
    "--micro-batches": "2",
    "--overrides": "overrides.json",
    "--write-overrides": "decisions.json",
    "--tt-lang": "operations.py",
    "--golden": "values",
    "--seed": "3",
    "--edits": "edited",
    "--tune": "edited",
    "--op": "scores",
    "--system-desc": "p150",
    "--machine": "p150",
    "--python": "another-python",
    "--optimize": "2",
    "--dump-ir": "dump",
    "--log-level": "ERROR",
}
"""Values of options that take no word of a list."""
OF_A_FOLDER = {"--force", "--keep-edits"}
"""Options that say what becomes of files which are there already."""
LONG = {"--build", "--check", "--check-edges", "--cpu-backend-dir"}
"""Options that build C++, whose effects other tests compare."""

Outcome = tuple[Any, dict[str, bytes], str]


def outcome(main: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> Outcome:
    """Exit status, new files and messages of a command that is run in the present folder."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status: Any = main(arguments)
        except SystemExit as leave:
            status = leave.code
    files: dict[str, bytes] = {}
    for path in sorted(Path().rglob("*")):
        if path.is_file() and before.get(path) != (content := path.read_bytes()):
            is_timed = "time" in path.name or {"perf", "results.json"} & {*path.parts}
            files[str(path)] = re.sub(rb"[\d.e+-]+", b"", content) if is_timed else content
            path.unlink() if path not in before else path.write_bytes(before[path])
    shutil.rmtree("out", ignore_errors=True)
    # Two runs never take the same time: it shows nothing of what an option does.
    text = re.sub(
        r"[\d.]+ ms|^( *(?:total|scores) .*)$", _without_numbers, printed.getvalue(), flags=re.M
    )
    return status, files, text


def _without_numbers(found: re.Match[str]) -> str:
    return re.sub(r" *[\d.]+", "", found[0])


def values_of(action: argparse.Action) -> Iterator[list[str]]:
    """Values of an option, each another one than its default."""
    if action.nargs == 0:
        yield []
        return
    name = next((each for each in action.option_strings if each in VALUES), None)
    for value in [VALUES[name]] if name is not None else action.choices or ():
        if str(value) not in (str(action.default), "wormhole_b0", "bfloat16", "both", "0"):
            yield [str(value)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    return tmp_path


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
@pytest.mark.parametrize(
    "dialect",
    [name if name == "ttir" else pytest.param(name, marks=pytest.mark.slow) for name in MODULES],
)
def test_options_of_the_compiler_act_or_are_refused(
    dialect: str, target: str, folder: Path
) -> None:
    command = [f"{dialect}.mlir", "-o", "out", "--no-format", "--target", target]
    plain = outcome(ttcodegen.main, command)
    assert plain[0] == (1 if (dialect, target) == ("ttnn", "ttmetal") else 0), plain[2]
    ignored: list[str] = []
    for action in ttcodegen.argument_parser()._actions:
        names = action.option_strings
        if not names or {*names} & {*OF_A_FOLDER, *LONG, "-o", "--target", "--no-format", "-v"}:
            continue
        tried = list(values_of(action))
        assert tried, f"no value to try for {names[0]}"
        for value in tried:
            given = outcome(ttcodegen.main, [*command, names[0], *value])
            if plain[0] == 0 and given == plain:
                ignored.append(" ".join([names[0], *value]))
    assert not ignored, ignored


def test_formatting_is_left_out(folder: Path) -> None:
    if shutil.which("clang-format") is None:
        pytest.skip("needs clang-format")
    command = ["ttir.mlir", "-o", "out"]
    assert outcome(ttcodegen.main, command) != outcome(ttcodegen.main, [*command, "--no-format"])


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        (ttcodegen.main, ["ttir.mlir", "-o", "out", "--seed", "1"], "--seed needs --check"),
        (ttcodegen.main, ["ttir.mlir", "-o", "out", "--golden", "."], "--golden needs --check"),
        (ttcodegen.main, ["--tune", "out"], "--tune needs --op"),
        (ttcodegen.main, ["--op", "scores"], "--op needs --tune"),
        (ttcodegen.main, ["--edits", "out", "--trace"], "--trace has no effect with --edits"),
        (ttcodegen.main, ["ttir.mlir", "--completion", "bash"], "FILE has no effect"),
        (ttcodegen.main, ["--cpu-backend-dir", "--build"], "--build has no effect"),
        (
            ttcodegen.main,
            ["ttir.mlir", "-o", "out", "--force", "--keep-edits", "fail"],
            "not allowed with",
        ),
        (lang.main, ["p.py", "--build"], "--build needs -o"),
        (lang.main, ["p.py", "--mlir"], "--mlir needs -o"),
        (lang.main, ["--spec", "--check"], "--check has no effect with --spec"),
        (tune.run_tune, ["out", "--python", "p"], "--python needs --validate or --card"),
        (
            translate.main,
            ["--mlir-to-cpp", "ttir.mlir", "--goldens", "."],
            "--goldens needs --ttnn-to-flatbuffer",
        ),
    ],
)
def test_options_without_effect_are_refused(
    main: Callable[[Sequence[str]], int], arguments: list[str], message: str, folder: Path
) -> None:
    status, files, printed = outcome(main, arguments)
    assert (status, files) == (2, {})
    assert message in printed


def test_a_fabric_of_one_device_is_refused(folder: Path) -> None:
    for fabric in ("linear", "ring", "torus"):
        status, files, printed = outcome(
            ttcodegen.main, ["ttir.mlir", "-o", "out", "--fabric", fabric]
        )
        assert (status, files) == (1, {})
        assert "needs several devices" in printed


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_notes_name_options_that_a_module_has_no_use_for(target: str, folder: Path) -> None:
    command = ["stablehlo.mlir", "-o", "out", "--target", target]
    assert "no matmul has weights" in outcome(ttcodegen.main, [*command, "--weights", "bfp8_b"])[2]
    assert "has no f16" in outcome(ttcodegen.main, [*command, "--f16", "float32"])[2]
    (folder / "ttir.mlir").write_text(TTIR.replace("bf16", "f16"))
    command[0] = "ttir.mlir"
    printed = outcome(ttcodegen.main, [*command, "--weights", "bfp8_b", "--f16", "float32"])[2]
    assert "note: no matmul" not in printed
    assert "has no f16" not in printed


def test_declared_needs_name_options() -> None:
    """Options that others need, or may be given with, are options of the same parser."""
    for module in (ttcodegen, lang, translate, tune):
        parser = module.argument_parser()
        assert isinstance(parser, ArgumentParser)
        known = {name for action in parser._actions for name in action.option_strings}
        for needed in (*parser.needs.values(), *parser.alone.values()):
            assert known.issuperset(needed)


RT_VALUES = {
    "--log-file": "log.txt",
    "--result-file": "results.json",
    "--artifact-dir": "elsewhere",
    "--log-level": "ERROR",
    "--program-index": "1",
    "--loops": "3",
    "--init": "zeros",
    "--seed": "5",
    "--tt-lang": "missing.py",
    "--inputs": "inputs",
    "--system-desc": "p150",
    "--machine": "p150",
    "--arch": "blackhole",
    "--rtol": "0.5",
    "--atol": "0",
    "--pcc": "1",
    "--section": "cpp",
    "--output": "system.ttsys",
    "--python": "nopython",
    "--simulator": "nosimulator.so",
    "--memory": "1",
}
"""Values of options of `ttcodegen-rt`."""
SHOWN = ["--print-input-output-tensors"]
RT_BESIDE = {
    "--artifact-dir": ["--save-artifacts"],
    "--clean-artifacts": ["--save-artifacts"],
    "--seed": SHOWN,
    "--init": SHOWN,
    "--inputs": SHOWN,
    "--non-zero": ["--init", "zeros"],
    "--loops": ["--result-file", "results.json"],
    "--disable-golden": ["--result-file", "results.json"],
}
"""Options beside which others show what they do."""
RT_NEEDS = {"--debugger": "a terminal"}
"""Options that this test cannot give, with what they need."""
RT_UNSEEN = {("perf", "--init"), ("perf", "--seed")}
"""Options that choose the values that are measured on, which times do not show."""


def test_options_of_the_runner_act_or_are_refused(folder: Path) -> None:
    again = TTIR.replace("@forward", "@again").replace('ttir.name = "w"', 'ttir.name = "v"')
    (folder / "two.mlir").write_text(TTIR + again)
    ttcodegen.main(["two.mlir", "-o", "project", "--no-format", "-q", "--embed-goldens"])
    (file,) = (folder / "project").glob("*.ttnn")
    shutil.copy(file, folder / "m.ttnn")
    command = ["two.mlir", "-o", "project", "--no-format", "-q", "--force", "--weights", "bfp4_b"]
    ttcodegen.main(command)
    shutil.copy(file, folder / "rounded.ttnn")
    (folder / "inputs").mkdir()
    np.save(folder / "inputs/input_0.npy", np.ones((64, 64), np.float32))
    (folder / "ttcodegen-artifacts").mkdir()
    ignored: list[str] = []
    for command, arguments in COMMANDS.items():
        files = {"query": [], "compare": ["m.ttnn", "rounded.ttnn"]}.get(command, ["m.ttnn"])
        for argument in arguments:
            if not argument.name.startswith("--") or argument.name in RT_NEEDS:
                continue
            if (command, argument.name) in RT_UNSEEN:
                continue
            ignored += _ignored(command, files, argument)
    assert not ignored, ignored


def _ignored(command: str, files: list[str], argument: Argument) -> list[str]:
    """The argument if it has no effect and does not say so."""
    if argument.help.startswith("accepted:"):
        return []
    known = {each.name for each in COMMANDS[command]}
    beside = RT_BESIDE.get(argument.name, [])
    beside = beside if known.issuperset(beside[:1]) else []
    value = [] if argument.kind == "flag" else [RT_VALUES.get(argument.name, "1")]
    plain = outcome(rt.main, [command, *files, *beside])
    given = outcome(rt.main, [command, *files, *beside, argument.name, *value])
    refused = plain[0] not in (0, 4)
    return [f"{command} {argument.name}"] if given == plain and not refused else []
