"""`ttcodegen-rt run` runs what was compiled for the requested system, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.rt import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source

EXP = """func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "ttir.exp"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize(("target", "ending"), [("ttnn", "ttnn"), ("ttmetal", "ttm")])
def test_files_for_another_system(
    target: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = CompileOptions("f", target, arch="blackhole")
    path = tmp_path / f"f.{ending}"
    path.write_bytes(compile_module(Source("f.mlir", EXP), options).flatbuffer)
    assert main(["check", str(path)]) != 0
    capsys.readouterr()
    assert main(["run", str(path)]) == 1
    assert "was compiled for another system than cpu: arch: blackhole" in capsys.readouterr().err
    assert main(["run", str(path), "--arch", "blackhole"]) == 0
    assert main(["run", str(path), "--arch", "wormhole_b0"]) == 1
