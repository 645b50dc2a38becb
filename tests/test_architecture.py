"""The structure of the compiler: its packages import downwards only, and one place knows a fact.

Their order is in pyproject.toml, under `tool.importlinter`; scripts/lint checks it as well.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ttcodegen.systems.releases import RELEASES

ROOT = Path(__file__).parent.parent


def test_packages_import_downwards_only() -> None:
    pytest.importorskip("importlinter.cli", reason="needs the extra 'test'")
    # A process of its own: it takes the standard output and forks, which not every test bears.
    program = "from importlinter.cli import lint_imports as lint; "
    program += "raise SystemExit(lint(no_cache=True, no_logo=True))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def imports_of(path: Path) -> set[str]:
    """The modules of the package that a file imports, in functions and for types as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_modules_do_not_import_in_circles() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "ttcodegen").rglob("*.py")
        if path.name != "__init__.py"
    }
    imported = {name: imports_of(path) & modules.keys() for name, path in modules.items()}
    while True:
        # What imports nothing that is left, or is imported by nothing left, is in no circle.
        used = set[str]().union(*imported.values())
        left = {
            name: used_here for name, used_here in imported.items() if used_here and name in used
        }
        if len(left) == len(imported):
            break
        imported = {name: used_here & left.keys() for name, used_here in left.items()}
    assert not imported


def test_releases_of_tt_metal_are_named_in_their_tables_alone() -> None:
    package = ROOT / "ttcodegen"
    texts = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    naming = {
        path.relative_to(package).parent.as_posix()
        for path, text in texts.items()
        if any(release in text for release in RELEASES)
    }
    assert naming == {"systems/releases"}


def test_names_of_the_project_are_made_in_one_room() -> None:
    """The functions, kernels and constants of a project that are named after something else, and
    the roles of weights."""
    made = re.compile(
        r'f"(?:run|read|write|compute|receive(?:_\w+)?|prepare|fold|load)_\{'
        r'|= "(?:product_\w+|trace_region_bytes)"'
        r'|\{[^{}]*\}_address"'
        r"|^_ROLES\b",
        re.MULTILINE,
    )
    rooms = ("conversions", "emission", "lang", "transforms", "flatbuffer", "project")
    package = ROOT / "ttcodegen"
    paths = [path for room in rooms for path in (package / room).rglob("*.py")]
    found = {
        path.relative_to(package).as_posix()
        for path in paths
        if made.search(path.read_text("utf-8"))
    }
    assert found == set()


def test_tiles_and_bytes_of_tensors_are_counted_by_layouts() -> None:
    counting = re.compile(r"\.tile_bytes\(|bits // 8|-\(-[^/]*// (32|TILE_SIDE)\)")
    paths = [
        path.relative_to(ROOT / "ttcodegen")
        for path in (ROOT / "ttcodegen").rglob("*.py")
        if counting.search(path.read_text("utf-8"))
    ]
    # The format of a tile itself, and the elements of an attribute's text.
    allowed = {"dialects/ttcore/tile.py", "parsing/elements.py"}
    assert {path.as_posix() for path in paths if path.parts[0] != "layout"} <= allowed


def test_each_pipeline_fits_on_a_screen() -> None:
    path = ROOT / "ttcodegen" / "transforms" / "ttnn" / "pipelines.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        assert node.end_lineno is not None
        assert node.end_lineno - node.lineno < 60, f"{path}:{node.lineno}"


MOST_LINES = 600
"""Lines of a module above which it holds more than one topic."""


def test_no_module_has_more_than_600_lines() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in (ROOT / "ttcodegen").rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
