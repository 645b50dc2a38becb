"""Findings of the check of kernels: each fault at its line, by processor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scripts.kernel_check import KernelCheck, main
from scripts.kernel_check_configuration import ARCHITECTURES, ConfigurationError, read_manifest
from ttcodegen.systems.releases import CATALOGUE_RELEASE

KERNELS = Path(__file__).resolve().parent / "kernels"

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Mistake:
    """A kernel with one mistake.

    Attributes:
        kernel: which of the kernels that are right.
        right: its text.
        wrong: the text instead; the fault is expected where it starts.
        message: a part of the fault's message.
        processors: for which it is a fault.
    """

    kernel: str
    right: str
    wrong: str
    message: str
    processors: tuple[str, ...]


COMPUTE = ("unpack", "math", "pack")
MISTAKES = {
    "misspelled call": Mistake(
        "compute", "exp_tile(0)", "exp_tiles(0)", "identifier 'exp_tiles'", COMPUTE
    ),
    "misspelled call of one processor": Mistake(
        "compute", "pack_reconfig_data_format(cb", "pack_format(cb", "'pack_format'", ("pack",)
    ),
    "too many arguments": Mistake(
        "compute", "mm_init(0, 1, cb_out)", "mm_init(0, 1, 2, 3, 4, 5)", "'mm_init'", COMPUTE
    ),
    "too few arguments": Mistake(
        "reader",
        "noc_async_read_page(tile, accessor, l1)",
        "noc_async_read_page(tile, accessor)",
        "'noc_async_read_page'",
        ("NCRISC",),
    ),
    "argument of a wrong type": Mistake(
        "writer",
        "noc_async_write_page(tile, accessor",
        "noc_async_write_page(tile, address",
        "has_required_addrgen_traits",
        ("BRISC",),
    ),
    "data movement in a compute kernel": Mistake(
        "compute", "cb_pop_front(1, 1)", "noc_async_read_barrier()", "undeclared", COMPUTE
    ),
    "compute in a data movement kernel": Mistake(
        "reader", "noc_async_read_barrier()", "tile_regs_acquire()", "undeclared", ("NCRISC",)
    ),
    "argument out of range": Mistake(
        "compute",
        "get_compile_time_arg_val(2)",
        "get_compile_time_arg_val(9)",
        "Index out of range",
        COMPUTE,
    ),
    "tensor whose arguments are not given": Mistake(
        "writer",
        "TensorAccessorArgs<1>()",
        "TensorAccessorArgs<3>()",
        "Index out of range",
        ("BRISC",),
    ),
    "named argument of another name": Mistake(
        "compute",
        'get_named_compile_time_arg_val("num_blocks")',
        'get_named_compile_time_arg_val("blocks")',
        "no compile-time argument of this name",
        COMPUTE,
    ),
    "template argument of a wrong kind": Mistake(
        "compute",
        "reduce_tile<PoolType::SUM,",
        "reduce_tile<ReduceDim::REDUCE_ROW,",
        "'reduce_tile'",
        COMPUTE,
    ),
    "C++20": Mistake(
        "writer",
        "++tile) {",
        "++tile) { auto twice = []<typename T>(T x) { return x + x; };",
        "C++20 extension",
        ("BRISC",),
    ),
    "warning": Mistake(
        "writer", "tile < num_tiles", "tile - num_tiles, tile < 9", "-Wunused-value", ("BRISC",)
    ),
}


def kernels_with(folder: Path, mistake: Mistake) -> int:
    """Copies the kernels with a mistake in one of them; the line of the mistake."""
    shutil.copytree(KERNELS, folder, dirs_exist_ok=True)
    path = folder / f"{mistake.kernel}.cpp"
    text = path.read_text()
    assert text.count(mistake.right) == 1
    path.write_text(text.replace(mistake.right, mistake.wrong))
    return text[: text.index(mistake.right)].count("\n") + 1


@pytest.fixture(scope="module")
def kernel_check(kernel_checks: Callable[[str], KernelCheck]) -> KernelCheck:
    """The check for the release in whose spelling the kernels of these tests are."""
    return kernel_checks(CATALOGUE_RELEASE.name)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_right_kernels_pass(kernel_check: KernelCheck, arch: str) -> None:
    manifest = KERNELS / "manifest.json"
    assert kernel_check.check(read_manifest(manifest, arch)) == []


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_found(kernel_check: KernelCheck, tmp_path: Path, mistake: Mistake) -> None:
    line = kernels_with(tmp_path, mistake)
    kernels = read_manifest(tmp_path / "manifest.json")
    (fault,) = kernel_check.check([k for k in kernels if k.file.stem == mistake.kernel])
    assert fault.place.startswith(f"{tmp_path}/{mistake.kernel}.cpp:{line}:")
    assert mistake.message in fault.message
    assert fault.processors == mistake.processors


def test_a_mistake_is_found_again_without_compiling(
    kernel_check: KernelCheck, tmp_path: Path
) -> None:
    kernel_check = replace(kernel_check, cache=tmp_path / "cache")
    found: list[str] = []
    for name in ("first", "second"):
        kernels_with(tmp_path / name, MISTAKES["too few arguments"])
        kernels = read_manifest(tmp_path / name / "manifest.json")
        (fault,) = kernel_check.check(kernels[:1])
        assert len(list(kernel_check.cache.glob("*.txt"))) == 1
        found.append(str(fault))
    assert found[0].replace("/first/", "/second/") == found[1]


def test_a_header_of_the_kernel_is_a_part_of_it(kernel_check: KernelCheck, tmp_path: Path) -> None:
    kernel, header = tmp_path / "kernel.cpp", tmp_path / "sum.hpp"
    kernel.write_text('#include "sum.hpp"\nvoid kernel_main() { add(); }\n')
    header.write_text('#include "api/dataflow/dataflow_api.h"\nvoid add() { cb_pop_front(0, 1); }')
    tmp_path.joinpath("manifest.json").write_text(
        '{"kernels": [{"file": "kernel.cpp", "processor": "riscv_0"}]}'
    )
    kernels = read_manifest(tmp_path / "manifest.json")
    assert kernel_check.check(kernels) == []
    header.write_text(header.read_text().replace("front", "back"))
    (fault,) = kernel_check.check(kernels)
    assert fault.place.startswith(f"{header}:2:")


def test_a_kernel_that_is_not_there(kernel_check: KernelCheck, tmp_path: Path) -> None:
    tmp_path.joinpath("manifest.json").write_text(
        '{"kernels": [{"file": "kernel.cpp", "processor": "compute"}]}'
    )
    with pytest.raises(ConfigurationError, match="there is no kernel"):
        kernel_check.check(read_manifest(tmp_path / "manifest.json"))


def test_command_line(
    kernel_check: KernelCheck, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels_with(tmp_path, MISTAKES["argument out of range"])
    cache = ["--cache", str(kernel_check.cache.parent), "--release", CATALOGUE_RELEASE.name]
    configuration = ["--compile-args", "0,2,2048", "--named", "num_tiles=8"]
    assert main([str(tmp_path / "reader.cpp"), *configuration, *cache]) == 0
    assert main([str(tmp_path), *cache]) == 1
    assert "[unpack, math, pack]" in capsys.readouterr().err
    assert main([str(tmp_path / "nothing.cpp"), *cache]) == 2
    assert "there is no kernel" in capsys.readouterr().err
