"""Options of the command line as keyword arguments of Python: all of them, with the same effect.
Values that they cannot have are refused before any work."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest

import ttcodegen
from ttcodegen.cli.ttcodegen import argument_parser
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.settings import ProjectOptions, ProjectSettings, compile_file
from ttcodegen.runtime.library import ModuleError

SOURCE = """func.func @forward(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>)
    -> tensor<64x64xbf16> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
"""
OTHER_NAMES = {"mesh_shape": "mesh", "no_format": "format", "check_edges": "check"}
OF_THE_TERMINAL = frozenset(
    """
    help file out name golden tt_lang edits tune op time_passes cpu_backend_dir quiet verbose
    log_level completion version
    """.split()
)
"""Options that name the input, ask for something else than a project or belong to a terminal.
`name` and `golden` are arguments of `compile` itself."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(SOURCE)
    return path


def test_each_option_of_the_command_line_is_a_setting() -> None:
    parser: argparse.ArgumentParser = argument_parser()
    given = {action.dest for action in parser._actions} - OF_THE_TERMINAL
    settings = {field.name for field in dataclasses.fields(ProjectOptions)}
    assert {OTHER_NAMES.get(name, name) for name in given} == settings
    own = {"target", "arch", "system_desc", "build", "check", "force", "seed"}
    assert set(ProjectSettings.__annotations__) == settings - own


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimize": 7}, "optimize cannot be 7"),
        ({"weights": "bfp7"}, "weights cannot be 'bfp7'"),
        ({"kind": "library"}, "kind cannot be 'library'"),
        ({"target": "ttnx"}, "target cannot be 'ttnx'"),
        ({"arch": "grayskull"}, "arch cannot be 'grayskull'"),
        ({"keep_edits": "drop"}, "keep_edits cannot be 'drop'"),
        ({"fabric": "star"}, "fabric cannot be 'star'"),
        ({"tt_metal": "1.0"}, "tt_metal cannot be '1.0'"),
        ({"f16": "f8"}, "f16 cannot be 'f8'"),
        ({"check": "edge"}, "check cannot be 'edge'"),
        ({"explain": True}, "explain needs optimize=1 or 2"),
        ({"validate": True}, "validate needs optimize=1 or 2"),
        ({"python": "ttnn/bin/python"}, "python needs validate"),
        ({"validate": True, "optimize": 2, "stages": 2}, "validate judges programs of one device"),
        ({"validate": True, "optimize": 2, "target": "ttmetal"}, "ttmetal' has no optimizer"),
        ({"target": "ttmetal", "optimize": 2}, "target='ttmetal' has no optimizer"),
        ({"target": "ttmetal", "embed_goldens": True}, "embed_goldens is for .ttnn files"),
        ({"check": True, "kind": "sources"}, "check needs an executable"),
    ],
)
def test_values_that_cannot_be_are_refused_before_anything_is_written(
    settings: dict[str, Any], message: str, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModuleError) as caught:
        ttcodegen.load(source, out=tmp_path / "out", **settings)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_settings_act_as_the_options_do(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ProjectOptions(
        optimize=1, explain=True, embed_goldens=True, format=False, dump_ir=tmp_path / "ir"
    )
    out = compile_file(source, tmp_path / "out", options)
    assert "matmul" in capsys.readouterr().out
    assert len(list((tmp_path / "ir").iterdir())) > 5
    plain = compile_file(source, tmp_path / "plain", ProjectOptions(optimize=1))
    sizes = [(each / "model.ttnn").stat().st_size for each in (out, plain)]
    assert sizes[0] > sizes[1] + 64 * 64 * 2  # At least the values of the product.
    unformatted, formatted = ((each / "src" / "m.cpp").read_text() for each in (out, plain))
    assert unformatted != formatted
    # Includes are sorted as well.
    assert sorted("".join(unformatted.split())) == sorted("".join(formatted.split()))


def test_a_check_for_which_memory_is_lacking_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttcodegen.project.running._memory_of_machine", lambda: 1000)
    with pytest.raises(CompileError, match="of memory, and this machine has"):
        compile_file(source, tmp_path / "out", ProjectOptions(check=True))
