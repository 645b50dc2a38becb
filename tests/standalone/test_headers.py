"""The declarations in standalone/include: complete in themselves, and those of the release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.link_check import ROOT, check, read_header_only
from ttcodegen.project.toolchain import Toolchain

INCLUDE = ROOT / "standalone" / "include"
HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.hpp"))

pytestmark = pytest.mark.slow


def compile_object(toolchain: Toolchain, source: Path, target: Path) -> None:
    command = [toolchain.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
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


def test_exported_templates_link(
    toolchain: Toolchain, ttnn_libraries: Path, tmp_path: Path
) -> None:
    target = tmp_path / "api_templates.o"
    compile_object(toolchain, ROOT / "standalone" / "tests" / "api_templates.cpp", target)
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    assert check([target], [], ttnn_libraries, header_only) == []
