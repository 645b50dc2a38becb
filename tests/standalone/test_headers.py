"""The declarations in standalone/include: complete in themselves, and those of the release."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from scripts.link_check import EXACT, ROOT, check, read_header_only
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.releases import RELEASES, release_named

INCLUDE = ROOT / "standalone" / "include"


def headers_below(folder: str, pattern: str) -> list[str]:
    found = (INCLUDE / folder).rglob(pattern)
    return sorted(path.relative_to(INCLUDE).as_posix() for path in found)


# What is in these folders is for kernels, which see a prologue before it.
HEADERS = [
    name for name in headers_below(".", "*.hpp") if not name.startswith(("ttcodegen/", "tt_metal/"))
]
HEADERS.append("ttcodegen/device/report.hpp")
COMPUTE_HEADERS = [
    name
    for name in headers_below("api/compute", "*.h")
    # It declares the functions of rsub.h again, in the release as well: no kernel includes both.
    if not name.endswith("/reverseops.h")
]
DATAFLOW_HEADERS = [
    name for name in headers_below("api", "*.h") if not name.startswith("api/compute/")
] + [*headers_below("experimental", "*.h"), *headers_below("tt_metal", "*.h*")]
PROLOGUE = """
#define KERNEL_BUILD 1
#define ARCH_WORMHOLE 1
#define NUM_DRAM_BANKS 12
#define NUM_L1_BANKS 64
#define NOC_INDEX 0
#define NOC_MODE 0
#define KERNEL_COMPILE_TIME_ARGS 1, 2
#include <ttcodegen/device/kernel_prologue.hpp>
constexpr unsigned char unpack_src_format[32] = {}, unpack_tile_r_dim[32] = {};
constexpr unsigned char unpack_tile_c_dim[32] = {}, unpack_tile_num_faces[32] = {};
constexpr unsigned short unpack_tile_size[32] = {};
"""
"""Text that precedes a kernel when the backend compiles it."""

pytestmark = pytest.mark.slow


def compile_object(
    toolchain: Toolchain, source: Path, target: Path, definitions: Sequence[str] = ()
) -> None:
    command = [toolchain.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
    command += [f"-D{name}" for name in definitions]
    done = subprocess.run(
        [*command, "-c", source, "-o", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_headers_compile_in_any_order(toolchain: Toolchain, tmp_path: Path, order: str) -> None:
    headers = HEADERS if order == "forwards" else HEADERS[::-1]
    source = tmp_path / "headers.cpp"
    source.write_text("".join(f"#include <{name}>\n" for name in headers))
    compile_object(toolchain, source, tmp_path / "headers.o")


@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize(
    ("processor", "headers"),
    [("COMPILE_FOR_BRISC", DATAFLOW_HEADERS), ("COMPILE_FOR_TRISC", COMPUTE_HEADERS)],
)
def test_headers_of_kernels_compile_in_any_order(
    toolchain: Toolchain, tmp_path: Path, processor: str, headers: list[str], order: str
) -> None:
    ordered = headers if order == "forwards" else headers[::-1]
    source = tmp_path / "kernel.cpp"
    includes = "".join(f"#include <{name}>\n" for name in ordered)
    source.write_text(
        f"#define {processor} 1\n{PROLOGUE}{includes}void kernel_main() {{}}\n"
        "#include <ttcodegen/device/kernel_entry.hpp>\n"
    )
    compile_object(toolchain, source, tmp_path / "kernel.o")


@pytest.mark.parametrize("release", RELEASES)
def test_exported_templates_link(
    toolchain: Toolchain, ttnn_libraries_of: Callable[[str], Path], tmp_path: Path, release: str
) -> None:
    target = tmp_path / "api_templates.o"
    source = ROOT / "standalone" / "tests" / "api_templates.cpp"
    compile_object(toolchain, source, target, (*release_named(release).definitions, EXACT))
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    assert check([target], [], ttnn_libraries_of(release), header_only) == []
