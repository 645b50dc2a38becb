"""The machine that is compiled for, as all tools take it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ttcodegen.explorer.stages import Settings, read_settings
from ttcodegen.flatbuffer.system import load_system, write_ttsys
from ttcodegen.foundation.diagnostics import CompileError

ADDING = """func.func @f(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.add"(%x, %x) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
"""
TOOLS = ("ttcodegen", "opt", "translate", "lang", "explorer", "rt")
FULL = """
import ttl
import ttnn

@ttl.operation(grid="full")
def operation(x):
    pass

print(ttnn.Device().compute_with_storage_grid_size(), operation.grid)
"""


def run(tool: str, *arguments: object) -> int:
    """The exit status of a tool."""
    return importlib.import_module(f"ttcodegen.cli.{tool}").main([*map(str, arguments)])


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module of TTIR."""
    path = tmp_path / "m.mlir"
    path.write_text(ADDING)
    return path


@pytest.mark.parametrize("tool", TOOLS)
def test_a_machine_that_is_none_is_named_by_all_tools(
    tool: str, module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(FULL)
    arguments = {
        "ttcodegen": (module, "-o", tmp_path / "out"),
        "opt": (module,),
        "translate": ("--ttnn-to-flatbuffer", module),
        "lang": (program,),
        "explorer": (module, "-q"),
        "rt": ("check", tmp_path),
    }
    assert run(tool, *arguments[tool], "--machine", "p15O") == 1
    assert "there is no system 'p15O'; did you mean p150?" in capsys.readouterr().err


def test_passes_and_translations_are_for_a_machine(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lowered, file = tmp_path / "lowered.mlir", tmp_path / "m.ttnn"
    pipeline = "--ttir-to-ttnn-backend-pipeline"
    assert run("opt", pipeline, module, "--machine", "p100", "-o", lowered) == 0
    assert "workerGrid = #ttcore.grid<10x11," in lowered.read_text()
    translating = ("--ttnn-to-flatbuffer", lowered, "-o", file)
    assert run("translate", *translating, "--machine", "n150") == 1
    assert "another system: arch: blackhole and wormhole_b0" in capsys.readouterr().err
    assert run("translate", *translating, "--machine", "p100") == 0
    assert run("rt", "check", file, "--machine", "p100") == 0
    assert run("rt", "check", file, "--machine", "p150") == 4
    assert "num_dram_channels: 7 and 8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "grid"),
    [
        ((), (8, 8)),
        (("--arch", "blackhole"), (11, 10)),
        (("--machine", "p150_140"), (13, 10)),
        (("--system-desc", "card.ttsys"), (12, 10)),
    ],
)
def test_programs_of_tt_lang_run_on_a_machine(
    arguments: tuple[str, ...],
    grid: tuple[int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(FULL)
    Path("card.ttsys").write_bytes(write_ttsys(load_system("bh_galaxy")))
    assert run("lang", "program.py", *arguments) == 0
    assert capsys.readouterr().out.strip().endswith(str(grid))


def test_the_explorer_compiles_for_a_machine_that_a_command_names() -> None:
    default = Settings(system=load_system("n300"))
    assert read_settings({}, default).system == load_system("n300")
    assert read_settings({"machine": "p100"}, default).system == load_system("p100")
    assert read_settings({"arch": "blackhole"}, default).system is None
    with pytest.raises(CompileError, match="'p15O'; did you mean p150"):
        read_settings({"machine": "p15O"}, default)
    with pytest.raises(CompileError, match="of a blackhole, not of a wormhole_b0"):
        read_settings({"machine": "p100", "arch": "wormhole_b0"}, default)
