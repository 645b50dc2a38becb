"""All kernels that ttcodegen emits compile with the device headers of the release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import pytest

from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import read_manifest
from tests.kernel_check.programs import EXAMPLES, ROOT, texts
from ttcodegen.cli.ttcodegen import main

MODULES = (
    "elementwise",
    "typecasts",
    "broadcasts",
    "products",
    "reductions",
    "movements",
    "layers",
    *(Path(name).name for name in EXAMPLES),
)
ON_BLACKHOLE = ("elementwise", "products")
TEMPLATES = ROOT / "ttcodegen" / "templates"
BLOCKS = ROOT / "kernels"

pytestmark = pytest.mark.slow


def emitted(name: str, arch: str, folder: Path) -> Path:
    """The project of a module."""
    source = folder / f"{name}.mlir"
    source.write_text(texts()[name], "utf-8")
    out = folder / name
    assert main([str(source), "-o", str(out), "--target", "ttmetal", "--arch", arch]) == 0
    return out


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        *((name, "wormhole_b0") for name in MODULES),
        *((name, "blackhole") for name in ON_BLACKHOLE),
    ],
)
def test_emitted_kernels_compile(
    kernel_check: KernelCheck, tmp_path: Path, name: str, arch: str
) -> None:
    kernels = read_manifest(emitted(name, arch, tmp_path) / "manifest.json")
    assert {kernel.arch for kernel in kernels} == {arch}
    assert [str(fault) for fault in kernel_check.check(kernels)] == []


@contextmanager
def _recorded_templates(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The names of the templates that are used within."""
    used: set[str] = set()
    get_template = jinja2.Environment.get_template

    def recording(self: jinja2.Environment, name: Any, *arguments: Any) -> jinja2.Template:
        used.add(name)
        return get_template(self, name, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(jinja2.Environment, "get_template", recording)
        yield used


def test_the_modules_use_all_there_is_for_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocks: set[str] = set()
    with _recorded_templates(monkeypatch) as used:
        for name in MODULES:
            kernels = emitted(name, "wormhole_b0", tmp_path) / "kernels"
            blocks |= {path.relative_to(kernels).as_posix() for path in kernels.rglob("*.hpp")}
    assert blocks == {path.relative_to(BLOCKS).as_posix() for path in BLOCKS.rglob("*.?pp")}
    folder = TEMPLATES / "ttmetal" / "kernels"
    assert {path.relative_to(TEMPLATES).as_posix() for path in folder.iterdir()} <= used
