"""Every example runs under every tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.test_examples import EXAMPLES, NAMES
from ttcodegen.cli import opt, rt, translate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_takes_it(example: Callable[[str], Path], name: str, tmp_path: Path) -> None:
    source = str(EXAMPLES / name / f"{name}.mlir")
    lowered, cpp = tmp_path / "lowered.mlir", tmp_path / "emitc.mlir"
    assert opt.main(["--ttir-to-ttnn-backend-pipeline", source, "-o", str(lowered)]) == 0
    assert opt.main(["--ttir-to-emitc-pipeline", source, "-o", str(cpp)]) == 0
    for option, file in (("--ttnn-to-flatbuffer", lowered), ("--mlir-to-cpp", cpp)):
        assert translate.main([option, str(file), "-o", str(tmp_path / option[2:])]) == 0
    flatbuffer = str(example(name) / "model.ttnn")
    made = str(tmp_path / "model.mlir")
    assert translate.main(["--flatbuffer-to-mlir", flatbuffer, "-o", made]) == 0
    quiet = ["--log-file", str(tmp_path / "log")]
    for command in (["read"], ["check"], ["run"], ["run", "--emitc"]):
        assert rt.main([*command, flatbuffer, *quiet]) == 0, command
