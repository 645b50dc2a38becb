"""Memory that scopes free: the C++ takes no more of the device than with a `deallocate` after each
last use."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.examples.test_readability import MODELS
from ttcodegen.cli.ttcodegen import main
from ttcodegen.cost import memory_use
from ttcodegen.flatbuffer.program import Program
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.layout.placements import stored_bytes
from ttcodegen.project.building import build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.toolchain import Toolchain


def argument_bytes(program: Program, kinds: tuple[str, ...]) -> int:
    """DRAM bytes of the arguments of some kinds."""
    tensors = [program.tensors[entry.tensor] for entry in program.inputs if entry.kind in kinds]
    return sum(stored_bytes(t.type.placement) for t in tensors if t.type.buffer_type == "dram")


def peak_with_deallocations(programs: tuple[Program, ...]) -> int:
    """The most DRAM that the flatbuffer's program takes, which deallocates: in the call, or while
    constants are computed beside the weights."""
    (entry,) = [program for program in programs if program.kind == "entry"]
    weights = argument_bytes(entry, ("parameter", "constant"))
    peaks = [memory_use(entry).peak["dram"]]
    for program in programs:
        if program is not entry:
            other = weights - sum(
                stored_bytes(program.tensors[each.tensor].type.placement) for each in program.inputs
            )
            peaks.append(memory_use(program).peak["dram"] + other)
    return max(peaks)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_peak_is_that_of_explicit_deallocation(
    name: str, cpu_backend: CPUBackend, toolchain: Toolchain, tmp_path: Path
) -> None:
    assert cpu_backend.folder.is_dir()
    if not MODELS[name].exists():
        pytest.skip(f"{name} is in no folder of this machine")
    out, report = tmp_path / "out", tmp_path / "memory.json"
    assert main([str(MODELS[name]), "-o", str(out), "-q"]) == 0
    manifest = read_manifest(out)
    assert manifest is not None
    program = build_project(out, manifest["module"], toolchain, "exe").executable
    assert program is not None
    environment = {**os.environ, "TTCODEGEN_MEMORY_REPORT": str(report)}
    subprocess.run([program], env=environment, check=True, stdout=subprocess.DEVNULL)
    measured = json.loads(report.read_text())["peak_bytes"]["dram"]
    expected = peak_with_deallocations(read_ttnn((out / "model.ttnn").read_bytes()).programs)
    assert expected * 0.5 < measured <= expected
