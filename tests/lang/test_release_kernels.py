"""Programs of TT-Lang, and device programs, beside kernels of the release for the same: no more
cycles and bytes than 1.15 times theirs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from scripts.kernel_check_toolchain import ToolchainError, device_headers
from scripts.link_check import LinkCheckError
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.systems.releases import RELEASES

ROOT = Path(__file__).resolve().parents[2]
MOST = 1.15
SIZES = {"chain": (2048, 128), "softmax": (2048, 128)}
MODULES = ("chain",)
"""Those whose device programs hold it as well."""

pytestmark = pytest.mark.slow


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return import_module("lang_device")


@pytest.mark.parametrize("name", SIZES)
def test_no_slower_than_kernels_of_the_release(
    benchmark: ModuleType, cpu_backend: CPUBackend, tmp_path: Path, name: str
) -> None:
    try:
        package = device_headers(ROOT / "build" / "wheels", release=next(iter(RELEASES)))
    except (LinkCheckError, ToolchainError) as error:
        pytest.skip(f"the release is not here: {error}")
    (case,) = (
        benchmark.Case(name, SIZES[name], each.module, each.hand_written)
        for each in benchmark.CASES
        if each.program == name
    )
    theirs = benchmark.of_release(case, tmp_path, package)
    found = [benchmark.of_program(case, tmp_path)]
    if name in MODULES:
        found.append(benchmark.of_module(case, tmp_path))
    for figures in found:
        slower = {key: (count, theirs[key]) for key, count in figures.items()
                  if count > MOST * theirs[key]}  # fmt: skip
        assert not slower
